"""Imagined play: the seat's own policy among co-players as it knows them, in the world as it learned it.

It begins at real states with what the seat really thought there, and runs through the same rollout as real play, so an
imagined step carries all that a real one does: inferred goals, legal actions, values, who is still in the game. An
episode that the seat has left is followed by another from a real first state: what comes after is nothing to it.

Co-players act by their models. Their goals are what the seat infers as the imagined episode goes on (`belief`), or
goals that were drawn for this table and never seen (`counterfactual`). Acting by the belief at every step is the same
as drawing a goal once: the drawn action is evidence for the goal that made it likely. Counterfactual company is always
met for the first time.

    weight of a step = trust(rewards) trust(ends) (trust(board) prod_j trust(j))^(depth + 1)

With trust on, every factor is measured on real play that the models had not learned from.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.games.coplayers import Memory
from hopplus.games.game import Game, GameSpec, Observation
from hopplus.games.rollout import Table
from hopplus.learning import minds
from hopplus.learning.devices import dealt_out
from hopplus.learning.minds import Filter, Impression, Mind, MindConfig
from hopplus.learning.ppo import Batch, Metrics, PPOConfig, Source, check_counts, check_number, look_back, weighted_mean
from hopplus.learning.record import spread
from hopplus.learning.rollout import Thought, Trajectory, collect
from hopplus.models import actor_critic
from hopplus.models.actor_critic import ActorCritic
from hopplus.models.goals import goal_size
from hopplus.models.others import LEAST
from hopplus.models.world import LearnedGame, World, WorldState, from_view
from hopplus.planning import beliefs

LEAST_WEIGHT = 0.3
"""Steps that are trusted less are no data: this is how distrust shortens imagined play."""
TOLERATED = 0.05
"""An error up to this is the noise of measuring it."""


@dataclass(frozen=True)
class ImaginationConfig:
    """What is imagined, and how much it counts."""

    real_ratio: float = 1.0
    """The share of real data in what the policy learns from; 1 imagines nothing."""
    length: int = 36
    """Steps of imagined play from each real state."""
    critic: Literal["all", "real", "weighted"] = "weighted"
    """Which data the critic learns from: all alike, real data only, or imagined data by how far it is trusted."""
    reward: Literal["predicted", "zero"] = "predicted"
    """What imagined steps pay; zero is for experiments."""
    counterfactual: float = 0.0
    """The share of imagined tables whose co-players are given goals that were not seen; the others act by belief."""
    trust: bool = True
    """Whether imagined data counts less the worse the models predict real play."""

    @property
    def is_used(self) -> bool:
        return self.real_ratio < 1

    def check(self) -> None:
        """Raise where a setting makes no sense."""
        check_number("imagination", "real_ratio", self.real_ratio, 0 < self.real_ratio <= 1, "above 0, and 1 at most")
        check_counts("imagination", self, "length")
        fine = 0 <= self.counterfactual <= 1
        check_number("imagination", "counterfactual", self.counterfactual, fine, "between 0 and 1")

    def num_tables(self, real_steps: int, num_members: int) -> int:
        """Imagined environments of each seat, for so many real steps: as many for each member of the world."""
        wanted = round(real_steps * (1 / self.real_ratio - 1) / self.length)
        return max(wanted // num_members, 1) * num_members


class Company(eqx.Module):
    """Who the co-players of an imagined table are."""

    goals: Float32[Array, "*tables others goal"]
    told: Bool[Array, "*tables"]
    """Whether they have these goals; otherwise they act as the seat believes."""


class Imagined(eqx.Module):
    """The players of an imagined table: the ego, who learns, in the first seat of its own order, and its models."""

    params: ActorCritic
    mind: Mind
    game: Game
    config: MindConfig = eqx.field(static=True)
    num_learning: int = eqx.field(static=True, default=1)

    def start(self) -> Memory:
        spec = self.game.spec
        company = Company(jnp.zeros((spec.num_agents - 1, goal_size(self.config.goals, spec))), jnp.bool_(False))
        return _thought(minds.start(self.config, spec)), company

    def again(self, memory: Memory) -> Memory:
        thought, company = memory
        known = _thought(minds.again(self.config, self.game.spec, _only(thought.impression)))
        fresh, _ = self.start()
        return jax.tree.map(partial(jnp.where, company.told), fresh, known), company

    def __call__(
        self, observations: Observation, legal: Bool[Array, "agents actions"], memory: Memory
    ) -> tuple[Float32[Array, "agents actions"], Memory]:
        thought, company = memory
        view = jax.tree.map(lambda leaf: leaf[0], observations)
        impression = minds.perceive(self.config, self.game, self.mind, view, _only(thought.impression))
        log_probabilities, value = actor_critic.apply(self.params, view, legal[0], impression.goals)
        goal = jnp.where(company.told, company.goals, impression.goals)
        predicted = jnp.where(legal[1:], self._others(observations, impression, goal), 0.0)
        if isinstance(impression.kept, Filter):
            predicted = jnp.where(company.told, single_minded(self.game.spec, predicted, company.goals), predicted)
        probabilities = jnp.concatenate([jnp.exp(log_probabilities)[None], predicted])
        return probabilities, (_thought(impression, value), company)

    def _others(
        self, observations: Observation, impression: Impression, goal: Float32[Array, "others goal"]
    ) -> Float32[Array, "others actions"]:
        if isinstance(impression.kept, Filter):
            return jax.vmap(beliefs.predictive)(goal, impression.kept.predicted)
        seen = minds.look_at(self.game, jax.tree.map(lambda leaf: leaf[1:], observations))
        return minds.predict(self.mind, seen, goal)


def single_minded(
    spec: GameSpec, predicted: Float32[Array, "others actions"], goals: Float32[Array, "others goals"]
) -> Float32[Array, "others actions"]:
    """Who is said to want hares hunts no stag on the way, though many did who got a hare in the end.

    A goal is the next deed; `other` forbids nothing.
    """
    num_deeds = goals.shape[-1] - 1
    is_deed = np.asarray(spec.deed_actions)[:, None] == np.arange(spec.num_actions)
    unwanted = (1 - goals[:, :num_deeds]) * jnp.sum(goals[:, :num_deeds], axis=-1, keepdims=True)
    left = predicted * (1 - jnp.minimum(unwanted @ is_deed.astype(np.float32), 1.0))
    return left / jnp.maximum(jnp.sum(left, axis=-1, keepdims=True), LEAST)


def _thought(impression: Impression, value: Float32[Array, ""] | None = None) -> Thought:
    values = jnp.zeros(1, jnp.float32) if value is None else value[None]
    return Thought(values, jax.tree.map(lambda leaf: leaf[None], impression))


def _only(impression: Impression) -> Impression:
    return jax.tree.map(lambda leaf: leaf[0], impression)


class OwnGame(LearnedGame):
    """The learned world for the ego, in the first seat of its own order: when it has left, the game is over."""

    def terminated(self, state: WorldState) -> Bool[Array, " agents"]:
        ended = super().terminated(state)
        return ended | ended[0]


class Branches(eqx.Module):
    """Where imagined play of one seat begins: real views, and what the seat thought when it came there."""

    views: Observation
    """[tables]"""
    impression: Impression
    """Before it took in the view."""
    starts: Observation
    """First views of real episodes, [starts]."""


def branches(
    config: ImaginationConfig, real_steps: int, num_members: int, game: Game, tables: Table, steps: Trajectory
) -> Branches | None:
    """For each learning seat, stacked; `tables` as they are after the steps."""
    if not config.is_used:
        return None
    num_learning, num_envs = steps.legal.shape[2], len(tables.reset_before)
    thought, _ = tables.memory
    seats_first = lambda leaf: jnp.moveaxis(leaf, 1, 0)  # noqa: E731
    seen = jax.tree.map(lambda leaf: leaf[:, :num_learning], jax.vmap(game.observe)(tables.state))
    chosen = np.arange(config.num_tables(real_steps, num_members)) % num_envs
    views, impression = jax.tree.map(lambda leaf: seats_first(leaf)[:, chosen], (seen, thought.impression))
    in_game = jnp.moveaxis(steps.in_game[:, :, :num_learning], 2, 0)
    first = jax.vmap(partial(_starts, steps.reset_before))(in_game)
    flat = jax.tree.map(lambda leaf: seats_first(leaf.reshape(-1, *leaf.shape[2:])), steps.observation)
    pick = jax.vmap(lambda leaf, chosen: leaf[chosen])
    starts = jax.tree.map(lambda leaf: pick(leaf, first), flat)
    return Branches(views, impression, starts)


def _starts(reset_before: Bool[Array, "envs time"], in_game: Bool[Array, "envs time"]) -> Int32[Array, " envs"]:
    """Which steps, counted through all environments, an imagined episode of one seat may begin at.

    First states of episodes. Where no episode began in the record, states in which the seat was in the game, the
    earliest of every environment first.
    """
    num_envs, num_steps = reset_before.shape
    count = num_envs * num_steps
    steps = np.arange(count, dtype=np.int32).reshape(num_envs, num_steps)
    kind = jnp.where(reset_before, 0, jnp.where(in_game, 1, 2)).astype(jnp.int32)
    rank = kind * count + jnp.where(reset_before, steps, (steps % num_steps) * num_envs + steps // num_steps)
    first = jnp.argsort(rank.reshape(-1))[:num_envs]
    kind = kind.reshape(-1)[first]
    return jnp.where(kind == kind[0], first, first[0]).astype(jnp.int32)


def draw_company(
    config: ImaginationConfig, mind_config: MindConfig, spec: GameSpec, num_tables: int, *, key: Key[Array, ""]
) -> Company:
    """Goals that were not seen, symbols or vectors from the prior: every company of them is equally likely."""
    told_key, goal_key, urn_key = jax.random.split(key, 3)
    told = jax.random.bernoulli(told_key, config.counterfactual, (num_tables,))
    size = goal_size(mind_config.goals, spec)
    shape = (num_tables, spec.num_agents - 1)
    if mind_config.goals.kind == "continuous":
        fresh, num_goals = jax.random.normal(goal_key, (*shape, size)), shape[1]
    else:
        num_goals = max(size, 1)
        fresh = jax.nn.one_hot(jax.random.randint(goal_key, shape, 0, num_goals), size)
    return Company(_from_urn(fresh, num_goals, key=urn_key), told)


def _from_urn(
    fresh: Float32[Array, "tables others goal"], num_goals: int, *, key: Key[Array, ""]
) -> Float32[Array, "tables others goal"]:
    """Goals that come in company: each co-player has a goal of its own, or one that another has already.

    This is Polya's urn: "all three want hares" is then as likely as any other multiset of goals.
    """
    num_tables, num_others, _ = fresh.shape
    levels = jax.random.uniform(key, (num_tables, num_others))
    goals = fresh
    for other in range(1, num_others):
        ball = levels[:, other] * (num_goals + other) - num_goals
        same = goals[jnp.arange(num_tables), jnp.clip(ball.astype(jnp.int32), 0, other - 1)]
        goals = goals.at[:, other].set(jnp.where((ball >= 0)[:, None], same, fresh[:, other]))
    return goals


def imagine(
    config: ImaginationConfig,
    mind_config: MindConfig,
    game: Game,
    params: ActorCritic,
    mind: Mind,
    member: World,
    begin: Branches,
    *,
    key: Key[Array, ""],
) -> tuple[Trajectory, Float32[Array, "tables 1"]]:
    """Imagined play of one seat, [tables, time], and the values of the states that it stopped at."""
    spec = game.spec
    company_key, act_key, table_key = jax.random.split(key, 3)
    num_tables = len(begin.views.time)
    world = OwnGame(member, game, jax.vmap(partial(from_view, spec))(begin.starts))
    company = draw_company(config, mind_config, spec, num_tables, key=company_key)
    players = Imagined(params, mind, game, mind_config)
    fresh = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_tables, *leaf.shape)), players.start()[0].impression)
    really = jax.tree.map(lambda leaf: leaf[:, None], begin.impression)
    impression = _where_tables(company.told, fresh, really)
    thought = Thought(jnp.zeros((num_tables, 1), jnp.float32), impression)
    first = jax.tree.map(lambda leaf: leaf[np.arange(num_tables) % len(begin.starts.time)], world.starts)
    states = _where_tables(company.told, first, jax.vmap(partial(from_view, spec))(begin.views))
    tables = dealt_out(Table(states, (thought, company), jnp.zeros(num_tables, bool)))
    seat_keys = jax.random.split(act_key, spec.num_agents)
    _, steps, last_values = collect(world, players, tables, config.length, seat_keys=seat_keys, table_key=table_key)
    if config.reward == "zero":
        steps = replace(steps, rewards=jnp.zeros_like(steps.rewards))
    return steps, last_values


def _where_tables(flags: Bool[Array, " tables"], one, other):
    pick = lambda a, b: jnp.where(flags.reshape(-1, *[1] * (a.ndim - 1)), a, b)  # noqa: E731
    return jax.tree.map(pick, one, other)


def trust_of(config: ImaginationConfig, errors: Metrics) -> Metrics:
    """How far each model is trusted, from 0 to 1, by its error on real play."""
    good = lambda error: jnp.clip((1 - error) / (1 - TOLERATED), 0.0, 1.0)  # noqa: E731
    trust = {
        "trust/board": jnp.clip(1 - errors["wm/board_error"], 0.0, 1.0),
        "trust/reward": good(errors["wm/reward_error"]),
        "trust/end": good(errors["wm/end_error"]),
        "trust/others": good(errors["moa/misfit"]),
    }
    return trust if config.trust else jax.tree.map(jnp.ones_like, trust)


def weights_by_depth(trust: Metrics, depth: Int32[Array, "tables time"]) -> Float32[Array, "tables time"]:
    """How much an imagined step counts that lies so many imagined steps after a real state."""
    for_ever = trust["trust/reward"] * trust["trust/end"]
    each_step = trust["trust/board"] * jnp.prod(trust["trust/others"])
    weights = for_ever * each_step ** (depth + 1)
    return jnp.where(weights < LEAST_WEIGHT, 0.0, weights)


def depth_of(reset_before: Bool[Array, "tables time"]) -> Int32[Array, "tables time"]:
    """Imagined steps since the last real state, 0 for the first; an episode that begins anew begins at a real one."""
    times = jnp.arange(reset_before.shape[1], dtype=jnp.int32)
    return times - jax.lax.cummax(jnp.where(reset_before, times, 0), axis=1)


def imagined_batch(
    config: ImaginationConfig,
    mind_config: MindConfig,
    ppo_config: PPOConfig,
    game: Game,
    agent: tuple[ActorCritic, Mind, World],
    trust: Metrics,
    real: Batch,
    begin: Branches,
    *,
    key: Key[Array, ""],
) -> tuple[Batch, Metrics]:
    """Real and imagined samples of one learner, [seats, samples], and what the imagined ones are like."""
    params, mind, members = agent
    num_members, num_seats = members.cell.bias.shape[0], real.active.shape[0]
    num_tables = begin.views.time.shape[1]
    cut = lambda leaf: leaf.reshape(num_seats, num_members, -1, *leaf.shape[2:])  # noqa: E731
    views, impression = jax.tree.map(cut, (begin.views, begin.impression))
    keys = jax.random.key_data(jax.random.split(key, (num_seats, num_members)))

    def one(member, views, impression, starts, key_data):
        begin = Branches(views, impression, starts)
        key = jax.random.wrap_key_data(key_data)
        steps, last_values = imagine(config, mind_config, game, params, mind, member, begin, key=key)
        rewards = jnp.moveaxis(steps.rewards[:, :, :1], 2, 0)
        return look_back(ppo_config, steps, last_values), rewards, depth_of(steps.reset_before)[None]

    over_members = jax.vmap(one, in_axes=(0, 0, 0, None, 0))
    over_seats = jax.vmap(over_members, in_axes=(None, 0, 0, 0, 0))
    batch, rewards, depth = over_seats(members, views, impression, begin.starts, keys)
    batch, rewards, depth = jax.tree.map(
        lambda leaf: leaf.reshape(num_seats, num_tables * config.length, *leaf.shape[5:]), (batch, rewards, depth)
    )
    weights = weights_by_depth(trust, depth)
    count = lambda mask: jnp.sum(mask, dtype=jnp.float32)  # noqa: E731
    used = batch.active & (weights > 0)
    metrics = {
        "imagined/weight": weighted_mean(weights, batch.active),
        "imagined/depth": weighted_mean(depth.astype(jnp.float32), used),
        "count/samples/imagined": count(used),
    }
    for name, numbers in (("reward", rewards), ("return", batch.targets), ("old_value", batch.values)):
        metrics |= jax.tree.map(lambda leaf: leaf[0], spread(f"imagined/{name}", numbers[None], batch.active[None]))
    return mixed(config, real, batch, weights), metrics


def mixed(config: ImaginationConfig, real: Batch, imagined: Batch, weights: Float32[Array, "seats samples"]) -> Batch:
    """One batch, [seats, samples]; what is not trusted at all is no data."""
    ones = jnp.ones(real.active.shape, jnp.float32)
    of_critic = {"all": jnp.ones_like(weights), "real": jnp.zeros_like(weights), "weighted": weights}[config.critic]
    real = replace(real, source=Source(jnp.zeros_like(real.active), ones, ones))
    source = Source(jnp.ones_like(imagined.active), weights, of_critic)
    imagined = replace(imagined, active=imagined.active & (weights > 0), source=source)
    return jax.tree.map(lambda one, other: jnp.concatenate([one, other], axis=1), real, imagined)
