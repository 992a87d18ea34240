"""How well trained seats predict the players of recorded episodes, such as those of people."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32

from hopplus.agents.opponents import modelled_players, modelled_views, opponent_inputs
from hopplus.agents.player import Player
from hopplus.evaluation.prediction import Predictions, score
from hopplus.games.fields import Observation
from hopplus.games.game import Game
from hopplus.learning.offline import Episodes, views


def predict_recorded(
    game: Game, players: Sequence[Player], episodes: Episodes
) -> Float32[np.ndarray, "episodes steps agents others actions"]:
    """What the player of every seat would have predicted of its co-players; `players` has one for each seat."""
    seen, _ = views(game, episodes)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *players)

    def one_seat(player: Player, observations: Observation) -> Float32[Array, "steps others actions"]:
        def one_step(state: Any, observation: Observation) -> tuple[Any, Array]:
            state = player.update_beliefs(observation, state)
            inputs = opponent_inputs(game, modelled_views(game.spec, observation))
            return state, player.goals.expected(player.opponents, inputs, state.goals)

        return jax.lax.scan(one_step, player.init(), observations)[1]

    over_seats = jax.vmap(one_seat, in_axes=(0, 1), out_axes=1)
    return np.asarray(jax.jit(jax.vmap(over_seats, in_axes=(None, 0)))(stacked, seen))


def judge_recorded(
    game: Game, expected: np.ndarray, episodes: Episodes, seats: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Scores of all predictions together, and by the player that was predicted; `seats` names it by episode."""
    actions, in_game = np.asarray(episodes.actions), np.asarray(episodes.in_game)
    names = tuple(dict.fromkeys(name for one in seats for name in one))
    kinds = np.array([[names.index(name) for name in one] for one in seats])
    steps = actions.shape[1]
    last = np.concatenate([np.full_like(actions[:, :1], -1), np.where(in_game, actions, -1)[:, :-1]], axis=1)
    times = np.broadcast_to(np.arange(steps)[None] / game.spec.horizon, actions.shape[:2])
    parts = []
    for viewer, modelled in enumerate(modelled_players(game.spec)):
        for place, other in enumerate(modelled):
            both = in_game[..., viewer] & in_game[..., other]
            predicted = expected[..., viewer, place, :][both]
            predicted = predicted / predicted.sum(axis=-1, keepdims=True)
            kind = np.broadcast_to(kinds[:, other, None], both.shape)
            parts.append((predicted, actions[..., other][both], last[..., other][both], kind[both], times[both]))
    probabilities, taken, before, kind, time = (np.concatenate(column) for column in zip(*parts, strict=True))
    predictions = Predictions(probabilities, taken, None, before, kind, names, time)
    return {"models": {"others": score(predictions, game.spec.action_names)}, "players": list(names)}
