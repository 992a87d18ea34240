"""Trials on Ray: on this machine, or on the cluster at an address.

Ray decides where a trial runs, and starts it again if its worker or its node is lost; a restarted trial resumes from
its last checkpoint. All nodes see the study's folder under the same path (a shared file system). A trial that raises is
not tried again: its error is written to a file, and the other trials continue.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hopplus.core.compiled import use_cache
from hopplus.core.cores import claim_cores
from hopplus.core.devices import use_cores
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import CONFIG, open_folder
from hopplus.runs.studies.study import Study, Trial, write_study
from hopplus.runs.training import train

State = Literal["waiting", "running", "done", "failed"]
PATIENCE = 120.0
"""Seconds that a trial waits for an earlier process of its own that a lost node left behind."""
AHEAD = 8
"""Trials that are queued in Ray beyond those that can run at once."""


@dataclass(frozen=True)
class Ended:
    """How a trial ended."""

    trial: Trial
    reason: str | None = None
    """Why it failed; None if it is done."""


Work = Callable[[RunConfig, str], str | None]
"""(settings, run folder) -> why it failed, or None."""


def find_ray() -> Any:
    """Import the package; raise with the command that installs it."""
    try:
        import ray
    except ImportError:
        raise ValueError("studies run on Ray; install it with: pip install 'hopplus[ray]'") from None
    return ray


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to Ray: on the cores of this machine that this process may use, or to the cluster at the address.

    `auto` is the address of a cluster on this machine.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray = find_ray()
    cores = len(os.sched_getaffinity(0)) if address is None and hasattr(os, "sched_getaffinity") else None
    try:
        ray.init(address=address or "local", num_cpus=cores, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError) as error:
        first = str(error).strip().splitlines()[0]
        raise ValueError(f"--address {address}: no Ray cluster there ({first}); start one with `ray start`") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def train_trial(config: RunConfig, folder: str) -> str | None:
    """Train or resume a trial, in a worker of Ray; returns why it failed, or None."""
    use_cache()
    claim_cores(config.learner.mesh.size)
    use_cores(config.learner.mesh.size)
    try:
        train(config, folder, patience=PATIENCE)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def run_study(
    study: Study,
    out: Path,
    *,
    address: str | None = None,
    gpus: float = 0.0,
    on_state: Callable[[Trial, State, str | None], None] | None = None,
    on_wait: Callable[[], None] | None = None,
) -> list[Ended]:
    """Run all trials that are not done, also those that failed before; returns how they ended.

    A folder with trials of other settings is refused before anything is written. Each trial takes as many cores as its
    mesh has devices, and `gpus` GPUs.
    """
    out = out.absolute()
    for trial in study.all_trials():
        if (out / trial.place / CONFIG).exists():
            open_folder(out / trial.place, trial.config, write=False)
    write_study(study, out)
    report_state = on_state or (lambda *_: None)
    waiting = []
    for trial in study.all_trials():
        failure_file(out, trial).unlink(missing_ok=True)
        if trial.is_done(out):
            report_state(trial, "done", None)
        else:
            waiting.append(trial)
    if not waiting:
        return []
    ended = []
    with connected(address) as ray:

        def start(trial):
            return report_state(trial, "running", None)

        for one in run_trials(ray, waiting, out, train_trial, gpus=gpus, on_start=start, on_wait=on_wait):
            if one.reason:
                failure_file(out, one.trial).write_text(one.reason + "\n")
            report_state(one.trial, "failed" if one.reason else "done", one.reason)
            ended.append(one)
    return ended


def run_trials(
    ray: Any,
    trials: list[Trial],
    out: Path,
    work: Work,
    *,
    gpus: float = 0.0,
    on_start: Callable[[Trial], None] | None = None,
    on_wait: Callable[[], None] | None = None,
    fresh: bool = True,
) -> Iterator[Ended]:
    """Run trials and yield them as they end. Few are queued at a time, so that memory does not grow with their number.

    `fresh`: each trial has its own process, because JAX sets the number of its devices once per process.
    """
    remote = ray.remote(max_retries=-1, max_calls=1 if fresh else 0)(work)
    queue, running = iter(trials), {}
    limit = int(ray.cluster_resources().get("CPU", 1)) + AHEAD
    try:
        while True:
            while len(running) < limit and (trial := next(queue, None)):
                (out / trial.place).parent.mkdir(parents=True, exist_ok=True)
                options = remote.options(num_cpus=trial.config.learner.mesh.size, num_gpus=gpus)
                running[options.remote(trial.config, str(out / trial.place))] = trial
                if on_start:
                    on_start(trial)
            if not running:
                return
            ready, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
            if on_wait:
                on_wait()
            for reference in ready:
                trial = running.pop(reference)
                try:
                    yield Ended(trial, ray.get(reference))
                except ray.exceptions.RayError as error:
                    yield Ended(trial, f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")
    finally:
        for reference in running:
            with suppress(Exception):
                ray.cancel(reference, force=True)


def failure_file(out: Path, trial: Trial) -> Path:
    """The file beside the trial's run folder that says why it failed."""
    return out / trial.place.with_suffix(".failed.txt")
