"""Play a game at random until a budget is spent."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Float64, Key

from hopplus.evaluation.fairness import batch_size
from hopplus.games.coplayers import Lineup, Random
from hopplus.games.game import NO_ACTION, Game
from hopplus.games.rollout import Episode, play_episode
from hopplus_doctor.answer import OnProgress
from hopplus_doctor.random_play import Budget


@dataclass(frozen=True)
class GamePlayed:
    """Returns and ties of each seat, for many episodes of a game of hopplus."""

    returns: Float64[np.ndarray, "episodes seats"]
    tie_excess: Float64[np.ndarray, "episodes seats"]
    """A seat's share of the reward of a tie, minus an equal share, summed over its ties."""
    ties: Float64[np.ndarray, "episodes seats"]
    """The number of a seat's ties."""


def play_game(game: Game, *, budget: Budget, seed: int, on_progress: OnProgress) -> GamePlayed:
    """Play whole batches of episodes until the budget is spent, and at least one batch."""
    players = Lineup((Random(),) * game.spec.num_agents)

    def one_env(key: Key[Array, ""]) -> tuple[Float32[Array, " agents"], ...]:
        episode = play_episode(game, players, key=key)
        return episode.returns, *_ties(game, episode)

    batch = jax.jit(jax.vmap(one_env))
    batches, played, num_envs = [], 0, batch_size(game)
    while not played or not budget.is_spent(played):
        key = jax.random.fold_in(jax.random.key(seed), len(batches))
        batches.append(jax.device_get(batch(jax.random.split(key, num_envs))))
        played += num_envs
        on_progress(f"random play: {played:,} episodes")
    return GamePlayed(*(np.concatenate(parts).astype(np.float64) for parts in zip(*batches, strict=True)))


def _ties(game: Game, episode: Episode) -> tuple[Float32[Array, " agents"], Float32[Array, " agents"]]:
    """Each seat's excess share and its number of ties: steps in which several seats do the same event and at least one
    of them is paid for it."""
    events = np.array([action for action in game.spec.event_actions if action != NO_ACTION], np.int32)
    legal = jax.vmap(game.legal)(jax.tree.map(lambda leaf: leaf[:-1], episode.states))
    did: Bool[Array, "steps agents events"] = (episode.actions[..., None] == events) & legal[..., events]
    paid = jnp.where(did, episode.rewards[..., None], 0.0)
    doers, pot = jnp.sum(did, axis=1, keepdims=True), jnp.sum(paid, axis=1, keepdims=True)
    tied = did & (doers > 1) & (pot > 0)
    excess = jnp.where(tied, paid / jnp.where(pot > 0, pot, 1.0) - 1 / jnp.maximum(doers, 1), 0.0)
    return jnp.sum(excess, axis=(0, 2)), jnp.sum(tied, axis=(0, 2), dtype=jnp.float32)
