"""Opponent models where a seat does not know what its co-players see: they read its own view."""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents.config import OpponentsConfig
from hopplus.agents.opponents import opponent_inputs
from hopplus.games.coplayers import Lineup
from hopplus.games.fields import Field, last_actions_field
from hopplus.games.game import NO_ACTION, Game, GameSpec, ego_order, views_of_others
from hopplus.learning import learner
from hopplus.learning.config import ImaginationConfig, ReplayConfig, WorldTrainingConfig
from hopplus.learning.learner import train_step
from hopplus.learning.state import Task
from hopplus.models.config import GoalsConfig, OthersConfig, WorldConfig
from hopplus.runs.capabilities import missing
from hopplus.runs.config import RunConfig
from learning.test_seats import CONFIG, start_of, trainer, turn, turn_start


class CardState(eqx.Module):
    cards: jax.Array
    last: jax.Array
    time: jax.Array


class Cards(Game[CardState]):
    """Three seats hold a card of three each, which only they see, and are paid for naming the sum of all cards."""

    cards_are_shown: bool = eqx.field(static=True, default=False)

    @property
    def spec(self):
        card = Field("card", "categories", (1,), below=3)
        names = ("none", "one", "two")
        return GameSpec("cards", 1, 3, names, (card, last_actions_field(3, 3)), horizon=6)

    def reset(self, *, key):
        return CardState(jax.random.randint(key, (3,), 0, 3), jnp.full(3, NO_ACTION, jnp.int32), jnp.int32(0))

    def step(self, state, actions, *, key):
        paid = (actions == jnp.sum(state.cards) % 3) & (state.time < 6)
        return CardState(state.cards, actions, state.time + 1), paid.astype(jnp.float32)

    def observe(self, state):
        return {"card": state.cards[:, None], "last_actions": state.last[ego_order(3)]}

    def legal(self, state):
        """No seat names its own card."""
        return jnp.arange(3) != state.cards[:, None]

    def legal_in_view(self, observation):
        return jnp.arange(3) != observation["card"]

    def terminated(self, state):
        return jnp.broadcast_to(state.time >= 6, (3,))

    def permute(self, state, order):
        return CardState(state.cards[order], state.last[order], state.time)


GAME = Cards()
SETTINGS = replace(
    CONFIG,
    opponents=OpponentsConfig(others=OthersConfig(models="each", hidden=8)),
    world=WorldConfig(members=2, kind="fields", hidden=8),
    replay=ReplayConfig(size=128, envs=4),
    world_training=WorldTrainingConfig(minibatches=2, minibatch_size=16),
    imagination=ImaginationConfig(real_ratio=0.5, length=4, counterfactual=0.0, trust=False),
)


def test_a_co_player_has_the_viewers_own_fields_and_any_action():
    """The viewer holds card 1 and may not name it; what its co-players may name it does not know."""
    seen = jax.tree.map(
        lambda leaf: leaf[1], GAME.observe(CardState(jnp.array([0, 1, 2]), jnp.arange(3), jnp.int32(1)))
    )
    inputs = opponent_inputs(GAME, views_of_others(GAME.spec, seen))
    assert inputs.observation["card"].tolist() == [[1], [1]]
    assert inputs.observation["last_actions"].tolist() == [[2, 0, 1], [0, 1, 2]]
    assert bool(jnp.all(inputs.legal)) and GAME.legal_in_view(seen).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("settings", "shift"),
    [
        (replace(CONFIG, opponents=SETTINGS.opponents), 1),
        pytest.param(SETTINGS, 1, marks=pytest.mark.heavy),
        pytest.param(SETTINGS, 2, marks=pytest.mark.heavy),
    ],
    ids=["without a world", "1", "2"],
)
def test_seats_are_treated_alike_with_models_of_own_views(settings, shift):
    """Rotate the seats before training, and the whole result is rotated, imagined play included."""
    task, train = Task(GAME, Lineup(()), 4), trainer(GAME, settings, 3)
    start = start_of(settings, task)
    plain, _ = train(start, 0)
    turned, _ = train(turn_start(start, GAME, shift), shift)
    assert eqx.tree_equal(turn(plain.learners, shift), turned.learners)
    assert not eqx.tree_equal(plain.learners, turned.learners)


def test_a_model_learns_what_a_co_player_does_from_the_own_view():
    """A co-player that repeats what the viewer did last: this is in the viewer's view, and nothing else tells it."""
    from hopplus.games.coplayers import Policy

    class Repeats(Policy):
        def init(self):
            return ()

        def __call__(self, observation, legal, policy_state):
            wanted = jax.nn.one_hot(observation["last_actions"][1], 3) * legal
            any_legal = legal / jnp.sum(legal)
            return jnp.where(jnp.any(wanted > 0), wanted, any_legal), policy_state

    quick = replace(CONFIG.modelling, minibatches=8, minibatch_size=32, learning_rate=3e-2)
    config = replace(CONFIG, opponents=SETTINGS.opponents, modelling=quick)
    task = Task(GAME, Lineup((Repeats(), Repeats())), 40)
    state = jax.jit(lambda key: learner.init(config, task, key=key))(jax.random.key(0))
    step = jax.jit(partial(train_step, config, task))
    history = []
    for _ in range(40):
        state, metrics = step(state)
        history.append(metrics)
    late = np.mean([np.nanmean(each["moa/ce_loss"]) for each in history[-10:]])
    ceiling = np.mean([np.nanmean(each["moa/ceiling"]) for each in history[-10:]])
    top1 = np.mean([np.nanmean(each["moa/top1"]) for each in history[-10:]])
    assert late < 0.9 * np.log(3) and top1 > 0.5 and ceiling > top1


def test_what_is_missing_is_named():
    assert missing(SETTINGS, GAME) is None
    shared = replace(SETTINGS, opponents=OpponentsConfig(others=OthersConfig(models="shared", hidden=8)))
    assert "--others.models" in str(missing(shared, GAME))
    vectors = replace(SETTINGS, opponents=OpponentsConfig(GoalsConfig(kind="continuous"), OthersConfig(models="each")))
    assert "the field 'card' is a seat's own" in str(missing(vectors, GAME))


def test_games_of_other_libraries_have_defaults_without_goals():
    config = RunConfig(agent="hop_plus", game="jaxmarl:coin_game").learner
    assert config.opponents.goals.kind == "none" and config.world.kind == "fields" and config.opponents.is_used
    assert RunConfig(agent="omg", game="jaxmarl:coin_game").learner.opponents.goals.kind == "none"
