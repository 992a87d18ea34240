"""`hopplus train`: train an agent into a run folder, or resume the run in it."""

from contextlib import nullcontext
from typing import Any

from hopplus.core.devices import use_cores
from hopplus.runs.folder import CHECKUPS
from hopplus.runs.hosts import HostLostError, is_first, join, leave
from hopplus.runs.population import population_words
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
            checkup = _checkup(training, display)
            run = train_run(config, out, watcher=display, on_checkpoint=checkup)
    except HostLostError as error:
        leave(error)
    if not is_first():
        return 0
    early = "" if run.num_updates == config.num_updates else "; held-out returns had stopped improving"
    print(f"trained {run.num_updates} updates of {config.learner.steps_per_update} steps, {config.seeds} seeds{early}")
    if more := run.config.learner.population_steps:
        members = run.config.learner.population.members
        print(f"its population took {more:,} real steps more: {members} members; {population_words(run)}")
    if checkup is not None:
        print(f"the doctor took {checkup.share:.1%} of the time; what it said is in {out / CHECKUPS}")
    print(f"next: hopplus evaluate {out}    hopplus report {out}    tensorboard --logdir {out}")
    return 0


def _checkup(training: Any, display: ProgressDisplay | None) -> Any:
    """The doctor's questions at checkpoints; None without --doctor-every."""
    if training.doctor_every is None or display is None:
        return None
    from hopplus.doctor.while_training import Checkup

    return Checkup(training.config, training.out, training.doctor_every, display.note)
