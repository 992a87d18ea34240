"""Line-ups from names of scripts and from your own players; each player is checked when the line-up is made."""

import ast
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Key

from hopplus.core.extensions import OBJECT, is_own, make_own, thing_of, words_of
from hopplus.games.coplayers import SCRIPTS, Lineup, Policy, scripts_for
from hopplus.games.game import Game, GameSpec
from hopplus.games.rollout import random_uniforms, sample_actions

NUM_EPISODES = 16
"""Episodes of random play in which your own player is checked."""
ROUNDING = 1e-3
"""The tolerance of the sum of its probabilities."""
FAULTS = (
    "gives a probability that is not finite",
    "gives a negative probability",
    "gives probabilities that do not sum to 1",
    "gives an illegal action a probability above 0",
)


def lineup(players: str | Sequence[Any], game: Game) -> Lineup:
    """A line-up from text such as `nearest_stag,patient_stag(3),random`, or from a list of names and players.

    Your own players are checked on states of random play; an answer that is no distribution over legal actions raises.
    """
    spec, policies = game.spec, read_policies(players, game)
    if len(policies) != spec.num_agents:
        raise ValueError(
            f"the line-up {players!r} names {len(policies)} players, but {spec.name} has {spec.num_agents} seats; "
            "name one for each seat"
        )
    return Lineup(policies)


def read_policies(players: str | Sequence[Any], game: Game) -> tuple[Policy, ...]:
    """The players of a comma-separated text, or of a list of texts and players, in order. Your own are checked.

    A text names a script, or MODULE:FACTORY. The factory gets the game's spec and the values in brackets.
    """
    parts = [players] if isinstance(players, str) else players
    policies: list[Policy] = []
    for part in parts:
        if (thing := thing_of(part)) is not None:
            policies += read_policies(thing if isinstance(thing, Sequence) else [thing], game)
        elif isinstance(part, str):
            policies += [_read_part(text, game) for text in split(part)]
        else:
            policies.append(check_policy(part, game))
    return tuple(policies)


def seat_names(players: str | Sequence[Any]) -> list[str]:
    """One name for each seat of a line-up."""
    parts = [players] if isinstance(players, str) else players
    names: list[str] = []
    for part in parts:
        names += [_tidy(text) for text in split(part)] if isinstance(part, str) else [type(part).__name__]
    return names


def split(text: str) -> list[str]:
    """Split a text at the commas that are not inside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _tidy(text: str) -> str:
    if text.startswith(OBJECT):
        return text.rpartition(":")[2]
    return text if is_own(text.partition("(")[0]) else ast.unparse(_parse(text))


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(
            f"cannot read the line-up {text!r}; write names with commas, as in nearest_stag,patient_stag(3),random"
        ) from None


def _read_part(text: str, game: Game) -> Policy:
    name, _, values = text.partition("(")
    if not is_own(name.strip()):
        return _read_policy(_parse(text), game.spec)
    call = _parse(f"own({values}") if values else None
    arguments = [_read_value(argument, game.spec) for argument in call.args] if isinstance(call, ast.Call) else []
    return check_policy(make_own(name.strip(), "script", Policy, game.spec, *arguments), game)


def check_policy(policy: Any, game: Game) -> Policy:
    """The policy itself; raises if its answers are no distributions over the legal actions.

    It is checked in every seat of some episodes of random play.
    """
    name = type(policy).__name__
    if not isinstance(policy, Policy):
        raise ValueError(f"{name} is no player; subclass hopplus.games.Policy")
    expected = (game.spec.num_actions,)
    view = jax.eval_shape(lambda: jax.tree.map(lambda leaf: leaf[0], game.observe(game.reset(key=jax.random.key(0)))))
    legal = jax.ShapeDtypeStruct(expected, bool)
    try:
        given = jax.eval_shape(lambda view, legal: policy(view, legal, policy.init()), view, legal)
    except Exception as error:  # a user's player can fail in any way
        raise ValueError(
            f"the player {name} fails with {words_of(error)}; JAX compiles it, so use jnp.where in place of `if`"
        ) from error
    if not isinstance(given, tuple) or len(given) != 2:
        raise ValueError(
            f"the player {name} must return two things: the probability of each action, and its next state"
        )
    answer = given[0]
    if answer.shape != expected:
        raise ValueError(
            f"the player {name} gives an array of shape {answer.shape}; give one probability for each of the "
            f"{game.spec.num_actions} actions of {game.spec.name}"
        )
    keys = jax.random.split(jax.random.key(0), NUM_EPISODES)
    faults = np.asarray(jax.jit(jax.vmap(lambda key: _faults(policy, game, key)))(keys))
    for fault, is_there in zip(FAULTS, np.any(faults, axis=(0, 1, 2)), strict=True):
        if is_there:
            raise ValueError(f"the player {name} {fault}; it must return a distribution over the legal actions")
    return policy


def _faults(policy: Policy, game: Game, key: Key[Array, ""]) -> Bool[Array, "steps agents faults"]:
    """Which of FAULTS the policy shows at each step of one episode of random play, in each seat."""
    num_agents, horizon = game.spec.num_agents, game.spec.horizon
    first_key, act_key, step_key = jax.random.split(key, 3)
    policy_state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_agents, *jnp.shape(leaf))), policy.init())

    def one_step(carry, step):
        state, policy_state = carry
        uniforms, numbers = step
        legal = game.legal(state)
        answers, policy_state = jax.vmap(policy)(game.observe(state), legal, policy_state)
        faults = jax.vmap(_faults_of)(answers, legal)
        actions = sample_actions(legal / jnp.sum(legal, axis=-1, keepdims=True), uniforms=uniforms)
        state, _ = game.step(state, actions, key=jax.random.wrap_key_data(numbers))
        return (state, policy_state), faults & ~game.terminated(carry[0])[:, None]

    numbers = jax.random.key_data(jax.random.split(step_key, horizon))
    uniforms = random_uniforms(horizon, num_agents, key=act_key)
    return jax.lax.scan(one_step, (game.reset(key=first_key), policy_state), (uniforms, numbers))[1]


def _faults_of(answer: Array, legal: Bool[Array, " actions"]) -> Bool[Array, " faults"]:
    return jnp.stack(
        [
            ~jnp.all(jnp.isfinite(answer)),
            jnp.any(answer < 0),
            jnp.abs(jnp.sum(answer) - 1) > ROUNDING,
            jnp.any((answer > 0) & ~legal),
        ]
    )


def _read_policy(node: ast.expr, spec: GameSpec) -> Policy:
    call = node if isinstance(node, ast.Call) else None
    name = call.func if call else node
    if not isinstance(name, ast.Name) or name.id not in scripts_for(spec):
        known = ", ".join(scripts_for(spec))
        raise ValueError(f"there is no script called {ast.unparse(name)!r} for {spec.name}; give one of {known}")
    values = [_read_value(argument, spec) for argument in call.args] if call else []
    _, make_policy = SCRIPTS[name.id]
    try:
        return make_policy(spec, *values)
    except TypeError:
        raise ValueError(
            f"{ast.unparse(node)!r} has the wrong number of values in brackets; "
            "write nearest_stag, patient_stag(3) or noisy(nearest_stag, 0.1)"
        ) from None


def _read_value(node: ast.expr, spec: GameSpec) -> Policy | int | float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    return _read_policy(node, spec)
