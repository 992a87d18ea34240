"""Which part of imagination makes the critic's targets wrong?

From real states, the rest of the episode is played many times: with the true game and co-players, with all parts
learned, and with one learned part at a time replaced by the true one. With T the mean return from one state,

    error(parts)    = mean over states of (T(parts) - T(truth))^2, less the difference of two runs of the truth
    share of a part = 1 - error(all learned but this part) / error(all learned)

Shares need not add up: the errors of two parts may cancel, or appear only together. The true parts are

    reward        the rules' rewards for the same board and actions
    transition    the rules' next board
    termination   the rules' terminations
    co-players    the co-players' own policies, with their own beliefs
    goals         each co-player's next event in the real episode, given to its opponent model
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.agents.goals import BeliefState
from hopplus.agents.opponents import OpponentModels
from hopplus.agents.player import Player
from hopplus.doctor.examined_run import ExaminedRun, learned_params
from hopplus.games.coplayers import PolicyState
from hopplus.games.fields import Observation
from hopplus.games.game import ego_order, overrides
from hopplus.games.rollout import EnvState, Step, init_env, rollout
from hopplus.learning.imagination import CoPlayerGoals, EgoGame, ImaginedPlayers, outputs_with
from hopplus.learning.initial import by_seat, seats_of
from hopplus.learning.opponent_data import next_events
from hopplus.learning.rollout import collect
from hopplus.learning.state import LearnerState
from hopplus.learning.trust import depth_of
from hopplus.models.actor_critic import PolicyNetwork
from hopplus.models.learned_game import WorldState, from_view
from hopplus.models.world import has_shared_board, viewed_fields
from hopplus_doctor.statistics import Interval

PARTS = ("reward", "transition", "termination", "co-players", "goals")
STARTS, DRAWS, ENVS = 32, 12, 64
RESAMPLES = 2_000


@dataclass(frozen=True)
class Attribution:
    """The error of imagined targets, and the share of each part in it."""

    error: Interval
    """Root of the mean squared error with all parts learned, over the spread of true returns."""
    shares: dict[str, Interval]
    """The share of the error that goes away when a part is replaced by the true one."""


class Situations(eqx.Module):
    """Real states from the ego's seat: its view, all seats' beliefs, and the co-players' goals."""

    view: Observation
    beliefs: BeliefState
    """Of every seat in the ego's order, before it observes the state."""
    goals: Float32[Array, "*starts others goal"]
    """Each co-player's next event in the real episode, one-hot."""


class PartlyTrueGame(EgoGame):
    """The learned world with some parts replaced by the true rules."""

    true: Bool[Array, " parts"]
    """Which parts are true, in the order of `PARTS`."""

    def step(self, state: WorldState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]):
        learned_key, true_key = jax.random.split(key)
        learned, learned_rewards = super().step(state, actions, key=learned_key)
        time = state.time.astype(jnp.float32) / self.spec.horizon
        after, rewards = self.game.step(
            self.game.from_view({"planes": state.board, "time": time, "last_actions": state.last_actions}),
            actions,
            key=true_key,
        )
        ended = state.ended | self.game.terminated(after)
        board = jnp.where(self.true[1], self.game.board(after), learned.board)
        rewards = jnp.where(self.true[0], jnp.where(state.ended, 0.0, rewards), learned_rewards)
        ended = jnp.where(self.true[2], ended, learned.ended)
        return WorldState(board, learned.time, learned.last_actions, ended), rewards


class PartlyTruePlayers(eqx.Module):
    """The ego and its co-players: the opponent models, or the co-players' own policies."""

    imagined: ImaginedPlayers
    params: PolicyNetwork
    """Of all seats in the ego's order, stacked."""
    opponents: OpponentModels
    true: Bool[Array, " parts"]
    num_learning: int = eqx.field(static=True, default=1)

    def init(self) -> PolicyState:
        raise NotImplementedError("attribution starts at real states; build an EnvState with the players' state")

    def next_episode(self, state: PolicyState) -> PolicyState:
        return state

    def __call__(self, observations: Observation, legal: Bool[Array, "agents actions"], state: PolicyState):
        output, (co_players, beliefs) = state
        modelled, (output, co_players) = self.imagined(observations, legal, (output, co_players))
        game, config = self.imagined.game, self.imagined.config

        def act(params: PolicyNetwork, models: OpponentModels, *seen: Any):
            return Player(params, models, game, config)(*seen)

        true, beliefs = jax.vmap(act)(self.params, self.opponents, observations, legal, beliefs)
        is_ego = jnp.arange(len(modelled))[:, None] == 0
        return jnp.where(self.true[3] & ~is_ego, true, modelled), (output, (co_players, beliefs))


def can_attribute(examined: ExaminedRun) -> bool:
    """Whether the true game can go on from what a world of it shows: from a board that all seats share, and on which
    they know who is where."""
    game = examined.game
    shows_state = has_shared_board(game.spec) and not viewed_fields(game.spec) and not game.spec.sums_others
    return shows_state and overrides(game, "from_view")


def attribute(examined: ExaminedRun) -> Attribution:
    """Attribute the error of imagined targets. Each seed gives one seat, and all seats take turns."""
    play, find = jax.jit(partial(_returns, examined)), jax.jit(partial(_situations, examined))
    returns = []
    for seed in examined.seeds:
        seat = seed % len(examined.seats)
        situations = find(examined.state(seed), seat, key=jax.random.key(seed))
        variants = [*np.zeros((1, len(PARTS)), bool), *np.eye(len(PARTS), dtype=bool)]
        everything = np.array([part != "goals" for part in PARTS])
        truths = [play(examined.state(seed), seat, situations, everything, key=jax.random.key(key)) for key in (1, 2)]
        learned = [play(examined.state(seed), seat, situations, true, key=jax.random.key(3)) for true in variants]
        returns.append(np.stack([np.asarray(each, np.float64) for each in (*truths, *learned)]))
    return _attribution(np.concatenate(returns, axis=1), _has_goals(examined))


def _has_goals(examined: ExaminedRun) -> bool:
    """Whether goals are events, so that the real episode shows the true goal."""
    return examined.learner.opponents.goals.has_labels


def _attribution(returns: np.ndarray, with_goals: bool) -> Attribution:
    """The attribution of returns [truth, truth again, all learned, each part; states, draws]."""
    means, spread = returns.mean(axis=-1), returns[0].std()
    parts = PARTS if with_goals else PARTS[:-1]

    def errors(chosen: np.ndarray) -> np.ndarray:
        """[all learned, each part; resamples]"""
        off = np.square(means[2:, chosen] - means[0, chosen]).mean(axis=-1)
        noise = np.square(means[1, chosen] - means[0, chosen]).mean(axis=-1)
        return np.maximum(off - noise, 0.0)

    count = means.shape[1]
    resampled = errors(np.random.default_rng(0).integers(count, size=(RESAMPLES, count)))
    here = errors(np.arange(count)[None])

    def size(errors):
        return np.sqrt(errors[0]) / max(spread, 1e-6)

    def share(errors, part):
        return 1 - errors[1 + part] / np.maximum(errors[0], 1e-9)

    return Attribution(
        _interval(size(here), size(resampled)),
        {name: _interval(share(here, part), share(resampled, part)) for part, name in enumerate(parts)},
    )


def _interval(estimate: np.ndarray, resampled: np.ndarray) -> Interval:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Interval(float(estimate[0]), float(low), float(high))


def _situations(examined: ExaminedRun, state: LearnerState, seat: int | Array, *, key: Key[Array, ""]) -> Situations:
    """Sample real steps in which the seat is in the game and also was in the step before."""
    game = examined.game
    open_key, play_key, pick_key = jax.random.split(key, 3)
    seats = seats_of(examined.learner, examined.task, state.learners, state.population)

    def record(step: Step):
        output, _ = step.policy_state
        events = game.events(step.state, step.actions, step.after, step.rewards)
        over = jnp.all(step.terminated_after)
        return step.observation, output.beliefs, ~game.terminated(step.state), step.reset_before, events, over

    def one_env(open_key, play_key):
        return rollout(
            game, seats, init_env(game, seats, key=open_key), 2 * game.spec.horizon, key=play_key, record=record
        )[1]

    keys = (jax.random.split(each, ENVS) for each in (open_key, play_key))
    views, beliefs, in_game, new, events, over = jax.vmap(one_env)(*keys)
    labels = next_events(events, over)
    order = jnp.asarray(ego_order(game.spec.num_agents), jnp.int32)[seat]
    fine = in_game[:, 1:, seat] & ~new[:, 1:] & (labels[:, 1:, seat] >= 0)
    chances = jax.random.uniform(pick_key, fine.shape) + fine
    places = jnp.argsort(-chances.reshape(-1))[:STARTS]
    env, step = places // fine.shape[1], places % fine.shape[1] + 1
    num_goals = beliefs.goals.shape[-1]
    wanted = jax.nn.one_hot(jnp.maximum(labels[env, step], 0)[:, order[1:]], num_goals)
    return Situations(
        view=jax.tree.map(lambda leaf: leaf[env, step, seat], views),
        beliefs=jax.tree.map(lambda leaf: leaf[env, step - 1][:, order], beliefs),
        goals=wanted,
    )


def _returns(
    examined: ExaminedRun,
    state: LearnerState,
    seat: int | Array,
    situations: Situations,
    true: Bool[Array, " parts"],
    *,
    key: Key[Array, ""],
) -> Float32[Array, "starts draws"]:
    """Discounted returns of the ego over the rest of the episode, several samples for each situation."""
    game, config = examined.game, examined.learner
    order = jnp.asarray(ego_order(game.spec.num_agents), jnp.int32)[seat]
    seated = by_seat(examined.task, learned_params(state))
    params, seat_models, worlds = jax.tree.map(lambda leaf: leaf[order], seated)
    ego, models, members = jax.tree.map(lambda leaf: leaf[0], (params, seat_models, worlds))
    again = jax.tree.map(lambda leaf: jnp.repeat(leaf, DRAWS, axis=0), situations)
    first = jax.vmap(partial(from_view, game.spec))(again.view)
    world = PartlyTrueGame(jax.tree.map(lambda leaf: leaf[0], members), game, first, true)
    imagined = ImaginedPlayers(ego, models, game, config.opponents)
    players = PartlyTruePlayers(imagined, params, seat_models, true)
    output = outputs_with(imagined, jax.tree.map(lambda leaf: leaf[:, :1], again.beliefs))
    co_players = CoPlayerGoals(again.goals, jnp.broadcast_to(true[4], (STARTS * DRAWS,)))
    envs = EnvState(first, (output, (co_players, again.beliefs)), jnp.zeros(STARTS * DRAWS, bool))
    act_key, env_key = jax.random.split(key)
    seat_keys = jax.random.split(act_key, game.spec.num_agents)
    _, steps, _ = collect(world, players, envs, game.spec.horizon, seat_keys=seat_keys, env_key=env_key)
    this_episode = jnp.cumsum(steps.reset_before, axis=1) == 0
    discounts = config.ppo.discount ** depth_of(steps.reset_before)
    rewards = jnp.where(this_episode & steps.in_game[..., 0], steps.rewards[..., 0], 0.0)
    return jnp.sum(discounts * rewards, axis=1).reshape(STARTS, DRAWS)
