"""`hopplus train`: train an agent into a run folder, or go on with the run that is in it."""

from contextlib import nullcontext
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Union

import tyro

from hopplus.learning.devices import MeshConfig, num_cores, use_cores
from hopplus.learning.learner import LearnerConfig
from hopplus.runs.agents import ABOUT, AGENTS, learner_of
from hopplus.runs.config import RunConfig
from hopplus.runs.hosts import HostLostError, HostsConfig, is_first, join, leave
from hopplus.runs.progress import ProgressDisplay
from hopplus.runs.training import train as train_run

Out = Annotated[Path, tyro.conf.arg(help="The run folder: settings, metrics, checkpoints, TensorBoard events.")]


def _arguments(agent: Any) -> Any:
    """What is typed after the name of an agent: the folder, and settings that begin as the agent's."""
    usual = RunConfig(agent=agent, learner=learner_of(agent, LearnerConfig(mesh=MeshConfig(envs=num_cores()))))
    settings = ("config", Annotated[RunConfig, tyro.conf.arg(name="")], field(default=usual))
    typed = make_dataclass(agent, [("out", Out), settings, ("hosts", HostsConfig, field(default=HostsConfig()))])
    return Annotated[typed, tyro.conf.subcommand(agent, description=ABOUT[agent], prefix_name=False)]


Choice: Any = Union[tuple(_arguments(agent) for agent in AGENTS)]  # noqa: UP007


def train(training: Annotated[Choice, tyro.conf.arg(name="")]) -> int:  # pyright: ignore[reportInvalidTypeForm]
    """Train an agent: several seeds side by side in one program, into one folder.

    The same command again goes on where a killed run stopped, and ends with the same bytes as if it had never been
    killed. More --steps go on with a run that is complete, where nothing in it depends on its length.

    Args:
        training: The kind of agent; `hopplus train AGENT --help` explains its settings.
    """
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
