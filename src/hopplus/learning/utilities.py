"""Hidden utilities: self-play in which some seats are after something else than the game's reward.

In a share of the environments a seat may be paid for one kind of event only, or act at random, for some episodes in a
row; other seats do not see it. Such a seat does not take the actions of other events. The policy reads what it is paid
for, so one network plays all kinds of players, and learns to play with them. Self-play alone settles on one convention
and shows no other. (Hidden-utility self-play, Yu et al., 2023; rewards are the game's events.)

A seat's kind is a number: 0 for the game's reward, 1 for its first event and so on; the number after the last event is
a seat that acts at random, from which no policy learns.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Key

from hopplus.core.numerics import Metrics, evenly_spread
from hopplus.games.game import GameSpec
from hopplus.learning.config import UtilitiesConfig
from hopplus.learning.ppo import Batch
from hopplus.learning.rollout import Trajectory, acts_at_random, legal_for, own_goal


def is_mixed(config: UtilitiesConfig, num_envs: int) -> Bool[np.ndarray, " envs"]:
    """The environments in which seats may have a hidden utility, evenly spread."""
    return evenly_spread(config.share, num_envs)


def draw_kinds(
    config: UtilitiesConfig,
    spec: GameSpec,
    num_envs: int,
    *,
    seat_keys: Key[Array, " seats"],
    env_key: Key[Array, ""],
) -> Int32[Array, "envs seats"]:
    """The kinds of the seats in their next episodes.

    Each seat keeps the game's reward with a chance of `own`. The other kinds have chances that are drawn for each
    environment, so that every multiset of kinds is equally likely, as in Polya's urn.
    """
    num_kinds = len(spec.events) + 1
    chances = jax.random.dirichlet(env_key, jnp.ones(num_kinds), (num_envs,))
    below = jnp.cumsum(chances, axis=-1)[:, :-1]

    def one_seat(key: Key[Array, ""]) -> Int32[Array, " envs"]:
        own, kind = jax.random.uniform(key, (2, num_envs))
        kind = 1 + jnp.sum(kind[:, None] >= below, axis=-1)
        return jnp.where((own < config.own) | ~is_mixed(config, num_envs), 0, kind).astype(jnp.int32)

    return jax.vmap(one_seat)(seat_keys).T


def paid(spec: GameSpec, steps: Trajectory, reward: float) -> Trajectory:
    """The steps with what each seat is paid: the game's rewards, or `reward` for its event."""
    kinds = steps.all_kinds
    assert kinds is not None
    numbers = 1 + jnp.arange(len(spec.events))[:, None]
    occurred = jnp.any(steps.events & (kinds[..., None, :] == numbers), axis=-2)
    rewards = jnp.where(kinds == 0, steps.rewards, jnp.where(occurred, reward, 0.0))
    return replace(steps, rewards=rewards.astype(steps.rewards.dtype))


def reached(spec: GameSpec, steps: Trajectory) -> Metrics:
    """For each kind of event, how often seats that are paid for it reach it in an episode."""
    kinds = steps.all_kinds
    assert kinds is not None
    metrics = {}
    for index, event in enumerate(spec.events):
        wants = kinds == index + 1
        starts = jnp.sum(wants & steps.reset_before[..., None])
        metrics[f"utilities/{event.name}"] = jnp.sum(wants & steps.events[..., index, :]) / jnp.maximum(starts, 1)
    return metrics


def with_kinds(spec: GameSpec, batch: Batch, kinds: Int32[Array, "envs time seats"]) -> Batch:
    """The samples [seats, envs, time] with the own kind after the co-players' goals, and without random play.

    Legal actions are those that the seat chose from.
    """
    kinds = jnp.moveaxis(kinds, 2, 0)
    goals = jnp.concatenate([batch.goals, own_goal(kinds, batch.goals.shape[-1])[..., None, :]], axis=-2)
    legal = legal_for(spec, batch.legal, kinds)
    return replace(batch, goals=goals, legal=legal, active=batch.active & ~acts_at_random(spec, kinds))
