"""The ladder is built from the run's own settings, and the first rung with the symptom is blamed."""

import numpy as np

from hopplus.doctor.ladder import RUNGS, compare, read_ladder, rungs, symptom_of
from hopplus.runs import RunConfig
from hopplus.runs.agents import learner_of
from hopplus.runs.folder import open_folder
from hopplus.runs.records import Recorded
from hopplus_doctor.answer import Answer as Said
from hopplus_doctor.answer import Examination, settled


def recorded(value_loss, seats=(1.0, 1.0, 1.0)):
    """A run of 8 seeds whose metrics hold still."""
    noise = np.random.default_rng(0).normal(0, 0.01, (10, 8))
    metrics = {"policy/value_loss_real": value_loss + noise, "charts/episodic_return/mean": np.mean(seats) + noise}
    metrics |= {f"charts/episodic_return/player_{at + 1}": mean + noise for at, mean in enumerate(seats)}
    return Recorded("a", {}, np.arange(1, 11), metrics, {}, None)


def test_each_rung_adds_one_module():
    built = rungs(learner_of("hop_plus"))
    assert tuple(built) == tuple(RUNGS)
    assert [one.opponents.others.models for one in built.values()] == ["none"] + 5 * ["each"]
    assert [one.opponents.goals.kind for one in built.values()] == 2 * ["none"] + 4 * ["hindsight"]
    assert [one.world.is_used for one in built.values()] == 3 * [False] + 3 * [True]
    assert [one.imagination.is_used for one in built.values()] == 4 * [False] + 2 * [True]
    assert [one.imagination.critic for one in built.values()][-2:] == ["real", "weighted"]
    for config in built.values():
        config.check()
    assert tuple(rungs(learner_of("ppo"))) == ("ppo",)


def test_the_default_run_on_8x8_has_a_ladder(tmp_path):
    """Its hidden utilities need goals, and its early end needs imagination: lower rungs have neither."""
    open_folder(tmp_path, RunConfig(agent="hop_plus", game="stag-hunt-8x8"))
    variants = read_ladder(tmp_path, "value_loss").study.variants
    assert len(variants) == 2 * len(RUNGS) and {config.steps for config in variants.values()} == {1_500_000}
    shares = [variants[f"{rung}, shared"].learner.utilities.share for rung in RUNGS]
    assert shares == 2 * [0.0] + 4 * [0.75]


def test_the_first_rung_with_the_symptom_is_blamed():
    losses = dict(zip(RUNGS, (0.2, 0.21, 0.2, 0.19, 2.0, 9.0), strict=True))
    records = {f"{rung}, shared": recorded(loss) for rung, loss in losses.items()}
    answer = Said("ladder", "?", tuple(compare(records, "shared", "value_loss")))
    examination = Examination("a", "", "0", settled([answer]))
    assert examination.verdict == "broken" and examination.suspects[0] == "imagination"


def test_a_seat_that_gets_more_is_a_symptom():
    assert np.allclose(symptom_of(recorded(0.1, seats=(2.0, 1.0, 1.5)), "seats"), 1 / 1.5, rtol=0.05)
    assert symptom_of(recorded(0.1), "seats").max() < 1e-9
    assert np.allclose(symptom_of(recorded(0.1, seats=(3.0, -3.0)), "seats"), 2, rtol=0.01)
