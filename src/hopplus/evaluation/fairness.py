"""Tests whether a game is fair: every seat plays at random, and equal seats have equal mean returns.

Two tests, because they miss different faults: does any seat's mean differ from the mean of all (intervals, 99.9% for
all seats together), and do returns rise or fall with the seat's number (Page's test, in both directions)?
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Float32, Key

from hopplus.games.coplayers import Lineup, Random
from hopplus.games.game import Game
from hopplus.games.rollout import play_episode
from hopplus_doctor.p_values import p_words
from hopplus_doctor.statistics import NUM_BLOCKS, Interval, Trend, mean_interval, page_trend

CONFIDENCE = 0.999
NUM_ENVS, NUM_ENVS_IN_PYTHON = 4096, 256
"""Episodes of a batch; the second for a game that is not compiled, which is slow."""
MIN_EPISODES = 2 * NUM_BLOCKS


@dataclass(frozen=True)
class Fairness:
    """The returns of each seat of a game under random play."""

    episodes: int
    returns: tuple[Interval, ...]
    """The return of each seat, at 99.9%."""
    advantages: tuple[Interval, ...]
    """The return of each seat minus the mean of all seats of its role, at 99.9% for all seats together."""
    trend: Trend | None
    """None if the seats never differ or have different roles, because there is nothing to rank."""

    @property
    def fault(self) -> str | None:
        """A sentence that names the unfairness; None if the game passes both tests."""
        for seat, advantage in enumerate(self.advantages, start=1):
            if 0.0 not in advantage:
                return (
                    f"seat {seat} gets {advantage.estimate:+.4f} more than the mean of all seats "
                    f"(99.9% interval {advantage.low:+.4f} to {advantage.high:+.4f})"
                )
        if self.trend and self.trend.p_value < 1 - CONFIDENCE:
            test = f"Page's test, {p_words(self.trend.p_value)}"
            return f"returns are {self.trend.direction} with the seat's number ({test})"
        return None


def measure(game: Game, episodes: int, *, seed: int = 0, on_batch: Callable[[int], None] | None = None) -> Fairness:
    """Play that many episodes at random and test them; `on_batch` gets the number of episodes of each batch."""
    returns = random_returns(game, episodes, seed=seed, on_batch=on_batch)
    return judge(returns, list(game.spec.seats_by_role.values()))


def random_returns(
    game: Game, episodes: int, *, seed: int = 0, on_batch: Callable[[int], None] | None = None
) -> np.ndarray:
    """[episodes, seats]: the return of each seat when all seats play at random."""
    random_lineup = Lineup((Random(),) * game.spec.num_agents)

    @jax.jit
    def play(key: Key[Array, ""]) -> Float32[Array, "envs agents"]:
        def one(key):
            return play_episode(game, random_lineup, key=key).returns

        return jax.vmap(one)(jax.random.split(key, min(batch_size(game), episodes)))

    key = jax.random.key(seed)
    batches, played = [], 0
    while played < episodes:
        batch = np.asarray(play(jax.random.fold_in(key, len(batches))))[: episodes - played]
        batches.append(batch)
        played += len(batch)
        if on_batch:
            on_batch(len(batch))
    return np.concatenate(batches)


def batch_size(game: Game) -> int:
    """How many episodes are played at once."""
    return NUM_ENVS if game.is_compiled else NUM_ENVS_IN_PYTHON


def judge(returns: np.ndarray, groups: Sequence[Sequence[int]] = ()) -> Fairness:
    """The verdict on [episodes, seats] of returns. Seats are compared within their group; by default all are one."""
    seats = returns.shape[1]
    groups = groups or [range(seats)]
    if len(returns) < MIN_EPISODES:
        raise ValueError(f"{len(returns)} episodes are too few to judge by; play at least {MIN_EPISODES}")
    over_mean = returns.astype(np.float64)
    for group in groups:
        over_mean[:, group] -= returns[:, group].mean(axis=1, keepdims=True, dtype=np.float64)
    together = 1 - (1 - CONFIDENCE) / seats
    blocks = returns[: len(returns) - len(returns) % NUM_BLOCKS].reshape(NUM_BLOCKS, -1, seats).mean(axis=1)
    return Fairness(
        episodes=len(returns),
        returns=tuple(mean_interval(returns[:, seat], confidence=CONFIDENCE) for seat in range(seats)),
        advantages=tuple(mean_interval(over_mean[:, seat], confidence=together) for seat in range(seats)),
        trend=page_trend(blocks) if len(groups) == 1 and seats > 2 and np.any(np.ptp(blocks, axis=1) > 0) else None,
    )
