"""`hopplus train`: train an agent into a run folder, or resume the run in it."""

from contextlib import nullcontext
from typing import Any

from hopplus.core.devices import use_cores
from hopplus.runs.hosts import HostLostError, is_first, join, leave
from hopplus.runs.progress import ProgressDisplay
from hopplus.runs.training import train as train_run


def train_agent(training: Any) -> int:
    """Train with the settings of a command line."""
    config, out = training.config, training.out
    use_cores(config.learner.mesh.size // training.hosts.count)
    join(training.hosts)
    if is_first():
        print(f"run folder: {out}", flush=True)
    try:
        with ProgressDisplay() if is_first() else nullcontext() as display:
            run = train_run(config, out, watcher=display)
    except HostLostError as error:
        leave(error)
    if not is_first():
        return 0
    early = "" if run.num_updates == config.num_updates else "; held-out returns had stopped improving"
    print(f"trained {run.num_updates} updates of {config.learner.steps_per_update} steps, {config.seeds} seeds{early}")
    print(f"next: hopplus evaluate {out}    hopplus report {out}    tensorboard --logdir {out}")
    return 0
