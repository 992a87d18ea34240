"""What `contract` checks: one function for each promise of a game.

Each returns None, or a sentence that names the fault. Promises of a reset get a key, those of play get situations.
"""

from dataclasses import replace
from itertools import islice, pairwise, permutations
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Key, PyTree

from hopplus.games.fields import TIME, Field
from hopplus.games.game import NO_ACTION, Game, GameSpec, as_played, ego_order
from hopplus.games.spawns import spawn_fault

NUM_SPAWNS = 16_384
NUM_ENVS_IN_PYTHON = 16
"""Of a game that is not compiled: it is slow, and replays an episode to repeat its last step."""


class Situations(eqx.Module):
    """Many situations of play: a state, the actions taken there, and the seed of the next step."""

    states: PyTree[Array]
    actions: Int32[Array, "*situations agents"]
    seeds: Int32[Array, "*situations"]


def judge_shapes(game: Game, key: Key[Array, ""]) -> str | None:
    spec = game.spec
    agents, actions = spec.num_agents, spec.num_actions
    state = jax.eval_shape(lambda key: game.reset(key=key), key)
    joint = jax.ShapeDtypeStruct((agents,), jnp.int32)
    after, rewards = jax.eval_shape(lambda state, joint, key: game.step(state, joint, key=key), state, joint, key)
    before_and_after = [[(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)] for tree in (state, after)]
    if jax.tree.structure(state) != jax.tree.structure(after) or before_and_after[0] != before_and_after[1]:
        return "step changes the shape or dtype of the state, so that it cannot be carried through a loop"
    seen = jax.eval_shape(game.observe, state)
    if unknown := set(seen) ^ {field.name for field in spec.observation}:
        return f"the observation and the spec do not have the same fields: {', '.join(sorted(unknown))}"
    expected = {
        "rewards": (rewards, (agents,), jnp.float32),
        "legal": (jax.eval_shape(game.legal, state), (agents, actions), jnp.bool_),
        "terminated": (jax.eval_shape(game.terminated, state), (agents,), jnp.bool_),
    }
    for field in spec.observation:
        array = seen[field.name]
        expected[f"the views' {field.name}"] = (array, (agents, *field.shape), _dtype(field, array.dtype))
    if spec.planes:
        board = (spec.height, spec.width, len(spec.planes))
        expected["board"] = (jax.eval_shape(game.board, state), board, jnp.uint8)
    for name, (array, shape, dtype) in expected.items():
        if array.shape != shape or array.dtype != dtype:
            wanted, given = f"{np.dtype(dtype)}{list(shape)}", f"{array.dtype}{list(array.shape)}"
            return f"{name}: the spec asks for {wanted}, the game gives {given}"
    events = jax.eval_shape(game.events, state, joint, after, rewards)
    if (events.shape, events.dtype) != ((len(spec.events), agents), jnp.bool_):
        wanted, given = f"bool[{len(spec.events)}, {agents}]", f"{events.dtype}{list(events.shape)}"
        return f"events: the spec asks for {wanted}, the game gives {given}"
    return None


def judge_keys(game: Game, key: Key[Array, ""]) -> str | None:
    """JAX checks that no key is used twice when it compiles reset and step."""
    reset_key, step_key = jax.random.split(key)
    idle = jnp.zeros(game.spec.num_agents, jnp.int32)
    doing = "reset"
    with jax.debug_key_reuse(True):
        try:
            state = jax.jit(lambda key: game.reset(key=key))(reset_key)
            doing = "step"
            jax.jit(lambda key: game.step(state, idle, key=key))(step_key)
        except jax.errors.KeyReuseError:
            return f"{doing} uses a random key twice, so that draws which should be independent are not"
    return None


def judge_spawns(game: Game, key: Key[Array, ""]) -> str | None:
    boards = jax.jit(jax.vmap(lambda key: game.board(game.reset(key=key))))(jax.random.split(key, NUM_SPAWNS))
    return spawn_fault(game.spec, np.asarray(boards))


def judge_same_bits(game: Game, situations: Situations) -> str | None:
    one = _at(situations, 0)

    def step(situation: Situations) -> Any:
        after, rewards = _step(game, situation)
        views, legal = game.observe(after), game.legal(after)
        return {"next state": after, "rewards": rewards, "views": views, "legal actions": legal}

    compiled = jax.jit(step)
    for name, other in (
        ("a second call", lambda: compiled(one)),
        ("the program that is not compiled", lambda: step(one)),
        ("a program compiled again", lambda: jax.jit(lambda situation: step(situation))(one)),
    ):
        if different := _different(compiled(one), other(), rounded=not game.is_bit_exact):
            return f"the same state, actions and key give other {different} in {name}"
    return None


def judge_batch(game: Game, situations: Situations) -> str | None:
    alone = jax.jit(lambda situation: _step(game, situation))
    batch = _step_all(game, situations)
    for index in range(0, len(situations.actions), len(situations.actions) // 8):
        one, same = _outcome(alone(_at(situations, index))), _outcome(_at(batch, index))
        if different := _different(one, same, rounded=not game.is_bit_exact):
            return f"one environment alone and the same environment in a batch give other {different}"
    return None


def judge_rewards(game: Game, situations: Situations) -> str | None:
    rewards = np.asarray(_step_all(game, situations)[1])
    if not np.all(np.isfinite(rewards)):
        return f"a reward is not finite: {rewards[~np.isfinite(rewards)][0]}"
    support = np.asarray(game.spec.reward_support)
    if not support.size:
        return None
    off = np.min(np.abs(rewards[..., None] - support), axis=-1)
    if np.any(off > 1e-5):
        return f"a reward of {rewards[off > 1e-5][0]:g} is outside the declared support {support.round(4).tolist()}"
    return None


def judge_views(game: Game, situations: Situations) -> str | None:
    seen = jax.jit(jax.vmap(game.observe))(situations.states)
    faults = (_field_fault(field, np.asarray(seen[field.name])) for field in game.spec.observation)
    return next((fault for fault in faults if fault), None)


def _field_fault(field: Field, seen: np.ndarray) -> str | None:
    if not np.all(np.isfinite(seen)):
        return f"{field.name} in a view is not finite"
    if field.planes and not np.all(seen[..., [plane.kind != "sum" for plane in field.planes]] <= 1):
        return "a plane holds values other than 0 and 1"
    if field.kind == "categories" and not np.all((seen >= NO_ACTION) & (seen < field.below)):
        return (
            f"{field.name} in a view holds {seen.max()} or {seen.min()}; the spec says {NO_ACTION} to {field.below - 1}"
        )
    if field == TIME and not np.all((seen >= 0) & (seen <= 1)):
        return "the time in a view is not between 0 and 1"
    return None


def judge_legal(game: Game, situations: Situations) -> str | None:
    legal = np.asarray(jax.jit(jax.vmap(game.legal))(situations.states))
    if not np.all(np.any(legal, axis=-1)):
        return "a seat has no legal action at all"
    in_view = jax.jit(jax.vmap(lambda state: jax.vmap(game.legal_in_view)(game.observe(state))))(situations.states)
    playing = ~np.asarray(jax.jit(jax.vmap(game.terminated))(situations.states))
    if np.any(legal[playing] & ~np.asarray(in_view)[playing]):
        return "legal_in_view forbids an action that is legal"
    stay = game.spec.stay
    if stay is None and np.all(legal):
        return None

    def acts_as_stay(situation: Situations, shift: Int32[Array, ""]) -> tuple[Any, Any]:
        tried = (situation.actions + shift) % game.spec.num_actions
        played = as_played(game.legal(situation.states), tried, stay=stay)
        return tuple(_step(game, replace(situation, actions=actions)) for actions in (tried, played))

    run = jax.jit(jax.vmap(acts_as_stay, (0, None)))
    for shift in range(1, game.spec.num_actions + 1):
        if different := _different(*map(_outcome, run(situations, jnp.int32(shift)))):
            instead = "the first legal one" if stay is None else repr(game.spec.action_names[stay])
            return f"an illegal action does not act as {instead}: it gives other {different}"
    return None


def judge_termination(game: Game, situations: Situations) -> str | None:
    after, rewards = _step_all(game, situations)
    before, now = (np.asarray(jax.jit(jax.vmap(game.terminated))(each)) for each in (situations.states, after))
    if np.any(before & ~now):
        return "a seat that had terminated plays again"
    if np.any(np.asarray(rewards)[before] != 0):
        return "a seat that had terminated still gets a reward"
    if game.spec.stay is not None:
        alone = np.arange(game.spec.num_actions) == game.spec.stay
        if np.any(np.asarray(jax.jit(jax.vmap(game.legal))(situations.states))[before] != alone):
            return "a seat that had terminated has other legal actions than to stay"
    num_envs = 64 if game.is_compiled else NUM_ENVS_IN_PYTHON
    over = jax.jit(jax.vmap(lambda key: _over_at_horizon(game, key=key)))(jax.random.split(jax.random.key(1), num_envs))
    return None if np.all(np.asarray(over)) else f"an episode continues after its horizon of {game.spec.horizon} steps"


def _over_at_horizon(game: Game, *, key: Key[Array, ""]) -> Bool[Array, ""]:
    reset_key, play_key = jax.random.split(key)
    stay = jnp.full(game.spec.num_agents, game.spec.stay or 0, jnp.int32)

    def one_step(state: Any, step: Int32[Array, ""]) -> tuple[Any, None]:
        return game.step(state, stay, key=jax.random.fold_in(play_key, step))[0], None

    last, _ = jax.lax.scan(one_step, game.reset(key=reset_key), jnp.arange(game.spec.horizon, dtype=jnp.int32))
    return jnp.all(game.terminated(last))


def judge_seats(game: Game, situations: Situations) -> str | None:
    """Relabelling the seats before a step gives the same as relabelling them after it."""

    def both_ways(situation: Situations, order: Int32[Array, " agents"]) -> tuple[dict, dict]:
        state = situation.states
        after, rewards = _step(game, situation)
        relabelled = game.permute(state, order)
        other_after, other_rewards = _step(game, Situations(relabelled, situation.actions[order], situation.seeds))
        one = {
            "rewards": rewards[order],
            "legal actions": game.legal(state)[order],
            "terminations": game.terminated(after)[order],
            "next state": game.permute(after, order),
        }
        other = {
            "rewards": other_rewards,
            "legal actions": game.legal(relabelled),
            "terminations": game.terminated(other_after),
            "next state": other_after,
        }
        return one, other

    run = jax.jit(jax.vmap(both_ways, (0, None)))
    for order in seat_orders(game.spec):
        one, other = run(situations, jnp.asarray(order, jnp.int32))
        if different := _different(one, other):
            return (
                f"the seats are not treated alike: with the seats relabelled to {order} the {different} do not follow"
            )
    return None


def judge_ego_views(game: Game, situations: Situations) -> str | None:
    """Each view shows the board in its own seat's order."""
    spec = game.spec
    views = np.asarray(jax.jit(jax.vmap(game.observe))(situations.states)["planes"])
    boards = np.asarray(jax.jit(jax.vmap(game.board))(situations.states))
    walkers, order = spec.num_walkers, ego_order(spec.num_agents)
    for seat in range(walkers):
        view = views[:, seat]
        shown = view.any(axis=(1, 2, 3))
        if not spec.walkers_return and np.any(shown & ~boards[..., seat].any(axis=(1, 2))):
            return "a seat that has left the board still sees it"
        expected = _seen_by(spec, boards, order[seat])
        if np.any(view[shown] != expected[shown]):
            return f"a view does not show its own seat first and {_OTHERS_ARE[spec.sums_others]} after it"
    return None


_OTHERS_ARE = {False: "the others in seat order", True: "the sum of the others"}


def _seen_by(spec: GameSpec, boards: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The planes in an order of seats; where the others are summed, of each thing the first seat's and their sum."""
    boards = boards[..., np.asarray(spec.plane_order(jnp.asarray(order, jnp.int32)))]
    if not spec.sums_others:
        return boards
    ends = spec.num_agents * np.arange(spec.num_blocks + 1)
    pairs = [(boards[..., start], boards[..., start + 1 : end].sum(-1)) for start, end in pairwise(ends)]
    return np.concatenate([np.stack([plane for pair in pairs for plane in pair], axis=-1), boards[..., ends[-1] :]], -1)


def judge_rotated_views(game: Game, situations: Situations) -> str | None:
    """Rotating the seats rotates the views."""
    spec = game.spec
    observe = jax.jit(jax.vmap(game.observe))
    permute = jax.jit(jax.vmap(game.permute, (0, None)))
    seen = observe(situations.states)
    for shift in range(1, spec.num_agents):
        turned = jnp.asarray(np.roll(np.arange(spec.num_agents), -shift), jnp.int32)
        other = observe(permute(situations.states, turned))
        if different := _different(jax.tree.map(lambda leaf, turned=turned: leaf[:, turned], seen), other):
            return (
                f"a view leaks the seat's number: when the seats are rotated by {shift} its {different} do not follow"
            )
    return None


def judge_plane_kinds(game: Game, situations: Situations) -> str | None:
    after, _ = _step_all(game, situations)
    before, now = (np.asarray(jax.jit(jax.vmap(game.board))(each)) > 0 for each in (situations.states, after))
    rows, columns = np.arange(game.spec.height)[:, None], np.arange(game.spec.width)
    for index, plane in enumerate(game.spec.planes):
        was, is_now = before[..., index], now[..., index]
        if plane.kind == "fixed" and np.any(was != is_now):
            return f"the plane {plane.name!r} is declared fixed, but it changes within an episode"
        if plane.kind == "walker":
            count, count_now = was.sum((1, 2)), is_now.sum((1, 2))
            if np.any(count_now > 1):
                return f"the plane {plane.name!r} is declared a walker, but it shows more than one cell"
            if not plane.returns and np.any((count == 0) & (count_now > 0)):
                return f"the walker {plane.name!r} returns after it has left"
            both = (count == 1) & (count_now == 1)
            jump = max(
                np.abs((is_now * axis).sum((1, 2)) - (was * axis).sum((1, 2)))[both].max(initial=0)
                for axis in (rows, columns)
            )
            if jump > 1:
                return f"the walker {plane.name!r} moves {jump} cells in one step"
        if plane.kind == "category" and np.any(is_now & ~now[..., : game.spec.num_walkers].any(axis=-1)):
            return f"the plane {plane.name!r} is declared a category, but it is on where no player stands"
        if plane.kind == "counter" and np.any(np.diff(is_now.reshape(len(is_now), -1).astype(int), axis=-1) > 0):
            return f"the plane {plane.name!r} is declared a counter, but its cells are not on in reading order"
    return None


def _dtype(field: Field, given: Any) -> Any:
    """The dtype that a field must have. Images may have any."""
    if field.kind == "planes":
        return jnp.uint8 if field.planes else given
    return jnp.float32 if field.kind == "vector" else jnp.int32


def seat_orders(spec: GameSpec, most: int = 24) -> list[list[int]]:
    """Orders of the seats but the identity, within roles. With more than four seats, rotations and random orders."""
    num_agents, roles = spec.num_agents, spec.roles or ("player",) * spec.num_agents
    if num_agents <= 4:
        orders = [list(order) for order in islice(permutations(range(num_agents)), 1, None)]
    else:
        random = np.random.RandomState(0)
        orders = [np.roll(np.arange(num_agents), -shift).tolist() for shift in range(1, min(num_agents, most // 2))]
        orders += [_within_roles(spec, random) for _ in range(most - len(orders))]
    return [order for order in orders if all(roles[new] == roles[old] for new, old in enumerate(order))]


def _within_roles(spec: GameSpec, random: np.random.RandomState) -> list[int]:
    """A random order of the seats that keeps every role's places."""
    order = np.arange(spec.num_agents)
    for seats in spec.seats_by_role.values():
        order[seats] = random.permutation(seats)
    return order.tolist()


def _step(game: Game, situation: Situations) -> Any:
    """The next state and the rewards; the key is made from the seed, so that a situation can be replayed."""
    return game.step(situation.states, situation.actions, key=jax.random.key(situation.seeds))


def _step_all(game: Game, situations: Situations) -> Any:
    return jax.jit(jax.vmap(lambda situation: _step(game, situation)))(situations)


def _at(batch: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], batch)


def _outcome(after_and_rewards: tuple[Any, Any]) -> dict[str, Any]:
    return dict(zip(("next state", "rewards"), after_and_rewards, strict=True))


def _different(one: Any, other: Any, *, rounded: bool = False) -> str | None:
    """The name of the first part in which two trees differ; by how much, if it is rounding.

    `rounded` allows differences by rounding.
    """
    parts, _ = jax.tree_util.tree_flatten_with_path(one)
    for (path, left), right in zip(parts, jax.tree.leaves(other), strict=True):
        left, right = np.asarray(left), np.asarray(right)
        if not np.array_equal(left, right, equal_nan=left.dtype.kind == "f"):
            is_rounding = left.dtype.kind == "f" and np.allclose(left, right, rtol=1e-5, atol=1e-6, equal_nan=True)
            if is_rounding and rounded:
                continue
            name = jax.tree_util.keystr(path, simple=True, separator=" ").strip()
            return name + (_rounding(left, right) if is_rounding else "")
    return None


def _rounding(left: np.ndarray, right: np.ndarray) -> str:
    """What to do if two arrays differ by rounding alone."""
    largest = np.nanmax(np.abs(left.astype(np.float64) - right))
    return (
        f" (by rounding alone, {largest:.0e} at most: XLA computes a * b + c in one step where it can; divide or "
        "multiply last, or count in whole numbers)"
    )
