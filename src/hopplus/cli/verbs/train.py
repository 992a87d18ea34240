"""`hopplus train`: train an agent into a run folder, or resume the run in it."""

import re
from contextlib import suppress
from dataclasses import field, is_dataclass, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import tyro

from hopplus.agents.named import ABOUT, NAMES
from hopplus.cli.verbs.types import print_choices
from hopplus.core.extensions import is_own
from hopplus.core.mesh import num_cores, usual_mesh
from hopplus.runs.agents import own_agent
from hopplus.runs.config import RunConfig
from hopplus.runs.defaults import game_in, value_in
from hopplus.runs.hosts_config import HostsConfig
from hopplus.runs.unused_flags import unused_flags

Out = Annotated[Path, tyro.conf.arg(help="The run folder: settings, metrics, checkpoints, TensorBoard events.")]
DoctorEvery = Annotated[
    int | None,
    tyro.conf.arg(
        help="Ask the doctor's cheap questions at checkpoints, this many updates apart or more, in at most 3% of the "
        "time. None: do not ask."
    ),
]


HELP, HELP_ALL = ("-h", "--help"), "--help-all"
PROGRAM = "hopplus train"
TRAIN = """Train an agent with several seeds, in one program and one run folder.

The same command resumes a run that was stopped, and its result is the same to the bit as without the stop, unless
Python steps the game's environments. With more --steps it continues a complete run, unless a setting depends on the
run's length.

Give an agent, or MODULE:FACTORY for one of your own. `hopplus train AGENT --help` lists its settings, and their
defaults on the game of --game. Without --out the run folder is runs/AGENT-GAME."""


def _usual(agent: Any, flags: list[str]) -> RunConfig:
    """The default settings of an agent, on the game that the flags name."""
    usual = RunConfig(agent=agent, game=game_in(flags))
    if any(flag.startswith("--mesh.") for flag in flags):
        return usual
    seeds = value_in(flags, "--seeds") or ""
    mesh = usual_mesh(int(seeds) if seeds.isdecimal() else usual.seeds, num_cores())
    return replace(usual, learner=replace(usual.learner, mesh=mesh))


def _arguments(usual: RunConfig) -> Any:
    """The class of an agent's arguments: the run folder, and settings with the agent's defaults."""
    out = ("out", Out, field(default=default_folder(usual)))
    settings = ("config", Annotated[type(usual), tyro.conf.arg(name="")], field(default=usual))
    doctor = ("doctor_every", DoctorEvery, field(default=None))
    return make_dataclass("training", [out, settings, ("hosts", HostsConfig, field(default=HostsConfig())), doctor])


def default_folder(usual: RunConfig) -> Path:
    """The run folder of a command that names none, as in runs/ppo-stag-hunt-4x4."""
    return Path("runs", re.sub(r"[^\w.]+", "-", f"{usual.agent}-{usual.game}").strip("-"))


def read(typed: list[str]) -> Any:
    """The arguments of a command line that begins with the agent."""
    agent = typed[0]
    usual = _usual(agent, typed[1:])
    return tyro.cli(_arguments(usual), prog=f"{PROGRAM} {agent}", description=_about(agent), args=typed[1:])


def _about(agent: str) -> str:
    if agent in ABOUT:
        return ABOUT[agent]
    return (type(own_agent(agent)).__doc__ or "An agent of your own.").split("\n\n")[0]


def run(typed: list[str]) -> int:
    """Run `hopplus train` with these arguments."""
    if not typed or not (typed[0] in NAMES or is_own(typed[0])):
        return print_choices(PROGRAM, TRAIN, ABOUT, typed)
    if typed[0] in NAMES and {*HELP, HELP_ALL} & {*typed}:
        return print_help(typed[0], typed[1:], everything=HELP_ALL in typed)
    training = read(typed)

    from hopplus.cli.train import train_agent

    return train_agent(training)


def print_help(agent: str, flags: list[str], *, everything: bool) -> int:
    """Print the flags that an agent uses, or also the flags of models that it does not have."""
    usual = _usual(agent, flags)
    shown = usual if everything else _hiding(unused_flags(usual.learner), usual)
    with suppress(SystemExit):  # tyro ends the program when it has printed its help
        tyro.cli(_arguments(shown), prog=f"{PROGRAM} {agent}", description=ABOUT[agent], args=["--help"])
    if not everything:
        print(f"More flags, for models that other agents have: {PROGRAM} {agent} {HELP_ALL}")
    return 0


def _hiding(hidden: frozenset[str], settings: Any, prefix: str = "") -> Any:
    """A copy of the settings whose hidden flags no parser shows or accepts; for help only."""
    hints = get_type_hints(type(settings), include_extras=True)
    changed = []
    for name, hint in hints.items():
        flag, value = prefix + name, getattr(settings, name)
        if flag in hidden:
            hint = tyro.conf.Suppress[hint]
        elif is_dataclass(value):
            below = {"learner": "", "opponents": "", "search": prefix}.get(name, f"{flag}.")
            value = _hiding(hidden, value, below)
            hint = Annotated[type(value), *getattr(hint, "__metadata__", ("",))]
        changed.append((name, hint, field(default=value)))
    return make_dataclass(type(settings).__name__, changed, bases=(type(settings),), frozen=True)()
