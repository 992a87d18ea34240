"""The promises of every game, checked by playing it; for the games of hopplus and for your own.

    from hopplus.games import contract
    contract.check(MyGame())          # raises BrokenGameError and names each fault

Each promise is one function that returns None, or a sentence that names the fault. Situations come from random play
that prefers rare actions, so that hunts and other interactions of players are frequent enough to test.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Key

from hopplus.games import promises
from hopplus.games.coplayers import Lineup, Policy
from hopplus.games.fields import Observation
from hopplus.games.game import Game, capabilities
from hopplus.games.promises import NUM_ENVS_IN_PYTHON, Situations
from hopplus.games.rollout import init_env, rollout

NUM_ENVS, NUM_STEPS = 512, 32
MOST_VIEWS = 8 * NUM_ENVS
"""The most views of a step: with more than eight seats there are fewer environments."""


class BrokenGameError(AssertionError):
    """A game breaks a promise of `Game`."""


@dataclass(frozen=True)
class Finding:
    """One promise, and how the game breaks it; `fault` is None if it does not."""

    name: str
    promise: str
    fault: str | None
    unchecked: str | None = None
    """Why the promise does not apply to this game."""


class Eager(Policy):
    """Random play in which an action is more likely if it is rarely legal."""

    weights: Float32[Array, " actions"]

    def init(self) -> tuple:
        return ()

    def __call__(self, observation: Observation, legal: Bool[Array, " actions"], policy_state: tuple):
        weights = jnp.where(legal, self.weights, 0.0)
        return weights / jnp.sum(weights), policy_state


def check(game: Game, *, only: Collection[str] = (), seed: int = 0) -> list[Finding]:
    """Check all promises, or those that `only` names; raise BrokenGameError with every fault."""
    findings = list(examine(game, only=only, seed=seed))
    faults = [f"{finding.name}: {finding.fault}" for finding in findings if finding.fault]
    if faults:
        raise BrokenGameError("\n".join(faults))
    return findings


def examine(game: Game, *, only: Collection[str] = (), seed: int = 0) -> Iterator[Finding]:
    """Yield the finding of each promise as it is checked."""
    known = [promise[0] for promise in (*PROMISES_OF_A_RESET, *PROMISES_OF_PLAY)]
    if unknown := set(only) - set(known):
        raise ValueError(f"there is no promise called {sorted(unknown)[0]!r}; give one of {', '.join(known)}")
    play_key, *keys = jax.random.split(jax.random.key(seed), 1 + len(PROMISES_OF_A_RESET))
    for (name, promise, needs, judge), key in zip(PROMISES_OF_A_RESET, keys, strict=True):
        if not only or name in only:
            yield _finding(name, promise, needs, judge, game, key)
    of_play = [promise for promise in PROMISES_OF_PLAY if not only or promise[0] in only]
    if not of_play:
        return
    try:
        situations = _situations(game, key=play_key)
    except Exception as error:
        yield Finding("plays", "random play runs", f"random play fails: {_first_line(error)}")
        return
    for name, promise, needs, judge in of_play:
        yield _finding(name, promise, needs, judge, game, situations)


def _finding(
    name: str, promise: str, needs: tuple[str, ...], judge: Callable[[Game, Any], str | None], game: Game, material: Any
) -> Finding:
    offered = {*capabilities(game), *(() if game.spec.roles else (ONE_ROLE,))}
    if missing := [need for need in needs if need not in offered]:
        return Finding(name, promise, None, UNCHECKED[missing[0]])
    return Finding(name, promise, _judge(judge, game, material))


def _judge(judge: Callable[[Game, Any], str | None], game: Game, material: Any) -> str | None:
    try:
        return judge(game, material)
    except Exception as error:  # a user's game can fail in any way; the finding says how
        return f"fails with {type(error).__name__}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def _situations(game: Game, *, key: Key[Array, ""]) -> Situations:
    env_key, play_key = jax.random.split(key)

    def play(env_keys: Key[Array, " envs"], play_keys: Key[Array, " envs"]) -> Any:
        first = jax.vmap(lambda key: game.legal(game.reset(key=key)))(jax.random.clone(env_keys))
        eager = Eager(1.0 / jnp.maximum(jnp.mean(first, axis=(0, 1)), 0.05))
        seats = Lineup((eager,) * game.spec.num_agents)

        def one_env(env_key: Key[Array, ""], play_key: Key[Array, ""]) -> Any:
            env = init_env(game, seats, key=env_key)

            def record(step):
                return (step.state, step.actions)

            return rollout(game, seats, env, NUM_STEPS, key=play_key, record=record)[1]

        return jax.vmap(one_env)(env_keys, play_keys)

    num_envs = min(NUM_ENVS, MOST_VIEWS // game.spec.num_agents) if game.is_compiled else NUM_ENVS_IN_PYTHON
    keys = (jax.random.split(each, num_envs) for each in (env_key, play_key))
    played = jax.jit(play)(*keys)
    states, actions = jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:]), played)
    return Situations(states, actions, jnp.arange(len(actions), dtype=jnp.int32))


ONE_ROLE = "one role"
UNCHECKED = {
    "relabel": "the game has no `permute`; random play tests its seats instead",
    "board": "the game has no board",
    ONE_ROLE: "the seats have different roles, so they cannot be rotated",
}
"""Why a promise is not checked, by what it needs."""
PROMISES_OF_A_RESET = (
    ("shapes", "every array has the shape and dtype of the spec; a step keeps the state's", (), promises.judge_shapes),
    ("keys", "no random key is used twice", (), promises.judge_keys),
    ("spawns", "all seats start an episode with the same distribution", ("board",), promises.judge_spawns),
)
PROMISES_OF_PLAY = (
    (
        "same bits",
        "the same state, actions and key give the same bits, compiled or not; to rounding if others compute them",
        (),
        promises.judge_same_bits,
    ),
    ("batch", "an environment in a batch plays as it would alone", (), promises.judge_batch),
    ("rewards", "rewards are finite and in the declared support", (), promises.judge_rewards),
    ("views", "views are finite and within what the spec declares", (), promises.judge_views),
    (
        "legal",
        "every seat has a legal action; an illegal one acts as stay, or as the first legal one",
        (),
        promises.judge_legal,
    ),
    (
        "termination",
        "a seat that is done stays done and gets nothing; the horizon ends all",
        (),
        promises.judge_termination,
    ),
    ("seats", "relabelling the seats relabels the outcome, bit for bit", ("relabel",), promises.judge_seats),
    ("ego views", "every seat sees itself first", ("board",), promises.judge_ego_views),
    ("rotated views", "rotating the seats rotates the views", ("relabel", ONE_ROLE), promises.judge_rotated_views),
    (
        "planes",
        "walkers walk one cell at a time and return only where declared; fixed planes are fixed",
        ("board",),
        promises.judge_plane_kinds,
    ),
)
"""Name, what is promised, the capabilities that it needs, and the function that judges it."""
