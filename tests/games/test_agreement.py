"""The JAX games against the slow references, exactly, at every step of random episodes.

The episodes are played by JAX, all at once, with actions that wander, break the rules and hunt. The reference starts
from the same first state, gets the same actions and the same chance, and must come to the same everything.
"""

import dataclasses
from collections import Counter
from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.board import Board
from hopplus.games.coins import Coins
from hopplus.games.foraging import Foraging
from hopplus.games.game import Game
from hopplus.games.harvest import Harvest
from hopplus.games.matrix import CHICKEN, PRISONERS_DILEMMA, MatrixGame
from hopplus.games.snowdrift import Snowdrift
from hopplus.games.stag_hunt import StagHunt
from reference import coins, foraging, harvest, matrix, snowdrift, stag_hunt

SMALL, OBSTACLES, ARENAS = Board(4, 4), Board(obstacle_pieces=5), Board(arena_sides=(3, 8))
MANY_TIMES: dict[str, Game] = {
    "stag hunt": StagHunt(),
    "stag hunt 4x4": StagHunt(grid=SMALL),
    "stag hunt with obstacles": StagHunt(grid=OBSTACLES),
    "stag hunt with moving prey": StagHunt(grid=SMALL, prey_moves=0.3),
    "snowdrift": Snowdrift(),
    "coins": Coins(),
    "coins, four players": Coins(grid=Board(5, 5), num_players=4),
    "foraging": Foraging(),
    "foraging 5x5, two players": Foraging(grid=Board(5, 5), num_players=2, num_foods=3, food_levels=2),
    "harvest": Harvest(),
    "harvest with beams": Harvest(away_steps=5),
    "harvest, others summed": Harvest(away_steps=5, num_players=6, others="summed"),
    "matrix game": MatrixGame(),
}
ALSO: dict[str, Game] = {
    "arenas": StagHunt(grid=ARENAS),
    "arenas with obstacles": StagHunt(grid=Board(obstacle_pieces=5, arena_sides=(3, 8)), num_hares=2),
    "restless prey in arenas": StagHunt(grid=ARENAS, prey_moves=1.0),
    "restless prey, two stags, oblong": StagHunt(grid=Board(5, 6, obstacle_pieces=2), num_stags=2, prey_moves=1.0),
    "ends at the first catch": StagHunt(grid=SMALL, steps_after_first_catch=0),
    "ends soon after the first catch": StagHunt(grid=SMALL, steps_after_first_catch=3, prey_moves=0.3),
    "ends late after the first catch": StagHunt(grid=SMALL, steps_after_first_catch=20, horizon=25),
    "two players": StagHunt(num_players=2, stag_reward=7.0),
    "three players, three stags": StagHunt(grid=SMALL, num_players=3, num_stags=3, num_hares=1, hare_reward=0.7),
    "six players": StagHunt(grid=SMALL, num_players=6, prey_moves=0.3),
    "no stags": StagHunt(grid=SMALL, num_stags=0),
    "no hares": StagHunt(grid=SMALL, num_hares=0, num_stags=2),
    "one step": StagHunt(grid=SMALL, horizon=1),
    "coins, three players and little room": Coins(grid=Board(4, 4, arena_sides=(3, 4)), num_players=3, cost=0.7),
    "foraging, crowded, with obstacles": Foraging(
        grid=Board(5, 6, obstacle_pieces=1), num_players=5, num_foods=5, player_levels=3, horizon=30
    ),
    "harvest, beams in a small arena": Harvest(
        grid=Board(6, 7, obstacle_pieces=1, arena_sides=(3, 5)),
        away_steps=1,
        growth=(0.1, 0.3),
        beam_length=9,
        horizon=30,
    ),
    "snowdrift with obstacles": Snowdrift(grid=OBSTACLES),
    "snowdrift 3x3, six players": Snowdrift(grid=Board(3, 3), num_players=6, num_drifts=3),
    "prisoner's dilemma, three players": MatrixGame(payoff=PRISONERS_DILEMMA, num_players=3),
    "chicken, five players": MatrixGame(payoff=CHICKEN, num_players=5, horizon=7),
    "three actions, four players": MatrixGame(
        payoff=((1.0, 0.0, 2.0), (2.0, 1.0, 0.0), (0.0, 2.0, 1.0)), num_players=4
    ),
}
BATCH = 250
# The short tests spend their time in the compiler: without its last, slow stage they take a third of it. The heavy
# ones keep that stage, so that the program as users get it is compared as well.
QUICK_COMPILE = {"xla_backend_optimization_level": 0}


def reference_of(game: Game) -> tuple[ModuleType, Any]:
    """The module that knows the rules of this game, and the rules as it is set up."""
    modules = {
        StagHunt: stag_hunt,
        Snowdrift: snowdrift,
        Coins: coins,
        Foraging: foraging,
        Harvest: harvest,
        MatrixGame: matrix,
    }
    module = modules[type(game)]
    settings = {field.name: getattr(game, field.name) for field in dataclasses.fields(game)}
    if module is not matrix:
        settings |= {"obstacle_pieces": game.grid.obstacle_pieces, "arena_sides": game.grid.arena_sides}
    return module, module.Rules(**{field.name: settings[field.name] for field in dataclasses.fields(module.Rules)})


class Whims(eqx.Module):
    """What the players would like to do, drawn by NumPy: every draw inside the program makes it slower to compile."""

    wishes: Any
    """[episodes, agents, things]: how much each seat wants each prey or drift."""
    anything: Any
    """[time, episodes, agents]: any number near the actions, legal or not."""
    is_anything: Any
    noise: Any
    """[time, episodes, agents, actions]: Gumbel noise, for a choice among the legal actions."""


def draw_whims(game: Game, num_episodes: int, random: np.random.Generator) -> Whims:
    spec = game.spec
    state = jax.eval_shape(lambda: game.reset(key=jax.random.key(0)))
    num_things = (
        1 if isinstance(game, MatrixGame) else jax.eval_shape(lambda state: things_of(game, state), state)[0].size
    )
    wishes = random.random((num_episodes, spec.num_agents, num_things), np.float32)
    # The first things, the stags, are wished for by many: two hunters have to meet there for a catch.
    wishes[..., 0] += 0.5
    shape = (spec.horizon, num_episodes, spec.num_agents)
    # Where there is no action to stand in for an illegal one, there are no illegal ones.
    margin = 0 if spec.stay is None else 1
    return Whims(
        wishes=wishes,
        anything=random.integers(-margin, spec.num_actions + margin, shape, np.int32),
        is_anything=random.random(shape) < (1.0 if spec.stay is None else 0.3),
        noise=random.gumbel(size=(*shape, spec.num_actions)).astype(np.float32),
    )


def wilful_actions(game: Game, state: Any, whims: Whims) -> jax.Array:
    """Some are anything; the others lead to prey or drifts, or hunt there."""
    spec = game.spec
    if spec.stay is None:
        return whims.anything
    is_hunt = np.arange(spec.num_actions) > spec.stay
    preference = 3.5 * is_hunt[None, :] + 2.0 * leads_on(game, state, whims.wishes)
    sensible = jnp.argmax(jnp.where(game.legal(state), preference + whims.noise, -jnp.inf), axis=-1)
    return jnp.where(whims.is_anything, whims.anything, sensible).astype(jnp.int32)


def leads_on(game: Game, state: Any, wishes: jax.Array) -> jax.Array:
    """For each seat and action, whether it is a move towards the thing that the seat wishes for most, of those left."""
    things, left = things_of(game, state)
    target = things[jnp.argmax(jnp.where(left[None, :], wishes, -1.0), axis=-1)]
    width = game.spec.width
    down = target // width - state.position // width
    right = target % width - state.position % width
    moves = jnp.stack([down < 0, down > 0, right < 0, right > 0], axis=-1)
    return jnp.pad(moves, ((0, 0), (0, game.spec.num_actions - 4)))


def things_of(game: Game, state: Any) -> tuple[jax.Array, jax.Array]:
    """The cells of all that players may want, and which of it is there."""
    if isinstance(game, StagHunt):
        return state.prey_position, state.prey_alive
    if isinstance(game, Harvest):
        return jnp.arange(state.apples.size), state.apples.reshape(-1)
    if isinstance(game, Foraging):
        return state.food_position, state.food_remains
    if isinstance(game, Coins):
        return state.coin_position, jnp.ones_like(state.coin_position, bool)
    return state.drift_position, state.drift_remains


def draws_of(game: Game, key: jax.Array) -> dict[str, jax.Array] | None:
    """The random draws of a step, by name, as the reference takes them; None if it takes none."""
    if isinstance(game, Coins):
        return {"words": game.draw_words(key=key)}
    if isinstance(game, Harvest):
        return vars(game.draw_growth(key=key))
    return vars(game.draw_prey_moves(key=key)) if getattr(game, "prey_moves", 0.0) > 0.0 else None


def play(game: Game, whims: Whims, key: jax.Array) -> dict[str, Any]:
    """Episodes by JAX, [time, episodes]: the states 0..horizon, what can be asked of them, and what led to the next.

    The scan is outside and the vmap inside, since JAX's check for key reuse rejects a vmapped scan over keys.
    """
    num_episodes = len(whims.wishes)
    reset_key, steps_key = jax.random.split(key)
    first = jax.vmap(lambda key: game.reset(key=key))(jax.random.split(reset_key, num_episodes))

    def step(state: Any, whims: Whims, key: jax.Array) -> tuple[Any, dict[str, Any]]:
        actions = wilful_actions(game, state, whims)
        draws = draws_of(game, jax.random.clone(key))
        after, rewards = game.step(state, actions, key=key)
        return after, {"actions": actions, "rewards": rewards, "draws": draws}

    def step_all(states: Any, chance: tuple[Whims, jax.Array]) -> tuple[Any, tuple[Any, dict[str, Any]]]:
        of_step, keys = chance
        of_step = dataclasses.replace(of_step, wishes=whims.wishes)
        after, events = jax.vmap(step)(states, of_step, keys)
        return after, (after, events)

    step_keys = jax.random.split(steps_key, (game.spec.horizon, num_episodes))
    by_step = dataclasses.replace(whims, wishes=None)
    _, (states, events) = jax.lax.scan(step_all, first, (by_step, step_keys))
    states = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, states)
    return events | jax.vmap(jax.vmap(lambda state: answers(game, state)))(states)


def answers(game: Game, state: Any) -> dict[str, Any]:
    """Everything that a game can be asked of a state."""
    return {
        "state": state,
        "legal": game.legal(state),
        "terminated": game.terminated(state),
        "board": game.board(state),
        "observation": game.observe(state),
    }


def fields_of(record: Any) -> dict[str, list]:
    """A stacked record as plain lists, by field."""
    return {field.name: np.asarray(getattr(record, field.name)).tolist() for field in dataclasses.fields(record)}


class PlayedBatch:
    """One batch of episodes: Python lists where the reference compares numbers, arrays where it compares pictures."""

    def __init__(self, game: Game, played: dict[str, Any]):
        self.module, self.rules = reference_of(game)
        self.num_agents = game.spec.num_agents
        self.states = fields_of(played["state"])
        draws = played["draws"]
        self.draws = None if draws is None else {name: np.asarray(values).tolist() for name, values in draws.items()}
        self.numbers = {
            name: np.asarray(played[name]).tolist() for name in ("legal", "terminated", "actions", "rewards")
        }
        self.boards = np.asarray(played["board"])
        views = played["observation"]
        self.planes = np.asarray(views["planes"]) if game.spec.planes else np.zeros((*views["time"].shape, 0, 0, 0))
        self.times = np.asarray(played["observation"]["time"])
        not_shown = np.zeros((*self.times.shape, 0))
        self.last_actions = np.asarray(views.get("last_actions", not_shown)).tolist()

    def replay(self, episode: int, seen: Counter, picture_share: float, random: np.random.Generator) -> None:
        """Plays the episode again by the reference, and raises where it differs."""
        state = self.module.State(**{name: values[0][episode] for name, values in self.states.items()})
        self.module.check_reset(self.rules, state)
        self.compare(episode, state, pictures=True)
        while not all(self.module.terminated(self.rules, state)):
            time = state.time
            actions = self.numbers["actions"][time][episode]
            chance = []
            if self.draws is not None:
                draws = {name: values[time][episode] for name, values in self.draws.items()}
                chance = [self.module.Draws(**draws)]
            after, rewards = self.module.step(self.rules, state, actions, *chance)
            same("rewards", [float(reward) for reward in rewards], self.numbers["rewards"][time][episode], state)
            self.compare(episode, after, pictures=random.random() < picture_share)
            note_events(seen, state, after, actions)
            state = after
        seen["early end"] += state.time < self.rules.horizon

    def compare(self, episode: int, state: Any, pictures: bool) -> None:
        """Everything that the game says of this state."""
        for name, values in self.states.items():
            same(name, getattr(state, name), values[state.time][episode], state)
        module, rules, time = self.module, self.rules, state.time
        same("legal", module.legal(rules, state), self.numbers["legal"][time][episode], state)
        same("terminated", module.terminated(rules, state), self.numbers["terminated"][time][episode], state)
        if not pictures:
            return
        assert np.array_equal(module.board(rules, state), self.boards[time, episode]), f"board of {state}"
        for viewer in range(self.num_agents):
            planes, share_of_time, last_actions = module.observe(rules, state, viewer)
            assert np.array_equal(planes, self.planes[time, episode, viewer]), f"planes of {viewer} in {state}"
            same("time", float(share_of_time), float(self.times[time, episode, viewer]), state)
            same("last actions", last_actions, self.last_actions[time][episode][viewer], state)


def same(name: str, expected: Any, actual: Any, state: Any) -> None:
    assert expected == actual, f"{name}: the reference says {expected}, the game {actual}, at {state}"


def note_events(seen: Counter, before: Any, after: Any, actions: list[int]) -> None:
    """Counts what happened, so that a test can tell that it has tested something."""
    seen["steps"] += 1
    seen["illegal action"] += any(
        played not in (action, -1) for played, action in zip(after.last_actions, actions, strict=True)
    )
    if isinstance(before, stag_hunt.State):
        hunts = [seat for seat in after.seats if after.last_actions[seat] == stag_hunt.HUNT_STAG]
        seen["lone hunter"] += any(after.present[seat] for seat in hunts)
        seen["stag caught"] += any(not after.present[seat] for seat in hunts)
        seen["hare caught"] += stag_hunt.HUNT_HARE in after.last_actions
        seen["prey moved"] += before.prey_position != after.prey_position
    if isinstance(before, coins.State):
        takers = [[seat for seat in before.seats if after.position[seat] == coin] for coin in before.coin_position]
        seen["own coin"] += any(of_one == [owner] for owner, of_one in enumerate(takers))
        seen["another's coin"] += any(of_one and owner not in of_one for owner, of_one in enumerate(takers))
        seen["shared coin"] += any(len(of_one) > 1 for of_one in takers)
        seen["two coins at once"] += sum(map(bool, takers)) > 1
    if isinstance(before, harvest.State):
        seen["apple eaten"] += any(map(any, before.apples)) and len(rewards_of(before, after)) > 0
        seen["shared apple"] += len(set(rewards_of(before, after))) < len(rewards_of(before, after))
        seen["apple grown"] += any(
            now and not was
            for row, old in zip(after.apples, before.apples, strict=True)
            for now, was in zip(row, old, strict=True)
        )
        seen["hit"] += any(now > was for now, was in zip(after.away, before.away, strict=True))
        seen["returned"] += any(was and not now for now, was in zip(after.away, before.away, strict=True))
    if isinstance(before, foraging.State):
        loaders = after.last_actions.count(foraging.LOAD)
        seen["food loaded"] += before.foods != after.foods
        seen["loaded in vain"] += bool(loaders) and before.foods == after.foods
        seen["shared food"] += loaders > len(before.foods) - len(after.foods) > 0
        moves = [seat for seat in before.seats if after.last_actions[seat] < 4]
        seen["collision"] += any(before.position[seat] == after.position[seat] for seat in moves)
    if isinstance(before, snowdrift.State):
        removers = after.last_actions.count(snowdrift.REMOVE)
        seen["drift removed"] += removers > 0
        seen["drift shared"] += removers > sum(before.drift_remains) - sum(after.drift_remains)


def rewards_of(before: harvest.State, after: harvest.State) -> list[int]:
    """The cells of the players that are on what was an apple."""
    return [after.position[seat] for seat in before.present if before.has_apple(after.position[seat])]


def expected_events(game: Game) -> set[str]:
    if isinstance(game, MatrixGame):
        return {"steps"}
    if isinstance(game, Coins):
        return {"illegal action", "own coin", "another's coin", "shared coin", "two coins at once"}
    if isinstance(game, Harvest):
        events = {"illegal action", "apple eaten", "shared apple", "apple grown"}
        return events | {"hit", "returned"} if game.has_beam else events
    if isinstance(game, Foraging):
        return {"illegal action", "food loaded", "loaded in vain", "shared food", "collision", "early end"}
    if isinstance(game, Snowdrift):
        return {"illegal action", "drift removed", "drift shared", "early end"}
    if game.spec.horizon == 1:
        return {"illegal action"}
    events = {"illegal action"}
    events |= {"stag caught", "lone hunter"} if game.num_stags else set()
    events |= {"hare caught"} if game.num_hares else set()
    events |= {"prey moved"} if game.prey_moves else set()
    events |= {"early end"} if game.steps_after_first_catch is not None else set()
    return events


def check_agreement(
    game: Game, num_batches: int, batch: int, picture_share: float, compiler_options: dict[str, Any]
) -> Counter:
    """Plays so many episodes and replays each; returns what was seen in them."""
    play_batch = jax.jit(lambda whims, key: play(game, whims, key), compiler_options=compiler_options)
    random = np.random.default_rng(0)
    support = set(np.asarray(game.spec.reward_support, np.float32).tolist())
    seen = Counter()
    for key in jax.random.split(jax.random.key(7), num_batches):
        played = PlayedBatch(game, jax.device_get(play_batch(draw_whims(game, batch, random), key)))
        for episode in range(batch):
            played.replay(episode, seen, picture_share, random)
        assert isinstance(game, Foraging) or set(np.ravel(played.numbers["rewards"]).tolist()) <= support
    return seen


@pytest.mark.parametrize("name", [*MANY_TIMES, *ALSO])
def test_game_agrees_with_reference(name: str) -> None:
    game = (MANY_TIMES | ALSO)[name]
    seen = check_agreement(game, num_batches=1, batch=30, picture_share=1.0, compiler_options=QUICK_COMPILE)
    assert expected_events(game) <= {event for event, count in seen.items() if count}, seen


@pytest.mark.heavy
@pytest.mark.parametrize("name", [*MANY_TIMES, *ALSO])
def test_game_agrees_with_reference_in_many_episodes(name: str) -> None:
    num_episodes = 10_000 if name in MANY_TIMES else 1_000
    check_agreement((MANY_TIMES | ALSO)[name], num_episodes // BATCH, BATCH, picture_share=0.1, compiler_options={})


def assert_even(counts: Counter, options: int) -> None:
    """Every option came up, none more than five standard deviations from its share."""
    total = sum(counts.values())
    share = 1.0 / options
    assert len(counts) == options, f"{len(counts)} of {options} options came up"
    assert max(abs(count / total - share) for count in counts.values()) < 5.0 * np.sqrt(share * (1.0 - share) / total)


def test_arenas_and_spawns_are_uniform() -> None:
    game = StagHunt(grid=ARENAS)
    first = jax.jit(jax.vmap(lambda key: game.reset(key=key)))(jax.random.split(jax.random.key(1), 6_000))
    walls, spawns = np.asarray(first.walls), np.concatenate([first.position, first.prey_position], axis=-1)
    sides, places, offsets = Counter(), Counter(), Counter()
    for free, cells in zip(~walls, spawns, strict=True):
        side = round(np.sqrt(free.sum()))
        top, left = np.argwhere(free).min(axis=0).tolist()
        sides[side] += 1
        if side == 5:
            places[top, left] += 1
            offsets.update((thing, cell // 8 - top, cell % 8 - left) for thing, cell in enumerate(cells.tolist()))
    assert_even(sides, options=6)
    assert_even(places, options=4 * 4)
    assert_even(offsets, options=len(spawns[0]) * 5 * 5)


def test_prey_draws_are_uniform() -> None:
    game = StagHunt(prey_moves=0.3)
    draws = jax.jit(jax.vmap(lambda key: game.draw_prey_moves(key=key)))(jax.random.split(jax.random.key(2), 10_000))
    order, moves = np.asarray(draws.order), np.asarray(draws.moves)
    quarter = (np.asarray(draws.direction) >> 30).astype(int)
    assert_even(Counter(map(tuple, order.tolist())), options=120)
    assert np.all(np.abs(moves.mean(axis=0) - 0.3) < 5.0 * np.sqrt(0.3 * 0.7 / 10_000))
    for prey in range(5):
        assert_even(Counter(quarter[:, prey].tolist()), options=4)
        # A prey that moves at all, or first, must not for that reason move in another direction.
        assert_even(Counter(quarter[moves[:, prey], prey].tolist()), options=4)
        assert_even(Counter(quarter[order[:, 0] == prey, prey].tolist()), options=4)
