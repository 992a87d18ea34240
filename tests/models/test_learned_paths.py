"""Opponent models that learn paths: values are true distances, gradients are JAX's own, and ways around walls are
learned."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hopplus.games.board import Board
from hopplus.games.paths import FAR, paths_around_walls
from hopplus.games.stag_hunt import StagHunt
from hopplus.models.config import OthersConfig
from hopplus.models.learned_paths import OUTSIDE, _moved, _starts, _with_edge, init_learned_paths, spread
from hopplus.models.others import init as init_others

HEIGHT, WIDTH = 4, 6
STEP, ROUNDS = WIDTH + 1, 16
SPEC = StagHunt(grid=Board(4, 4), horizon=9).spec


def maps(seed, count=2):
    worth_key, cost_key = jax.random.split(jax.random.key(seed))
    worth = _with_edge(jax.random.normal(worth_key, (count, HEIGHT, WIDTH)), OUTSIDE)
    return worth, _with_edge(jax.random.uniform(cost_key, (count, HEIGHT, WIDTH), minval=0.1), -OUTSIDE)


def plainly(worth, cost):
    """The same values, with JAX's gradient."""
    values = worth
    for _ in range(ROUNDS):
        there = [_moved(values - cost, STEP, OUTSIDE, start) for start in _starts(STEP)]
        values = jnp.maximum(worth, jnp.max(jnp.stack(there), axis=0))
    return values


@pytest.mark.parametrize("seed", range(3))
def test_values_and_gradients_are_those_of_the_plain_rule(seed):
    worth, cost = maps(seed)
    wanted = jax.random.normal(jax.random.key(9), worth.shape) * (worth > OUTSIDE)
    by_hand = lambda *given: jnp.sum(wanted * spread(*given, STEP, ROUNDS))  # noqa: E731
    np.testing.assert_array_equal(spread(worth, cost, STEP, ROUNDS), plainly(worth, cost))
    found = jax.grad(by_hand, argnums=(0, 1))(worth, cost)
    expected = jax.grad(lambda *given: jnp.sum(wanted * plainly(*given)), argnums=(0, 1))(worth, cost)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_values_are_distances_around_walls(seed):
    """Where one cell is worth something, a free cell costs 1 and a wall costs much."""
    rng = np.random.default_rng(seed)
    free = rng.random((HEIGHT, WIDTH)) > 0.3
    row, column = rng.choice(np.argwhere(free))
    start = np.zeros((HEIGHT, WIDTH), bool)
    start[row, column] = True
    distance = np.asarray(paths_around_walls(jnp.asarray(free), jnp.asarray(start))[0])
    worth = _with_edge(jnp.where(start, 0.0, -100.0)[None], OUTSIDE)
    cost = _with_edge(jnp.where(free, 1.0, -OUTSIDE)[None], -OUTSIDE)
    values = np.asarray(spread(worth, cost, STEP, HEIGHT * WIDTH))[0].reshape(HEIGHT, STEP)[:, :WIDTH]
    reached = free & (distance < FAR)
    assert reached.sum() > 1
    np.testing.assert_array_equal(values[reached], -distance[reached])


def hunters(key, count):
    """Views in which the player walks to the one hare by a shortest path around walls, and its first moves."""
    places = jax.vmap(lambda key: jax.random.permutation(key, 16))(jax.random.split(key, count))
    at = [jax.nn.one_hot(places[:, number], 16).reshape(count, 4, 4) > 0 for number in range(6)]
    walls = at[2] | at[3] | at[4] | at[5]
    planes = np.zeros((count, 4, 4, len(SPEC.view_planes)), np.uint8)
    for plane, on in ((0, at[0]), (SPEC.view_index("hares"), at[1]), (SPEC.view_index("obstacles"), walls)):
        planes[..., plane] = on
    distance, moves = jax.vmap(paths_around_walls)(~walls, at[0])
    first = np.asarray(jnp.sum(jnp.where(at[1], moves, 0), axis=(1, 2)))
    can = np.asarray(jnp.sum(jnp.where(at[1], distance, 0), axis=(1, 2))) < FAR
    steps = (first[:, None] >> np.arange(4)) & 1
    return jnp.asarray(planes[can]), jnp.asarray((steps / steps.sum(-1, keepdims=True).clip(1))[can])


def test_the_way_around_walls_is_learned():
    """No setting tells it of walls or of what the actions do."""
    planes, first = hunters(jax.random.key(0), 4_096)
    unseen, wanted = hunters(jax.random.key(1), 512)
    legal, goal = jnp.ones(SPEC.num_actions, bool), jnp.zeros(0)
    predict = jax.vmap(lambda params, planes: params(planes, legal, goal), in_axes=(None, 0))
    optimizer = optax.adam(1e-2)

    @partial(jax.jit, static_argnums=1)
    def trained(params, num_steps):
        def one_step(carry, start):
            params, state = carry
            rows = (start * 128 + jnp.arange(128)) % len(planes)

            def loss(params):
                logs = jnp.log(predict(params, planes[rows])[:, :4] + 1e-6)
                return -jnp.mean(jnp.sum(first[rows] * logs, axis=-1))

            change, state = optimizer.update(jax.grad(loss)(params), state)
            return (optax.apply_updates(params, change), state), None

        return jax.lax.scan(one_step, (params, optimizer.init(params)), jnp.arange(num_steps))[0][0]

    params = init_learned_paths(OthersConfig(), SPEC, 0, key=jax.random.key(2))

    def right(params):
        likeliest = np.asarray(predict(params, unseen))[:, :4].argmax(-1)
        return np.take_along_axis(np.asarray(wanted > 0), likeliest[:, None], axis=1).mean()

    before = right(params)
    assert right(trained(params, 400)) > 0.95 > 0.7 > before


def test_it_takes_the_place_of_given_paths():
    given, learned, none = (
        init_others(
            OthersConfig(models="shared", destinations=destinations, learned_paths=True), SPEC, 2, key=jax.random.key(0)
        )
        if destinations is not None
        else init_others(OthersConfig(models="shared", destinations=False), SPEC, 2, key=jax.random.key(0))
        for destinations in (True, False, None)
    )
    assert given.cell is not None and given.paths is None
    assert learned.cell is None and learned.paths is not None
    assert none.cell is None and none.paths is None


def test_a_player_that_is_nowhere_has_an_answer():
    params = init_learned_paths(OthersConfig(), SPEC, 1, key=jax.random.key(0))
    legal = jnp.arange(SPEC.num_actions) == SPEC.stay
    planes = jnp.zeros((4, 4, len(SPEC.view_planes)), jnp.uint8)
    np.testing.assert_allclose(params(planes, legal, jnp.ones(1)), legal, atol=1e-6)
