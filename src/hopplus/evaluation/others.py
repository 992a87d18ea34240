"""How well trained seats predict each other's actions, and whether the goals that they infer change their own."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.agents.opponents import modelled_players, modelled_views, opponent_inputs
from hopplus.agents.player import Player
from hopplus.evaluation.prediction import NO_LAST_ACTION, Predictions, score
from hopplus.games.coplayers import Lineup
from hopplus.games.fields import Observation
from hopplus.games.game import Game
from hopplus.games.rollout import Step, init_env, rollout
from hopplus.models import actor_critic


class Seen(eqx.Module):
    """Recorded play, [envs, steps, ...]."""

    observation: Observation
    """One for every seat."""
    legal: Bool[Array, "*batch agents actions"]
    actions: Int32[Array, "*batch agents"]
    probabilities: Float32[Array, "*batch agents actions"]
    """The distribution that each seat sampled from."""
    in_game: Bool[Array, "*batch agents"]
    over: Bool[Array, "*batch"]
    goals: Float32[Array, "*batch seats others goal"]
    """The goals of the others as inferred by the seats that have opponent models."""


class Watched(eqx.Module):
    """Recorded play, what the seats predicted of their co-players, and their policies with other goals."""

    seen: Seen
    expected: Float32[Array, "*batch seats others actions"]
    policy: Float32[Array, "*batch seats actions"]
    shuffled: Float32[Array, "*batch seats actions"]
    """The seats' policies with the goals inferred in another environment at the same time."""
    mean: Float32[Array, "*batch seats actions"]
    """The seats' policies with the mean of all goals."""


def watch(game: Game, lineup: Lineup, num_envs: int, *, num_seeds: int, key: Key[Array, ""]) -> Watched:
    """Play one horizon in many environments; the arrays of the line-up and of the result have a leading axis of seeds.

    Players with opponent models must sit before those without.
    """
    arrays, static = eqx.partition(lineup, eqx.is_array)

    def one_seed(given):
        return _watch_one_seed(game, eqx.combine(given[0], static), num_envs, given[1])

    return jax.device_get(jax.jit(partial(jax.lax.map, one_seed))((arrays, jax.random.split(key, num_seeds))))


def _watch_one_seed(game: Game, lineup: Lineup, num_envs: int, key: Key[Array, ""]) -> Watched:
    players = [policy for policy in lineup.policies if isinstance(policy, Player)]
    play_key, shuffle_key = jax.random.split(key)

    def record(step: Step) -> Seen:
        goals = [policy_state.goals[0] for policy_state in step.policy_state[: len(players)]]
        return Seen(
            observation=step.observation,
            legal=step.legal,
            actions=step.actions,
            probabilities=step.probabilities,
            in_game=~game.terminated(step.state),
            over=jnp.all(step.terminated_after),
            goals=jnp.stack(goals),
        )

    def one_env(key):
        open_key, steps_key = jax.random.split(key)
        env = init_env(game, lineup, key=open_key)
        return rollout(game, lineup, env, game.spec.horizon, key=steps_key, record=record)[1]

    seen = jax.vmap(one_env)(jax.random.split(play_key, num_envs))
    other_envs = jax.random.permutation(shuffle_key, num_envs)
    mean = jnp.mean(seen.goals, axis=(0, 1), where=seen.in_game[:, :, : len(players), None, None])
    return Watched(
        seen=seen,
        expected=_by_player(players, partial(_expect, game), seen, seen.goals),
        policy=_by_player(players, _act, seen, seen.goals),
        shuffled=_by_player(players, _act, seen, seen.goals[other_envs]),
        mean=_by_player(players, _act, seen, jnp.broadcast_to(mean, seen.goals.shape)),
    )


def _by_player(players: Sequence[Player], fn: Any, seen: Seen, goals: Float32[Array, "envs steps seats others goal"]):
    """`fn` for each seat that has opponent models, in all environments and steps: [envs, steps, seats, ...]."""
    results = []
    for seat, player in enumerate(players):
        own = jax.tree.map(lambda leaf, seat=seat: leaf[:, :, seat], (seen.observation, seen.legal, goals))
        results.append(jax.vmap(jax.vmap(partial(fn, player)))(*own))
    return jnp.stack(results, axis=2)


def _expect(game: Game, player: Player, observation, legal, goal) -> Float32[Array, "others actions"]:
    del legal
    inputs = opponent_inputs(game, modelled_views(game.spec, observation))
    return player.goals.expected(player.opponents, inputs, goal)


def _act(player: Player, observation, legal, goal) -> Float32[Array, " actions"]:
    inputs = player.policy_inputs(observation, goal)
    return jnp.exp(actor_critic.apply(player.params, observation, legal, inputs)[0])


def judge(game: Game, watched: Watched, names: Sequence[str]) -> dict[str, Any]:
    """Scores of all pairs together and of each pair, and the use of goals; `names` are those of the seats."""
    spec, seen = game.spec, watched.seen
    num_seats = watched.expected.shape[3]
    modelled = modelled_players(spec)[:num_seats]
    kinds = {name: index for index, name in enumerate(dict.fromkeys(names))}
    pairs, parts = [], []
    for seat in range(num_seats):
        for place, other in enumerate(modelled[seat]):
            both = np.asarray(seen.in_game[..., seat] & seen.in_game[..., other])
            part = _pair(watched, seat, place, int(other), both, kinds[names[int(other)]], tuple(kinds))
            pairs.append(_pair_row(part, both, seat, int(other)))
            parts.append(part)
    every = Predictions(
        **{
            field: np.concatenate([getattr(part, field) for part in parts])
            for field in ("probabilities", "actions", "best", "last_actions", "kinds", "times")
        },
        kind_names=tuple(kinds),
    )
    return {"models": {"others": score(every, spec.action_names)}, "pairs": pairs, "use": use_of_goals(watched)}


def _pair(
    watched: Watched, seat: int, place: int, other: int, both: np.ndarray, kind: int, kind_names: tuple[str, ...]
) -> Predictions:
    seen = watched.seen
    count = int(both.sum())
    predicted = np.asarray(watched.expected)[..., seat, place, :][both]
    return Predictions(
        probabilities=predicted / predicted.sum(axis=-1, keepdims=True),
        actions=np.asarray(seen.actions)[..., other][both],
        best=np.asarray(seen.probabilities)[..., other, :][both],
        last_actions=_own_entry(seen.observation.get("last_actions"), other, both, NO_LAST_ACTION),
        kinds=np.full(count, kind),
        kind_names=kind_names,
        times=_own_entry(seen.observation.get("time"), other, both, 0),
    )


def _own_entry(field: Any, other: int, both: np.ndarray, absent: int) -> np.ndarray:
    """What the co-player's view says of itself in the steps with both; the same number where views do not say it."""
    if field is None:
        return np.full(int(both.sum()), absent)
    of_other = np.asarray(field)[..., other, :] if np.ndim(field) > both.ndim + 1 else np.asarray(field)[..., other]
    return (of_other[..., 0] if of_other.ndim > both.ndim else of_other)[both]


def _pair_row(part: Predictions, both: np.ndarray, seat: int, other: int) -> dict[str, Any]:
    """The scores of one pair: of all seeds together, and the ratio of the lowest seed."""
    assert part.best is not None
    right, ceiling = part.best[np.arange(len(part.actions)), part.probabilities.argmax(-1)], part.best.max(-1)
    ends = np.cumsum(both.reshape(len(both), -1).sum(axis=-1))[:-1]
    by_seed = [
        float(one.sum() / best.sum())
        for one, best in zip(np.split(right, ends), np.split(ceiling, ends), strict=True)
        if len(one)
    ]
    return {
        "player": f"player_{seat + 1}",
        "other": f"player_{other + 1}",
        "top1": float(right.mean()),
        "ceiling": float(ceiling.mean()),
        "ratio": float(right.sum() / ceiling.sum()),
        "lowest_seed": min(by_seed),
    }


def use_of_goals(watched: Watched) -> dict[str, Any]:
    """How much the policies change when the inferred goals are replaced: 0 means that they are not used."""
    num_seats = watched.policy.shape[-2]
    playing = np.asarray(watched.seen.in_game)[..., :num_seats]
    policy = np.asarray(watched.policy)[playing]
    return {
        name: {
            "total_variation": float(np.mean(0.5 * np.abs(policy - replaced).sum(axis=-1))),
            "other_likeliest_action": float(np.mean(policy.argmax(-1) != replaced.argmax(-1))),
        }
        for name, replaced in (
            ("shuffled", np.asarray(watched.shuffled)[playing]),
            ("mean", np.asarray(watched.mean)[playing]),
        )
    }
