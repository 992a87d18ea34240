"""Every exact question finds its fault, and nothing where there is none; trained runs are in benchmarks/doctor.py."""

from dataclasses import replace

import jax
import pytest

from hopplus.doctor import imagining, learning, playing
from hopplus.doctor.case import Case
from hopplus.doctor.faults import FAULTS, switched_on
from hopplus.games import contract
from hopplus.games.presets import make
from hopplus.learning.imagination import ImaginationConfig
from hopplus.learning.learner import init
from hopplus.learning.modelling_config import ModellingConfig
from hopplus.learning.ppo import PPOConfig
from hopplus.learning.replay import ReplayConfig
from hopplus.learning.worlds import WorldTrainingConfig
from hopplus.models.actor_critic import ActorCriticConfig
from hopplus.models.goals import GoalsConfig
from hopplus.models.others import OthersConfig
from hopplus.models.world import WorldConfig
from hopplus.runs.agents import learner_of
from hopplus.runs.config import RunConfig
from hopplus.runs.training import seed_keys

SMALL = {"hidden": 8, "evidence": 4}


def small_case(agent: str, tmp_path) -> Case:
    """A run of one seed before its first update: what is wrong with the code is wrong from the start."""
    usual = learner_of(agent)
    learner = replace(
        usual,
        envs=8,
        rollout_steps=12,
        network=ActorCriticConfig(hidden=(16,)),
        modelling=ModellingConfig(tables=4, minibatches=2, minibatch_size=8, lookahead=3),
        ppo=PPOConfig(minibatch_size=32, epochs=2),
        replay=ReplayConfig(size=128, tables=4),
        world=replace(usual.world, hidden=8, pooled=4) if usual.world.is_used else WorldConfig(),
        world_training=WorldTrainingConfig(minibatches=2, minibatch_size=16),
    )
    if agent == "hop_plus":
        mind = replace(
            usual.mind,
            goals=GoalsConfig(kind="hindsight", **SMALL),
            others=OthersConfig(models="each", hidden=8, keys=4),
        )
        learner = replace(learner, mind=mind, imagination=ImaginationConfig(0.5, length=12, counterfactual=0.5))
    config = RunConfig(agent=agent, seeds=1, steps=960, learner=learner)  # pyright: ignore[reportArgumentType]
    case = Case(tmp_path, config)
    start = jax.vmap(lambda key: init(case.learner, case.task, key=key))
    case.__dict__["_last"] = 0, start(seed_keys(config))
    return case


@jax.debug_key_reuse(False)
def asked(fault: str, case: Case):
    """The question that must find it; it looks at the same update again and again."""
    return {
        "reward_of_seat_0_for_all": lambda: playing.targets(case)[1],
        "others_updated_for_one_seat": lambda: _named(learning.turned(case), "others"),
        "learning_rate_of_one_seat": lambda: _named(learning.turned(case), "policy"),
        "buffer_starved": lambda: playing.samples(case),
        "goals_logged_as_zero": lambda: playing.goals(case),
        "imagined_goals_zero": lambda: imagining.goals(case),
        "imagined_reward_x5": lambda: imagining.rewards(case),
        "padded_after_leaving": lambda: playing.company(case),
        "imagined_all_legal": lambda: imagining.legal(case),
        "no_termination": lambda: imagining.ends(case),
        "planes_and_actions_misaligned": lambda: playing.alignment(case),
        "one_random_stream": lambda: playing.streams(case),
        "clipping_across_seats": lambda: learning.alone(case),
    }[fault]()


def _named(findings, module):
    return next(each for each in findings if each.module == module)


IN_CI = {name for name in FAULTS if FAULTS[name].agent == "ppo"} | {"goals_logged_as_zero"}
"""Compiling what the others break takes half a minute each."""
IN_CODE = [
    pytest.param(name, marks=() if name in IN_CI else pytest.mark.heavy) for name in FAULTS if not FAULTS[name].game
]


@pytest.mark.parametrize("name", IN_CODE)
def test_a_fault_is_found_and_named(name, tmp_path):
    with switched_on(name) as fault:
        found = asked(name, small_case(fault.agent, tmp_path))
    assert found.verdict == "broken" and found.module == fault.module


@pytest.mark.parametrize("agent", ["ppo", pytest.param("hop_plus", marks=pytest.mark.heavy)])
def test_where_nothing_is_wrong_nothing_is_found(agent, tmp_path):
    case = small_case(agent, tmp_path)
    possible = [name for name in FAULTS if FAULTS[name].agent == agent and not FAULTS[name].game]
    assert {name: asked(name, case).verdict for name in possible} == dict.fromkeys(possible, "fine")


@pytest.mark.parametrize(("name", "promise"), [("tie_to_the_lowest_seat", "seats"), ("spawn_bias", "spawns")])
def test_games_with_a_fault_break_their_promises(name, promise):
    game = FAULTS[name].game
    assert game is not None
    (found,) = contract.examine(make(game), only=[promise])
    assert found.fault


def test_an_unknown_fault_is_said_to_be_unknown():
    with pytest.raises(ValueError, match="there is no fault 'nothing'; the faults are tie_to"), switched_on("nothing"):
        pass
