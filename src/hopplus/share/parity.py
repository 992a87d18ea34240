"""Episodes that Python plays, with everything that a page must compute alike: states, rewards, ends, probabilities,
beliefs, and the actions that given random numbers choose. `web/src/parity.ts` compares a page with them."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.agents.player import Player
from hopplus.games.coplayers import Lineup, Policy
from hopplus.games.game import Game
from hopplus.games.rollout import random_uniforms, sample_actions
from hopplus.runs.checkpoints import by_name

Recorded = dict[str, Any]


def record(
    game: Game, policies: Sequence[Policy], seats: Sequence[str], count: int, *, series: int = 2, seed: int = 0
) -> list[Recorded]:
    """Episodes of a line-up, in series in which players remember; `seats` are their names in the page."""
    lineup, horizon = Lineup(tuple(policies)), game.spec.horizon
    groups = {
        int(seat): (group, place) for group, (_, of) in enumerate(lineup.groups()) for place, seat in enumerate(of)
    }
    is_player = [isinstance(policy, Player) and policy.goals.size > 0 for policy in policies]

    def goals_of(policy_state: Any) -> list[Any]:
        return [policy_state[groups[seat][0]].goals[groups[seat][1]] for seat, is_one in enumerate(is_player) if is_one]

    def one_step(carry, random):
        state, policy_state = carry
        uniforms, numbers = random
        over_before = jnp.all(game.terminated(state))
        probabilities, after = lineup(game.observe(state), game.legal(state), policy_state)
        actions = sample_actions(probabilities, uniforms=uniforms)
        new, rewards = game.step(state, actions, key=jax.random.wrap_key_data(numbers))
        # A series goes on with what the players remember of the last step of an episode, not of the padding after it.
        after = jax.tree.map(lambda one, other: jnp.where(over_before, one, other), policy_state, after)
        said = (
            state,
            new,
            rewards,
            game.terminated(new),
            actions,
            probabilities,
            goals_of(after),
            uniforms,
            numbers,
            over_before,
        )
        return (new, after), said

    def one_episode(policy_state, key):
        reset_key, act_key, step_key = jax.random.split(key, 3)
        numbers = jax.random.key_data(jax.random.split(step_key, horizon))
        random = random_uniforms(horizon, game.spec.num_agents, key=act_key), numbers
        (_, after), said = jax.lax.scan(one_step, (game.reset(key=reset_key), policy_state), random)
        return lineup.next_episode(after), said

    def one_series(numbers):
        keys = jax.random.key_data(jax.random.split(jax.random.wrap_key_data(numbers), series))
        return jax.lax.scan(lambda state, one: one_episode(state, jax.random.wrap_key_data(one)), lineup.init(), keys)[
            1
        ]

    keys = jax.random.key_data(jax.random.split(jax.random.key(seed), -(-count // series)))
    said = jax.device_get(jax.jit(lambda keys: jax.lax.map(one_series, keys, batch_size=64))(keys))
    return [
        _episode(jax.tree.map(lambda leaf, row=row, one=one: leaf[row, one], said), seats, is_player, one > 0)
        for row in range(len(keys))
        for one in range(series)
    ][:count]


def _episode(said: Any, seats: Sequence[str], is_player: Sequence[bool], remembering: bool) -> Recorded:
    before, after, rewards, over, actions, probabilities, goals, uniforms, numbers, over_before = said
    steps = int(np.sum(~over_before))
    by_seat = iter(goals)
    of_seats = [next(by_seat)[:steps].tolist() if is_one else None for is_one in is_player]
    return {
        "seats": list(seats),
        "first": state_json(before, 0),
        "actions": actions[:steps].tolist(),
        "after": [state_json(after, step) for step in range(steps)],
        "rewards": rewards[:steps].tolist(),
        "over": over[:steps].tolist(),
        "probabilities": probabilities[:steps].tolist(),
        "goals": [[None if one is None else one[step] for one in of_seats] for step in range(steps)],
        "uniforms": uniforms[:steps].tolist(),
        "keys": numbers[:steps].tolist(),
        "sampled": actions[:steps].tolist(),
        "remembering": remembering,
    }


def state_json(states: Any, step: int) -> dict[str, Any]:
    """A state as JSON: numbers and flat lists by the names of its fields."""
    return {
        name: np.asarray(leaf[step]).reshape(-1).tolist() if leaf.ndim > 1 else leaf[step].item()
        for name, leaf in by_name(states).items()
    }
