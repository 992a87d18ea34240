"""`hopplus train`: train an agent into a run folder, or resume the run in it."""

from contextlib import nullcontext, suppress
from dataclasses import field, is_dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Union, get_type_hints

import tyro

from hopplus.agents.named import ABOUT, NAMES
from hopplus.core.devices import use_cores
from hopplus.core.extensions import is_own
from hopplus.core.mesh import MeshConfig, num_cores
from hopplus.learning.config import LearnerConfig
from hopplus.runs.agents import learner_of, own_agent
from hopplus.runs.capabilities import unused_flags
from hopplus.runs.config import RunConfig
from hopplus.runs.hosts import HostLostError, HostsConfig, is_first, join, leave
from hopplus.runs.progress import ProgressDisplay
from hopplus.runs.training import train as train_run

Out = Annotated[Path, tyro.conf.arg(help="The run folder: settings, metrics, checkpoints, TensorBoard events.")]


HELP, HELP_ALL = ("-h", "--help"), "--help-all"


def _usual(agent: Any) -> RunConfig:
    """The default settings of an agent."""
    return RunConfig(agent=agent, learner=learner_of(agent, LearnerConfig(mesh=MeshConfig(envs=num_cores()))))


def _arguments(usual: RunConfig) -> Any:
    """The class of an agent's arguments: the run folder, and settings with the agent's defaults."""
    settings = ("config", Annotated[type(usual), tyro.conf.arg(name="")], field(default=usual))
    return make_dataclass("training", [("out", Out), settings, ("hosts", HostsConfig, field(default=HostsConfig()))])


def _choice(agent: str) -> Any:
    subcommand = tyro.conf.subcommand(agent, description=ABOUT[agent], prefix_name=False)
    return Annotated[_arguments(_usual(agent)), subcommand]


Choice: Any = Union[tuple(_choice(agent) for agent in NAMES)]  # noqa: UP007


def names_own_agent(typed: list[str]) -> bool:
    """Whether a command line trains an agent of the user's own, as in `train my_module:MyAgent`."""
    return typed[:1] == ["train"] and len(typed) > 1 and is_own(typed[1])


def train_own(typed: list[str]) -> int:
    """Train an agent of the user's own: its settings are the defaults of the flags."""
    agent = typed[1]
    about = (type(own_agent(agent)).__doc__ or "An agent of your own.").split("\n\n")[0]
    return _train(tyro.cli(_arguments(_usual(agent)), prog=f"hopplus train {agent}", description=about, args=typed[2:]))


def asks_for_help(typed: list[str]) -> bool:
    """Whether a command line asks for the help of one agent."""
    return typed[:1] == ["train"] and typed[1:2] in [[agent] for agent in NAMES] and bool({*HELP, HELP_ALL} & {*typed})


def print_help(typed: list[str]) -> int:
    """Print the flags that an agent uses; with --help-all also the flags of models that it does not have."""
    agent, everything = typed[1], HELP_ALL in typed
    usual = _usual(agent)
    shown = usual if everything else _hiding(unused_flags(usual.learner), usual)
    with suppress(SystemExit):  # tyro ends the program when it has printed its help
        tyro.cli(_arguments(shown), prog=f"hopplus train {agent}", description=ABOUT[agent], args=["--help"])
    if not everything:
        print(f"More flags, for models that other agents have: hopplus train {agent} {HELP_ALL}")
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


def train(training: Annotated[Choice, tyro.conf.arg(name="")]) -> int:  # pyright: ignore[reportInvalidTypeForm]
    """Train an agent with several seeds, in one program and one run folder.

    The same command resumes a run that was stopped, and its result is the same to the bit as without the stop, unless
    Python steps the game's environments. With more --steps it continues a complete run, unless a setting depends on the
    run's length.

    Args:
        training: The agent, or MODULE:FACTORY for one of your own. `hopplus train AGENT --help` lists its settings.
    """
    return _train(training)


def _train(training: Any) -> int:
    config, out = training.config, training.out
    use_cores(config.learner.mesh.size // training.hosts.count)
    join(training.hosts)
    try:
        with ProgressDisplay() if is_first() else nullcontext() as display:
            run = train_run(config, out, watcher=display)
    except HostLostError as error:
        leave(error)
    if not is_first():
        return 0
    print(f"trained {run.num_updates} updates of {config.learner.steps_per_update} steps, {config.seeds} seeds")
    print(f"next: hopplus evaluate {out}    hopplus report {out}    tensorboard --logdir {out}")
    return 0
