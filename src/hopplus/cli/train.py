"""`hopplus train`: train an agent into a run folder, or go on with the run that is in it."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from hopplus.learning.devices import num_cores, use_cores
from hopplus.learning.learner import LearnerConfig
from hopplus.runs.config import RunConfig
from hopplus.runs.progress import ProgressDisplay
from hopplus.runs.training import train as train_run

Agent = Annotated[tyro.conf.Positional[Literal["ppo"]], tyro.conf.arg(metavar="AGENT")]
DEFAULTS = RunConfig(learner=LearnerConfig(devices=num_cores()))


def train(agent: Agent, out: Path, config: Annotated[RunConfig, tyro.conf.arg(name="")] = DEFAULTS) -> int:
    """Train an agent: several seeds side by side in one program, into one folder.

    The same command again goes on where a killed run stopped, and ends with the same bytes as if it had never been
    killed. More --steps go on with a run that is complete, where its entropy bonus does not depend on its length.

    Args:
        agent: ppo: plain PPO, each seat for itself.
        out: The run folder: settings, metrics, checkpoints, TensorBoard events.
        config: The settings.
    """
    del agent
    use_cores(config.learner.devices)
    with ProgressDisplay() as display:
        run = train_run(config, out, watcher=display)
    print(f"trained {run.num_updates} updates of {config.learner.steps_per_update} steps, {config.seeds} seeds")
    print(f"next: hopplus evaluate {out}    hopplus report {out}    tensorboard --logdir {out}")
    return 0
