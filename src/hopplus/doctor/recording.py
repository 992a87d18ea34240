"""Write the next update of a run as a recording: plain arrays that can be examined without hopplus."""

from pathlib import Path

import jax
import numpy as np

from hopplus.doctor.examined_run import ExaminedRun, open_run
from hopplus.learning.state import Experience
from hopplus_doctor import Recorder
from hopplus_doctor.names import player_name

MOST_ENVS = 16
"""Environments that are kept."""


def write_recording(folder: Path | str, out: Path | str) -> list[Path]:
    """Play the next update of each seed of a run, and record each. The run is not changed."""
    examined, out = open_run(folder), Path(out)
    written = []
    with jax.debug_key_reuse(False):
        for seed, experience in enumerate(examined.experience):
            place = out / f"seed_{seed}" if len(examined.seeds) > 1 else out
            recorder = recorder_of(examined, place)
            recorder.record(0, "real", **recorded_steps(examined, experience))
            written.append(recorder.save())
    return written


def recorder_of(examined: ExaminedRun, place: Path) -> Recorder:
    """A recorder with the settings of a run."""
    ppo = examined.learner.ppo
    return Recorder(
        place,
        [player_name(seat) for seat in range(examined.task.num_learning)],
        envs=MOST_ENVS,
        discount=float(ppo.discount),
        gae_lambda=float(ppo.gae_lambda),
        shared_parameters=examined.learner.sharing == "shared",
        symmetric=examined.is_symmetric and not examined.game.spec.roles,
    )


def recorded_steps(examined: ExaminedRun, experience: Experience) -> dict[str, np.ndarray]:
    """The real steps of an update, with the axes seats, envs, time."""
    steps, batch, num_seats = experience.steps, experience.batch, examined.task.num_learning
    shape = np.shape(batch.values)
    of_all = {"rewards": experience.rewards, "terminated": steps.terminated_after, "in_game": steps.in_game}
    of_learners = {
        "actions": batch.actions,
        "legal": batch.legal,
        "log_probabilities": batch.log_probabilities,
        "learned": batch.active,
        "values": batch.values,
        "advantages": batch.advantages,
        "targets": batch.targets,
    }
    arrays = {name: np.moveaxis(np.asarray(leaf), 2, 0)[:num_seats] for name, leaf in of_all.items()}
    arrays |= {name: np.asarray(leaf) for name, leaf in of_learners.items()}
    arrays["resets"] = np.broadcast_to(np.asarray(steps.reset_before), shape)
    arrays["last_values"] = np.asarray(experience.last_values).T[:num_seats]
    if batch.goals.shape[-1]:
        arrays["goals"] = np.asarray(batch.goals)
    return arrays
