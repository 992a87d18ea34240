"""Which part of imagined play makes the critic's targets wrong?

From real states, the rest of the episode is played many times: in the true game with the true co-players, with
everything learned, and with one part after the other swapped for the truth. With T the mean return of one state,

    error(parts)    = mean over states of (T(parts) - T(truth))^2, less what two runs of the truth differ by
    share of a part = 1 - error(all learned but this part) / error(all learned)

Shares need not add up: two wrong parts may cancel, or be wrong only together.

    reward        what the rules pay for the same board and actions
    transition    the board that the rules lead to
    termination   who is out of the game by the rules
    co-players    the others' own policies, with all that they remember
    goals         what each co-player came to do in the real episode, told to its model
"""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.doctor.case import Case
from hopplus.evaluation.statistics import Interval
from hopplus.games.coplayers import Memory
from hopplus.games.game import Observation, ego_order
from hopplus.games.rollout import Step, Table, open_table, paid_deeds, rollout
from hopplus.learning.imagination import Company, Imagined, OwnGame, depth_of
from hopplus.learning.learner import LearnerState, by_seat, seats_of
from hopplus.learning.minds import Impression, Mind, Player
from hopplus.learning.rollout import Thought, collect
from hopplus.learning.study import next_deeds
from hopplus.models.actor_critic import ActorCritic
from hopplus.models.world import WorldState, from_view

PARTS = ("reward", "transition", "termination", "co-players", "goals")
STARTS, DRAWS, TABLES = 32, 12, 64
RESAMPLES = 2_000


@dataclass(frozen=True)
class Attribution:
    """How wrong imagined targets are, and why."""

    error: Interval
    """Root of the mean squared error with everything learned, over the spread of true returns."""
    shares: dict[str, Interval]
    """Of that error, which goes away when a part is swapped for the truth."""


class Situations(eqx.Module):
    """Real states that an ego was in, seen from its seat: everybody's view, memory and what came of the co-players."""

    view: Observation
    impressions: Impression
    """Of every seat in the ego's order, before they took in the state."""
    goals: Float32[Array, "*starts others goal"]


class Halfway(OwnGame):
    """The learned world, of which some parts are swapped for the true rules."""

    true: Bool[Array, " parts"]

    def step(self, state: WorldState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]):
        told_key, true_key = jax.random.split(key)
        told, told_rewards = super().step(state, actions, key=told_key)
        time = state.time.astype(jnp.float32) / self.spec.horizon
        after, rewards = self.game.step(
            self.game.from_view(Observation(state.board, time, state.last_actions)), actions, key=true_key
        )
        ended = state.ended | self.game.terminated(after)
        board = jnp.where(self.true[1], self.game.board(after), told.board)
        rewards = jnp.where(self.true[0], jnp.where(state.ended, 0.0, rewards), told_rewards)
        ended = jnp.where(self.true[2], ended, told.ended)
        return WorldState(board, told.time, told.last_actions, ended), rewards


class Circle(eqx.Module):
    """The ego and its co-players: as it models them, or as they are."""

    imagined: Imagined
    params: ActorCritic
    """Of all seats in the ego's order, stacked."""
    minds: Mind
    true: Bool[Array, " parts"]
    num_learning: int = eqx.field(static=True, default=1)

    def start(self) -> Memory:
        raise NotImplementedError("matched play begins at real states")

    def again(self, memory: Memory) -> Memory:
        return memory

    def __call__(self, observations: Observation, legal: Bool[Array, "agents actions"], memory: Memory):
        thought, (company, impressions) = memory
        modelled, (thought, company) = self.imagined(observations, legal, (thought, company))
        game, config = self.imagined.game, self.imagined.config

        act = lambda params, mind, *seen: Player(params, mind, game, config)(*seen)  # noqa: E731
        really, impressions = jax.vmap(act)(self.params, self.minds, observations, legal, impressions)
        is_ego = jnp.arange(len(modelled))[:, None] == 0
        return jnp.where(self.true[3] & ~is_ego, really, modelled), (thought, (company, impressions))


def attribute(case: Case) -> Attribution:
    """Over one seat of each seed; every seat has its turn."""
    play, find = jax.jit(partial(_returns, case)), jax.jit(partial(_situations, case))
    found = []
    for seed in case.seeds:
        seat = seed % len(case.seats)
        situations = find(case.state(seed), seat, key=jax.random.key(seed))
        variants = [*np.zeros((1, len(PARTS)), bool), *np.eye(len(PARTS), dtype=bool)]
        everything = np.array([part != "goals" for part in PARTS])
        truths = [play(case.state(seed), seat, situations, everything, key=jax.random.key(key)) for key in (1, 2)]
        told = [play(case.state(seed), seat, situations, true, key=jax.random.key(3)) for true in variants]
        found.append(np.stack([np.asarray(each, np.float64) for each in (*truths, *told)]))
    return _attribution(np.concatenate(found, axis=1), _has_goals(case))


def _has_goals(case: Case) -> bool:
    """Only goals that are deeds can be told from what came of it."""
    return case.learner.mind.goals.kind == "hindsight"


def _attribution(returns: np.ndarray, with_goals: bool) -> Attribution:
    """returns [truth, truth again, all learned, each part; states, draws]."""
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
    size = lambda errors: np.sqrt(errors[0]) / max(spread, 1e-6)  # noqa: E731
    share = lambda errors, part: 1 - errors[1 + part] / np.maximum(errors[0], 1e-9)  # noqa: E731
    return Attribution(
        _interval(size(here), size(resampled)),
        {name: _interval(share(here, part), share(resampled, part)) for part, name in enumerate(parts)},
    )


def _interval(estimate: np.ndarray, resampled: np.ndarray) -> Interval:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Interval(float(estimate[0]), float(low), float(high))


def _situations(case: Case, state: LearnerState, seat: int | Array, *, key: Key[Array, ""]) -> Situations:
    """Some steps of real play in which the seat was in the game, and had been there the step before."""
    game = case.game
    open_key, play_key, pick_key = jax.random.split(key, 3)
    seats = seats_of(case.learner, case.task, state.params, state.minds)

    def record(step: Step):
        thought, _ = step.memory
        did = paid_deeds(game.spec, step.legal, step.actions, step.rewards)
        over = jnp.all(step.terminated_after)
        return step.observation, thought.impression, ~game.terminated(step.state), step.reset_before, did, over

    def one_table(open_key, play_key):
        return rollout(
            game, seats, open_table(game, seats, key=open_key), 2 * game.spec.horizon, key=play_key, record=record
        )[1]

    keys = (jax.random.split(each, TABLES) for each in (open_key, play_key))
    views, thoughts, in_game, new, did, over = jax.vmap(one_table)(*keys)
    labels = next_deeds(did, over)
    order = jnp.asarray(ego_order(game.spec.num_agents), jnp.int32)[seat]
    fine = in_game[:, 1:, seat] & ~new[:, 1:] & (labels[:, 1:, seat] >= 0)
    chances = jax.random.uniform(pick_key, fine.shape) + fine
    places = jnp.argsort(-chances.reshape(-1))[:STARTS]
    table, step = places // fine.shape[1], places % fine.shape[1] + 1
    num_goals = thoughts.goals.shape[-1]
    wanted = jax.nn.one_hot(jnp.maximum(labels[table, step], 0)[:, order[1:]], num_goals)
    return Situations(
        view=jax.tree.map(lambda leaf: leaf[table, step, seat], views),
        impressions=jax.tree.map(lambda leaf: leaf[table, step - 1][:, order], thoughts),
        goals=wanted,
    )


def _returns(
    case: Case,
    state: LearnerState,
    seat: int | Array,
    situations: Situations,
    true: Bool[Array, " parts"],
    *,
    key: Key[Array, ""],
) -> Float32[Array, "starts draws"]:
    """What the rest of the episode brings the ego, discounted, for each situation many times over."""
    game, config = case.game, case.learner
    order = jnp.asarray(ego_order(game.spec.num_agents), jnp.int32)[seat]
    seated = by_seat(case.task, (state.params, state.minds, state.worlds))
    params, seat_minds, worlds = jax.tree.map(lambda leaf: leaf[order], seated)
    ego, mind, members = jax.tree.map(lambda leaf: leaf[0], (params, seat_minds, worlds))
    again = jax.tree.map(lambda leaf: jnp.repeat(leaf, DRAWS, axis=0), situations)
    first = jax.vmap(partial(from_view, game.spec))(again.view)
    world = Halfway(jax.tree.map(lambda leaf: leaf[0], members), game, first, true)
    circle = Circle(Imagined(ego, mind, game, config.mind), params, seat_minds, true)
    thought = Thought(
        jnp.zeros((STARTS * DRAWS, 1), jnp.float32), jax.tree.map(lambda leaf: leaf[:, :1], again.impressions)
    )
    told = jnp.broadcast_to(true[4], (STARTS * DRAWS,))
    tables = Table(first, (thought, (Company(again.goals, told), again.impressions)), jnp.zeros(STARTS * DRAWS, bool))
    act_key, table_key = jax.random.split(key)
    seat_keys = jax.random.split(act_key, game.spec.num_agents)
    _, steps, _ = collect(world, circle, tables, game.spec.horizon, seat_keys=seat_keys, table_key=table_key)
    this_episode = jnp.cumsum(steps.reset_before, axis=1) == 0
    discounts = config.ppo.discount ** depth_of(steps.reset_before)
    rewards = jnp.where(this_episode & steps.in_game[..., 0], steps.rewards[..., 0], 0.0)
    return jnp.sum(discounts * rewards, axis=1).reshape(STARTS, DRAWS)
