"""Imagined rollouts: the seat's own policy among modelled co-players, in the learned world.

A rollout starts at a real state with the seat's real beliefs there, and runs through the same code as real play. So an
imagined step carries everything that a real one does: inferred goals, legal actions, values, who is in the game. When
the seat leaves, its imagined episode ends and another starts from a real first state.

Where views sum the others, the first view may be that of any of its players: then some of them are egos, all with the
seat's own policy, and a step of a world with many players gives that many samples.

Co-players act by the opponent models. Their goals are what the seat infers as the imagined episode goes on (`belief`),
or goals that were drawn for this environment and never seen (`counterfactual`). With a filter over kinds of goals,
acting by the belief at every step is equivalent to drawing a goal once: the drawn action is evidence for the goal that
made it likely. With goals as vectors or learned symbols it is not, so a goal is drawn from the posterior at the start.
Counterfactual co-players are always met for the first time; their vectors are drawn from the posterior of any co-player
of real play.
"""

from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree

from hopplus.agents.config import OpponentsConfig
from hopplus.agents.goals import BeliefState, GoalModel, goal_model, policy_inputs
from hopplus.agents.opponents import OpponentModels
from hopplus.core.devices import shard_samples
from hopplus.core.numerics import Metrics, count_rows, evenly_spread, spread, weighted_mean
from hopplus.games.coplayers import PolicyState
from hopplus.games.fields import TIME, Observation
from hopplus.games.game import Game, GameSpec
from hopplus.games.rollout import EnvState
from hopplus.learning import replay
from hopplus.learning.config import ImaginationConfig, LearnerConfig
from hopplus.learning.ppo import Batch, make_batch
from hopplus.learning.replay import Kept
from hopplus.learning.rollout import PolicyOutput, Trajectory, collect, no_inputs
from hopplus.learning.trust import depth_of, mixed, weights_by_depth
from hopplus.models import actor_critic
from hopplus.models.actor_critic import PolicyNetwork
from hopplus.models.learned_game import LearnedGame, WorldState, from_view, reordered
from hopplus.models.world import WorldModel

EGOS_APART = 4
"""Where views sum the others, one in so many players of an imagined environment is an ego."""


class CoPlayerGoals(eqx.Module):
    """The goals of the co-players of an imagined environment."""

    goals: Float32[Array, "*envs others goal"]
    is_counterfactual: Bool[Array, "*envs"]
    """Whether these goals were never seen. If not, the co-players act by the seat's belief, or have goals drawn from
    it (`GoalModel.is_drawn`)."""


class ImaginedPlayers(eqx.Module):
    """All players of an imagined environment: the egos, which learn, in the first seats, and the opponent models.

    There is one ego, but where views sum the others (`num_egos`).
    """

    params: PolicyNetwork
    opponents: OpponentModels
    game: Game
    config: OpponentsConfig = eqx.field(static=True)

    @property
    def num_learning(self) -> int:
        return num_egos(self.game.spec)

    @property
    def goals(self) -> GoalModel:
        """How an ego infers goals."""
        return goal_model(self.config, self.game)

    def init(self) -> PolicyState:
        spec = self.game.spec
        co_players = CoPlayerGoals(jnp.zeros((spec.num_agents - 1, self.goals.size)), jnp.bool_(False))
        beliefs = _stacked(self.goals.start(), self.num_learning)
        values, inputs = jnp.zeros(self.num_learning), no_inputs(self.config, self.game, self.num_learning)
        return PolicyOutput(values, beliefs, inputs=inputs), co_players

    def next_episode(self, state: PolicyState) -> PolicyState:
        output, co_players = state
        fresh, _ = self.init()
        known = replace(fresh, beliefs=jax.vmap(self.goals.next_episode)(output.beliefs))
        return jax.tree.map(partial(jnp.where, co_players.is_counterfactual), fresh, known), co_players

    def __call__(
        self, observations: Observation, legal: Bool[Array, "agents actions"], state: PolicyState
    ) -> tuple[Float32[Array, "agents actions"], PolicyState]:
        output, co_players = state
        egos, rest = slice(None, self.num_learning), slice(self.num_learning, None)
        views = jax.tree.map(lambda leaf: leaf[egos], observations)
        log_probabilities, values, beliefs, inputs = jax.vmap(self._one_ego)(views, legal[egos], output.beliefs)
        believed = jax.tree.map(lambda leaf: leaf[0], beliefs)  # several egos infer no goals
        has_goal = co_players.is_counterfactual | self.goals.is_drawn
        goal = jnp.where(has_goal, co_players.goals, believed.goals)[self.num_learning - 1 :]
        views = jax.tree.map(lambda leaf: leaf[rest], observations)
        predicted = jnp.where(legal[rest], self.goals.now(self.opponents, views, believed, goal), 0.0)
        pursued = self.goals.pursue(predicted, co_players.goals[self.num_learning - 1 :])
        predicted = jnp.where(co_players.is_counterfactual, pursued, predicted)
        probabilities = jnp.concatenate([jnp.exp(log_probabilities), predicted])
        recorded = inputs if self.config.others.as_input else None
        return probabilities, (PolicyOutput(values, beliefs, inputs=recorded), co_players)

    def _one_ego(
        self, view: Observation, legal: Bool[Array, " actions"], beliefs: BeliefState
    ) -> tuple[Float32[Array, " actions"], Float32[Array, ""], BeliefState, Float32[Array, "others inputs"]]:
        """Log-probabilities, the value, beliefs and what the policy reads of one ego."""
        beliefs = self.goals.update(self.opponents, view, beliefs)
        inputs = policy_inputs(self.config, self.game, self.opponents, view, beliefs.goals)
        return *actor_critic.apply(self.params, view, legal, inputs), beliefs, inputs


def num_egos(spec: GameSpec) -> int:
    """How many players of an imagined environment are egos: one, but one in four where views sum the others."""
    return -(-spec.num_agents // EGOS_APART) if spec.sums_others else 1


def egos_first(spec: GameSpec) -> Int32[np.ndarray, " agents"]:
    """The players of an imagined environment with the egos first: the viewer, and every fourth after it."""
    seats = np.arange(spec.num_agents)
    is_ego = np.isin(seats, np.arange(num_egos(spec)) * EGOS_APART)
    return np.concatenate([seats[is_ego], seats[~is_ego]]).astype(np.int32)


def outputs_with(players: ImaginedPlayers, beliefs: BeliefState) -> PolicyOutput:
    """The output of egos that have these beliefs, [envs, 1], and have not acted yet."""
    first, _ = players.init()
    return replace(_stacked(first, len(beliefs.goals)), beliefs=beliefs)


def _stacked(tree: PyTree[Array], count: int) -> Any:
    """So many copies of a tree, stacked."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), tree)


class EgoGame(LearnedGame):
    """The learned world for the egos, in the first seats of its order: the game is over when all of them have left."""

    def terminated(self, state: WorldState) -> Bool[Array, " agents"]:
        ended = super().terminated(state)
        return ended | jnp.all(ended[: num_egos(self.spec)])


class Branches(eqx.Module):
    """Where imagined rollouts of one seat start: real views, and the seat's beliefs there."""

    views: Observation
    """[envs]"""
    beliefs: BeliefState
    """Before the view was taken in."""
    starts: Observation
    """First views of real episodes, [starts]."""
    times: tuple[Int32[Array, "*envs"], Int32[Array, "*starts"]] | None = None
    """The times of both; None where the views show them."""


def branches(config: LearnerConfig, game: Game, envs: EnvState, steps: Trajectory) -> Branches | None:
    """The branches of each learning seat, stacked; `envs` as they are after the steps. None if nothing is imagined."""
    if not config.imagination.is_used:
        return None
    num_learning, num_envs = steps.legal.shape[2], len(envs.reset_before)
    output, _ = envs.policy_state
    seen = jax.tree.map(lambda leaf: leaf[:, :num_learning], jax.vmap(game.observe)(envs.state))
    real_steps = config.steps_per_update // num_egos(game.spec)
    chosen = np.arange(config.imagination.num_envs(real_steps, config.world.members)) % num_envs
    views, beliefs = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0)[:, chosen], (seen, output.beliefs))
    in_game = jnp.moveaxis(steps.in_game[:, :, :num_learning], 2, 0)
    first = jax.vmap(partial(_starts, steps.reset_before))(in_game)
    pick = jax.vmap(lambda leaf, chosen: leaf[chosen])

    def pick_starts(leaf: Array) -> Array:
        return pick(jnp.moveaxis(leaf.reshape(-1, *leaf.shape[2:]), 1, 0), first)

    starts = jax.tree.map(pick_starts, steps.observation)
    if game.spec.has_field(TIME.name):
        return Branches(views, beliefs, starts)
    assert steps.transition is not None
    times = steps.transition.now.time
    after = jnp.where(envs.reset_before, 0, times[:, -1] + 1)[chosen]
    of_starts = times.reshape(-1)[first]
    return Branches(views, beliefs, starts, (jnp.broadcast_to(after, (num_learning, len(chosen))), of_starts))


def branches_from_buffer(
    config: OpponentsConfig,
    game: Game,
    kept: Kept,
    begin: Branches,
    order: Int32[Array, " agents"],
    key: Key[Array, ""],
) -> Branches:
    """As many branches of one seat, at states of the replay buffer in which it was in the game.

    What the seat believed there is not kept: it meets its co-players for the first time.
    """
    num_envs = count_rows(begin.views)
    views, times = replay.draw_views(game, kept, order[0], num_envs, key=key)
    fresh = goal_model(config, game).start()
    beliefs = _stacked(fresh, num_envs)
    return Branches(views, beliefs, begin.starts, begin.times and (times, begin.times[1]))


def _starts(reset_before: Bool[Array, "envs time"], in_game: Bool[Array, "envs time"]) -> Int32[Array, " envs"]:
    """The steps, as indices into [envs x time], that an imagined episode of one seat may start from.

    They are first states of episodes. If no episode started in the rollout, they are states in which the seat was in
    the game, the earliest of every environment first.
    """
    num_envs, num_steps = reset_before.shape
    count = num_envs * num_steps
    steps = np.arange(count, dtype=np.int32).reshape(num_envs, num_steps)
    kind = jnp.where(reset_before, 0, jnp.where(in_game, 1, 2)).astype(jnp.int32)
    rank = kind * count + jnp.where(reset_before, steps, (steps % num_steps) * num_envs + steps // num_steps)
    first = jnp.argsort(rank.reshape(-1))[:num_envs]
    kind = kind.reshape(-1)[first]
    return jnp.where(kind == kind[0], first, first[0]).astype(jnp.int32)


def draw_believed_goals(
    players: ImaginedPlayers, begin: Branches, *, key: Key[Array, ""]
) -> Float32[Array, "envs others goal"] | None:
    """A goal for each co-player, drawn from what the seat believes after its view; None if they act by the belief."""
    if not players.goals.is_drawn:
        return None

    def one(view: Observation, beliefs: BeliefState, numbers: Array) -> Float32[Array, "others goal"]:
        beliefs = players.goals.update(players.opponents, view, beliefs)
        return players.goals.draw(players.opponents, beliefs, 1, key=jax.random.wrap_key_data(numbers))[0]

    keys = jax.random.split(key, count_rows(begin.views))
    return jax.vmap(one)(begin.views, begin.beliefs, jax.random.key_data(keys))


def draw_co_player_goals(
    config: ImaginationConfig,
    goals: GoalModel,
    num_envs: int,
    num_others: int,
    believed: Float32[Array, "envs others goal"] | None = None,
    *,
    key: Key[Array, ""],
) -> CoPlayerGoals:
    """Goals that were not seen, symbols or vectors; every multiset of symbols is equally likely.

    Elsewhere the co-players get the believed goals, if there are any.
    """
    flag_key, goal_key, urn_key = jax.random.split(key, 3)
    is_counterfactual = jax.random.bernoulli(flag_key, config.counterfactual, (num_envs,))
    seen = None if believed is None else believed.reshape(-1, believed.shape[-1])
    fresh, num_goals = goals.draw_unseen((num_envs, num_others), seen, key=goal_key)
    drawn = _from_urn(fresh, num_goals, key=urn_key)
    if believed is not None:
        drawn = jnp.where(is_counterfactual[:, None, None], drawn, believed)
    if not config.held_out:
        return CoPlayerGoals(drawn, is_counterfactual)
    kept, is_held_out = held_out_lineups(num_goals, num_others), held_out_envs(config, num_envs)
    kinds = np.array([np.bincount(lineup, minlength=num_goals) for lineup in kept], np.float32)
    is_taken = jnp.any(jnp.all(jnp.sum(drawn, axis=1)[:, None] == kinds, axis=-1), axis=1)
    drawn = jnp.where(is_taken[:, None, None], drawn[:, :1], drawn)  # all have one goal, which is never held out
    there = jax.nn.one_hot(kept[np.cumsum(is_held_out) % len(kept)], num_goals)
    drawn = jnp.where(is_held_out[:, None, None], there, drawn)
    return CoPlayerGoals(drawn, is_counterfactual | is_held_out)


def held_out_envs(config: ImaginationConfig, num_envs: int) -> Bool[np.ndarray, " envs"]:
    """The imagined environments from which nothing is learned, evenly spread."""
    return evenly_spread(config.held_out, num_envs)


def held_out_lineups(num_goals: int, num_others: int) -> Int32[np.ndarray, "lineups others"]:
    """The line-ups of goals that no other environment gets: one in four of those with different goals."""
    lineups = combinations_with_replacement(range(num_goals), num_others)
    mixed = [lineup for lineup in lineups if len(set(lineup)) > 1]
    if not mixed:
        raise ValueError("--imagination.held-out needs a game with two co-players or more, and two goals; leave it out")
    return np.array(mixed[1::4] or mixed[:1], np.int32)


def _from_urn(
    fresh: Float32[Array, "envs others goal"], num_goals: int, *, key: Key[Array, ""]
) -> Float32[Array, "envs others goal"]:
    """Goals from Polya's urn: each co-player has a fresh goal, or that of a co-player before it.

    "All three want hares" is then as likely as any other multiset of goals.
    """
    num_envs, num_others, size = fresh.shape
    if not size:
        return fresh
    uniforms = jax.random.uniform(key, (num_envs, num_others))
    goals = fresh
    for other in range(1, num_others):
        ball = uniforms[:, other] * (num_goals + other) - num_goals
        same = goals[jnp.arange(num_envs), jnp.clip(ball.astype(jnp.int32), 0, other - 1)]
        goals = goals.at[:, other].set(jnp.where((ball >= 0)[:, None], same, fresh[:, other]))
    return goals


def imagine(
    config: ImaginationConfig,
    players: ImaginedPlayers,
    member: WorldModel,
    begin: Branches,
    *,
    key: Key[Array, ""],
) -> tuple[Trajectory, Float32[Array, "envs egos"]]:
    """Imagined rollouts of one seat, [envs, time], and the values of the states that they stopped at, by ego."""
    game, spec = players.game, players.game.spec
    goals_key, act_key, env_key = jax.random.split(key, 3)
    num_envs = count_rows(begin.views)
    branch_times, start_times = begin.times or (None, None)
    at_times = jax.vmap(partial(_first_state, spec))
    world = EgoGame(member, game, at_times(begin.starts, start_times))
    believed = draw_believed_goals(players, begin, key=jax.random.fold_in(goals_key, 1))
    co_players = draw_co_player_goals(config, players.goals, num_envs, spec.num_agents - 1, believed, key=goals_key)
    fresh = _stacked(players.init()[0].beliefs, num_envs)
    from_real = jax.vmap(partial(_stacked, count=players.num_learning))(begin.beliefs)
    beliefs = _where_envs(co_players.is_counterfactual, fresh, from_real)
    output = outputs_with(players, beliefs)
    first = jax.tree.map(lambda leaf: leaf[np.arange(num_envs) % count_rows(begin.starts)], world.starts)
    states = _where_envs(co_players.is_counterfactual, first, at_times(begin.views, branch_times))
    envs = shard_samples(EnvState(states, (output, co_players), jnp.zeros(num_envs, bool)))
    seat_keys = jax.random.split(act_key, spec.num_agents)
    _, steps, last_values = collect(world, players, envs, config.length, seat_keys=seat_keys, env_key=env_key)
    if config.reward == "zero":
        steps = replace(steps, rewards=jnp.zeros_like(steps.rewards))
    return steps, last_values


def _first_state(spec: GameSpec, view: Observation, time: Int32[Array, ""] | None) -> WorldState:
    """The state of the learned world that a view shows, with the egos in the first seats."""
    state = from_view(spec, view, time)
    return reordered(spec, state, jnp.asarray(egos_first(spec))) if num_egos(spec) > 1 else state


def _where_envs(flags: Bool[Array, " envs"], one: PyTree[Array], other: PyTree[Array]) -> PyTree[Array]:
    return jax.tree.map(lambda a, b: jnp.where(flags.reshape(-1, *[1] * (a.ndim - 1)), a, b), one, other)


def imagined_batch(
    config: LearnerConfig,
    players: ImaginedPlayers,
    members: WorldModel,
    *,
    trust: Metrics,
    real: Batch,
    begin: Branches,
    keys: Key[Array, " seats"],
) -> tuple[Batch, Metrics]:
    """Real and imagined samples of one learner, [seats, samples], and metrics of the imagined ones."""
    num_members, num_seats = count_rows(members), real.active.shape[0]
    num_envs = jax.tree.leaves(begin.views)[0].shape[1]
    shape = (num_seats, num_members, num_envs // num_members)
    split = partial(jax.tree.map, lambda leaf: leaf.reshape(*shape, *leaf.shape[2:]))
    keys = jax.vmap(lambda key: jax.random.split(key, num_members))(keys)

    def one(member, views, beliefs, starts, times, key):
        steps, last_values = imagine(
            config.imagination, players, member, Branches(views, beliefs, starts, times), key=key
        )
        rewards = jnp.moveaxis(steps.rewards[:, :, : players.num_learning], 2, 0)
        depth = jnp.broadcast_to(depth_of(steps.reset_before), rewards.shape)
        return make_batch(config.ppo, steps, last_values), rewards, depth

    times = begin.times and (split(begin.times[0]), begin.times[1])
    over_members = jax.vmap(one, in_axes=(0, 0, 0, None, begin.times and (0, None), 0))
    over_seats = jax.vmap(over_members, in_axes=(None, 0, 0, 0, 0, 0))
    imagined = over_seats(members, split(begin.views), split(begin.beliefs), begin.starts, times, keys)
    num_samples = num_envs * players.num_learning * config.imagination.length
    batch, rewards, depth = jax.tree.map(lambda leaf: leaf.reshape(num_seats, num_samples, *leaf.shape[5:]), imagined)
    weights = weights_by_depth(trust, depth)
    metrics = _metrics(batch, rewards, depth, weights)
    if config.imagination.held_out:
        by_env = held_out_envs(config.imagination, num_envs // num_members)
        is_held_out = np.tile(np.repeat(by_env, config.imagination.length), num_members * players.num_learning)
        metrics |= _held_out_metrics(batch, rewards, depth, is_held_out)
        batch = replace(batch, active=batch.active & ~is_held_out)
    own = real.goals.shape[-2] - batch.goals.shape[-2]  # an imagined ego is after the game's reward: zeros
    batch = replace(batch, goals=jnp.pad(batch.goals, ((0, 0), (0, 0), (0, own), (0, 0))))
    return mixed(config.imagination, real, batch, weights), metrics


def _held_out_metrics(batch: Batch, rewards: Array, depth: Array, is_held_out: Bool[np.ndarray, " samples"]) -> Metrics:
    """The ego's reward in each imagined episode with a held-out line-up, started episodes counted."""
    counted = batch.active & is_held_out
    total = jnp.sum(jnp.where(counted, rewards, 0.0))
    return {"held_out/return": total / jnp.maximum(jnp.sum(is_held_out & (depth == 0)), 1)}


def _metrics(batch: Batch, rewards: Array, depth: Array, weights: Array) -> Metrics:
    """What imagined data is like."""
    used = batch.active & (weights > 0)
    metrics = {
        "imagined/weight": weighted_mean(weights, batch.active),
        "imagined/depth": weighted_mean(depth.astype(jnp.float32), used),
        "count/samples/imagined": jnp.sum(used, dtype=jnp.float32),
    }
    for name, numbers in (("reward", rewards), ("return", batch.targets), ("old_value", batch.values)):
        metrics |= jax.tree.map(lambda leaf: leaf[0], spread(f"imagined/{name}", numbers[None], batch.active[None]))
    return metrics
