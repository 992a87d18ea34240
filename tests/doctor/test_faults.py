"""Every exact check finds its fault and raises no other alarm. benchmarks/doctor.py does it for trained runs."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from hopplus.doctor import imagined_rollout_checks, rollout_checks, update_checks
from hopplus.doctor.examined_run import ExaminedRun
from hopplus.doctor.faults import FAULTS, switched_on
from hopplus.doctor.recording import recorded_steps, recorder_of
from hopplus.games import contract
from hopplus.games.presets import make
from hopplus.learning.config import (
    ImaginationConfig,
    ModellingConfig,
    PPOConfig,
    ReplayConfig,
    UtilitiesConfig,
    WorldTrainingConfig,
)
from hopplus.learning.learner import init
from hopplus.models.config import ActorCriticConfig, GoalsConfig, OthersConfig, WorldConfig
from hopplus.runs.agents import learner_of
from hopplus.runs.config import RunConfig
from hopplus.runs.training import seed_keys
from hopplus_doctor import target_questions
from hopplus_doctor.recording import read_recording

SMALL = {"hidden": 8, "evidence": 4}


def small_run(agent: str, tmp_path, game: str = "stag-hunt-4x4") -> ExaminedRun:
    """A run of one seed before its first update; faults of the code show from the start."""
    usual = learner_of(agent)
    learner = replace(
        usual,
        envs=8,
        rollout_steps=12,
        network=ActorCriticConfig(hidden=(16,)),
        modelling=ModellingConfig(envs=4, minibatches=2, minibatch_size=8, lookahead=3),
        ppo=PPOConfig(minibatch_size=32, epochs=2),
        replay=ReplayConfig(size=128, envs=4),
        world=replace(usual.world, hidden=8, pooled=4) if usual.world.is_used else WorldConfig(),
        world_training=WorldTrainingConfig(minibatches=2, minibatch_size=16),
    )
    if agent == "hop_plus":
        models = replace(
            usual.opponents,
            goals=GoalsConfig(kind="hindsight", **SMALL),
            others=OthersConfig(models="each", hidden=8, keys=4),
        )
        learner = replace(learner, opponents=models, imagination=ImaginationConfig(0.5, length=12, counterfactual=0.5))
    config = RunConfig(agent=agent, game=game, seeds=1, steps=960, learner=learner)  # pyright: ignore[reportArgumentType]
    examined = ExaminedRun(tmp_path, config)
    start = jax.jit(jax.vmap(lambda key: init(examined.learner, examined.task, key=key)))
    examined.__dict__["_last"] = 0, start(seed_keys(config))
    return examined


@jax.debug_key_reuse(False)
def asked(fault: str, examined: ExaminedRun):
    """The finding of the check that must find the fault. Checks repeat one update with the same keys."""
    return {
        "reward_of_seat_0_for_all": lambda: rollout_checks.targets(examined)[1],
        "others_updated_for_one_seat": lambda: _named(update_checks.turned(examined), "others"),
        "learning_rate_of_one_seat": lambda: _named(update_checks.turned(examined), "policy"),
        "buffer_starved": lambda: rollout_checks.samples(examined),
        "goals_logged_as_zero": lambda: rollout_checks.goals(examined),
        "imagined_goals_zero": lambda: imagined_rollout_checks.goals(examined),
        "imagined_reward_x5": lambda: imagined_rollout_checks.rewards(examined),
        "padded_after_leaving": lambda: rollout_checks.examples_after_leaving(examined),
        "imagined_all_legal": lambda: imagined_rollout_checks.legal(examined),
        "no_termination": lambda: imagined_rollout_checks.ends(examined),
        "planes_and_actions_misaligned": lambda: rollout_checks.alignment(examined),
        "one_random_stream": lambda: rollout_checks.streams(examined),
        "clipping_across_seats": lambda: update_checks.alone(examined),
    }[fault]()


def _named(findings, module):
    return next(each for each in findings if each.module == module)


IN_CI = {name for name in FAULTS if FAULTS[name].agent == "ppo"} | {"goals_logged_as_zero"}
"""The others compile for half a minute each."""
BOARD, NO_BOARD = "stag-hunt-4x4", "matrix-stag-hunt"
WITHOUT_BOARD = IN_CI - {"goals_logged_as_zero", "clipping_across_seats"}
"""Found in a game without a board too, which compiles faster."""
IN_CODE = [
    *(pytest.param(name, NO_BOARD, id=name) for name in FAULTS if name in WITHOUT_BOARD and not FAULTS[name].game),
    *(
        pytest.param(
            name,
            BOARD,
            id=f"{name}, board" if name in WITHOUT_BOARD else name,
            marks=() if name in IN_CI - WITHOUT_BOARD else pytest.mark.heavy,
        )
        for name in FAULTS
        if not FAULTS[name].game
    ),
]


@pytest.mark.parametrize(("name", "game"), IN_CODE)
def test_a_fault_is_found_and_named(name, game, tmp_path):
    with switched_on(name) as fault:
        finding = asked(name, small_run(fault.agent, tmp_path, game))
    assert finding.verdict == "broken" and finding.module == fault.module


@pytest.mark.parametrize("agent", ["ppo", pytest.param("hop_plus", marks=pytest.mark.heavy)])
def test_where_nothing_is_wrong_nothing_is_found(agent, tmp_path):
    examined = small_run(agent, tmp_path)
    possible = [name for name in FAULTS if FAULTS[name].agent == agent and not FAULTS[name].game]
    assert {name: asked(name, examined).verdict for name in possible} == dict.fromkeys(possible, "fine")


@jax.debug_key_reuse(False)
def test_hidden_utilities_are_no_fault(tmp_path):
    """Seats that are paid for one event, or act at random, as in the default hop_plus on 8x8."""
    examined = small_run("omg", tmp_path)
    opponents = replace(examined.learner.opponents, goals=GoalsConfig(kind="hindsight", **SMALL))
    share = UtilitiesConfig(share=0.75, own=0.2)
    learner = replace(examined.learner, opponents=opponents, utilities=share, rollout_steps=48)
    examined = ExaminedRun(tmp_path, replace(examined.config, learner=learner))
    start = jax.jit(jax.vmap(lambda key: init(examined.learner, examined.task, key=key)))
    examined.__dict__["_last"] = 0, start(seed_keys(examined.config))
    (experience,) = examined.experience
    assert {0, 1, 2, 3} <= set(np.asarray(experience.steps.kinds).ravel().tolist())
    assert rollout_checks.samples(examined).verdict == "fine"
    assert [each.verdict for each in rollout_checks.targets(examined)] == ["fine", "fine"]
    recorder = recorder_of(examined, tmp_path / "recording")
    recorder.record(0, "real", **recorded_steps(examined, experience))
    found = list(target_questions.ask(read_recording(recorder.save())))
    assert found and {each.verdict for each in found} <= {"fine", "not enough evidence"}


@pytest.mark.parametrize(("name", "promise"), [("tie_to_the_lowest_seat", "seats"), ("spawn_bias", "spawns")])
def test_games_with_a_fault_break_their_promises(name, promise):
    game = FAULTS[name].game
    assert game is not None
    (finding,) = contract.examine(make(game), only=[promise])
    assert finding.fault


def test_an_unknown_fault_is_said_to_be_unknown():
    with pytest.raises(ValueError, match="there is no fault 'nothing'; the faults are tie_to"), switched_on("nothing"):
        pass
