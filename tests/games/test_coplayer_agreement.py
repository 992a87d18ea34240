"""The scripted co-players against the reference: the same distribution at every step of scripted and random play."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.board import Board
from hopplus.games.coins import Coins
from hopplus.games.foraging import Foraging
from hopplus.games.game import Game
from hopplus.games.harvest import Harvest
from hopplus.games.lineups import lineup
from hopplus.games.matrix import MatrixGame
from hopplus.games.snowdrift import Snowdrift
from hopplus.games.stag_hunt import StagHunt
from reference import seats_from
from reference.coplayers import (
    AnyCoins,
    Forager,
    Greedy,
    Idler,
    NearestDrift,
    NearestHare,
    NearestStag,
    Noisy,
    OwnCoins,
    PatientStag,
    Random,
    Script,
    Sustainable,
    View,
    Zapper,
    steps_on_stag_after,
)

NUM_EPISODES = 24
# What is tested is the same with less work for the compiler, which is where these tests spend their time.
QUICK_COMPILE = {"xla_backend_optimization_level": 0}


@dataclass(frozen=True)
class Case:
    game: Game
    text: str
    scripts: tuple[Script, ...]


HUNTERS = "nearest_stag,nearest_hare,patient_stag(3),noisy(random,0.1)"
HUNTER_SCRIPTS = (NearestStag(), NearestHare(), PatientStag(3), Noisy(Random(), 0.1))
WAITERS = "patient_stag(1),noisy(patient_stag(2),0.25),noisy(nearest_hare,0.5),patient_stag(0)"
WAITER_SCRIPTS = (PatientStag(1), Noisy(PatientStag(2), 0.25), Noisy(NearestHare(), 0.5), PatientStag(0))
CLEARERS = "nearest_drift,idler,random,noisy(nearest_drift,0.2)"
CLEARER_SCRIPTS = (NearestDrift(), Idler(), Random(), Noisy(NearestDrift(), 0.2))
COLLECTOR_SCRIPTS = (OwnCoins(), AnyCoins(), Noisy(OwnCoins(), 0.5))
FORAGER_SCRIPTS = (Forager("nearest"), Forager("strongest"), Forager("easy"), Noisy(Forager("easy"), 0.5))
OBSTACLES, ARENAS = Board(obstacle_pieces=5), Board(arena_sides=(3, 8))
CASES = {
    "open": Case(StagHunt(), HUNTERS, HUNTER_SCRIPTS),
    "small": Case(StagHunt(grid=Board(4, 4)), WAITERS, WAITER_SCRIPTS),
    "obstacles": Case(StagHunt(grid=OBSTACLES), HUNTERS, HUNTER_SCRIPTS),
    "obstacles, two stags": Case(StagHunt(grid=OBSTACLES, num_stags=2, num_hares=3), WAITERS, WAITER_SCRIPTS),
    "arenas, moving prey": Case(
        StagHunt(grid=ARENAS, num_stags=2, num_hares=3, prey_moves=0.3), HUNTERS, HUNTER_SCRIPTS
    ),
    "arenas with obstacles": Case(
        StagHunt(grid=Board(obstacle_pieces=4, arena_sides=(4, 8)), num_hares=2), WAITERS, WAITER_SCRIPTS
    ),
    "no stags": Case(StagHunt(grid=Board(4, 4), num_stags=0), HUNTERS, HUNTER_SCRIPTS),
    "no hares": Case(StagHunt(grid=Board(4, 5), num_hares=0), HUNTERS, HUNTER_SCRIPTS),
    "short": Case(StagHunt(steps_after_first_catch=2), HUNTERS, HUNTER_SCRIPTS),
    "drifts": Case(Snowdrift(), CLEARERS, CLEARER_SCRIPTS),
    "drifts, obstacles": Case(Snowdrift(grid=OBSTACLES), CLEARERS, CLEARER_SCRIPTS),
    "coins": Case(
        Coins(grid=Board(4, 4), num_players=3), "own_coins,any_coins,noisy(own_coins,0.5)", COLLECTOR_SCRIPTS
    ),
    "foraging": Case(
        Foraging(grid=Board(5, 6, obstacle_pieces=1), player_levels=3),
        "nearest_food,strongest_food,easy_food,noisy(easy_food,0.5)",
        FORAGER_SCRIPTS,
    ),
    "harvest": Case(
        Harvest(grid=Board(6, 6, obstacle_pieces=1), away_steps=3, horizon=40),
        "greedy,sustainable(2),zapper(3),noisy(sustainable,0.5)",
        (Greedy(), Sustainable(2), Zapper(3), Noisy(Sustainable(3), 0.5)),
    ),
    "matrix game": Case(MatrixGame(), "random,noisy(random,0.3)", (Random(), Noisy(Random(), 0.3))),
}


def play(case: Case, noise: np.ndarray, is_scripted: np.ndarray, key: jax.Array) -> dict[str, Any]:
    """Episodes, [time, episodes]: each state, the legal actions in it, and what the line-up would do there."""
    game, players = case.game, lineup(case.text, case.game)
    reset_key, steps_key = jax.random.split(key)
    states = jax.vmap(lambda key: game.reset(key=key))(jax.random.split(reset_key, NUM_EPISODES))
    policy_state = jax.tree.map(lambda leaf: jnp.stack([leaf] * NUM_EPISODES), players.init())

    def step(state: Any, policy_state: Any, noise: jax.Array, is_scripted: jax.Array, key: jax.Array) -> Any:
        legal = game.legal(state)
        probabilities, policy_state = players(game.observe(state), legal, policy_state)
        chances = jnp.where(is_scripted, probabilities, legal.astype(jnp.float32))
        actions = jnp.argmax(jnp.log(chances) + noise, axis=-1).astype(jnp.int32)
        after, _ = game.step(state, actions, key=key)
        seen = {"state": state, "legal": legal, "terminated": game.terminated(state), "probabilities": probabilities}
        return (after, policy_state), seen

    def step_all(carry: Any, chance: tuple[jax.Array, jax.Array]) -> Any:
        step_noise, keys = chance
        return jax.vmap(step)(*carry, step_noise, is_scripted, keys)

    step_keys = jax.random.split(steps_key, noise.shape[:2])
    return jax.lax.scan(step_all, (states, policy_state), (noise, step_keys))[1]


def views(case: Case, seen: dict[str, Any], time: int, episode: int) -> list[View]:
    """What each seat knows at this step."""
    state, legal = seen["state"], seen["legal"][time, episode].tolist()
    if isinstance(case.game, MatrixGame):
        return [View(row, walls=[], cell=None, stags=[], hares=[], drifts=[]) for row in legal]
    walls, cells = state.walls[time, episode].tolist(), state.position[time, episode].tolist()
    if isinstance(case.game, Foraging):
        remains, levels = state.food_remains[time, episode], state.level[time, episode].tolist()
        places = state.food_position[time, episode][remains].tolist()
        foods = dict(zip(places, state.food_level[time, episode][remains].tolist(), strict=True))
        more = [{"level": level, "others": [*cells[:seat], *cells[seat + 1 :]]} for seat, level in enumerate(levels)]
        return [View(row, walls, cells[seat], [], [], [], foods=foods, **more[seat]) for seat, row in enumerate(legal)]
    if isinstance(case.game, Harvest):
        apples = np.flatnonzero(state.apples[time, episode]).tolist()
        away = state.away[time, episode].tolist()
        there = [seat for seat in range(len(cells)) if not away[seat]]
        others = [[cells[other] for other in there if other != seat] for seat in range(len(cells))]
        return [
            View(row, walls, cells[seat], [], [], [], others=others[seat], apples=apples)
            for seat, row in enumerate(legal)
        ]
    if isinstance(case.game, Coins):
        coins = state.coin_position[time, episode].tolist()
        return [
            View(row, walls, cells[seat], [], [], [], [coins[each] for each in seats_from(seat, len(cells))])
            for seat, row in enumerate(legal)
        ]
    stags, hares, drifts = [], [], []
    if isinstance(case.game, StagHunt):
        prey, alive = state.prey_position[time, episode].tolist(), state.prey_alive[time, episode].tolist()
        stags = [cell for index, cell in enumerate(prey) if alive[index] and index < case.game.num_stags]
        hares = [cell for index, cell in enumerate(prey) if alive[index] and index >= case.game.num_stags]
    else:
        remains = state.drift_remains[time, episode].tolist()
        drifts = [
            cell for cell, left in zip(state.drift_position[time, episode].tolist(), remains, strict=True) if left
        ]
    return [View(row, walls, cell, stags, hares, drifts) for row, cell in zip(legal, cells, strict=True)]


def has_given_up(script: Script, steps_on_stag: int) -> bool:
    return isinstance(script, PatientStag) and 0 < script.patience <= steps_on_stag


@pytest.mark.parametrize("name", CASES)
def test_lineup_agrees_with_reference(name: str) -> None:
    case = CASES[name]
    spec = case.game.spec
    random = np.random.default_rng(0)
    # One step more than the horizon, to see the line-up in the last state as well.
    noise = random.gumbel(size=(spec.horizon + 1, NUM_EPISODES, spec.num_agents, spec.num_actions)).astype(np.float32)
    is_scripted = np.arange(NUM_EPISODES) % 3 < 2
    run = jax.jit(lambda *chance: play(case, *chance), compiler_options=QUICK_COMPILE)
    seen = jax.device_get(run(noise, is_scripted, jax.random.key(5)))
    gave_up = 0
    for episode in range(NUM_EPISODES):
        steps_on_stag = [0 for _ in case.scripts]
        for time in range(spec.horizon + 1):
            for seat, view in enumerate(views(case, seen, time, episode)):
                expected = case.scripts[seat].probabilities(view, steps_on_stag[seat])
                actual = seen["probabilities"][time, episode, seat]
                # The two add up thirds and quarters in another order and precision.
                np.testing.assert_allclose(
                    actual, expected, atol=1e-6, err_msg=f"{case.scripts[seat]}, {steps_on_stag[seat]} steps, {view}"
                )
                gave_up += not view.must_stay and has_given_up(case.scripts[seat], steps_on_stag[seat])
                steps_on_stag[seat] = steps_on_stag_after(view, steps_on_stag[seat])
            if seen["terminated"][time, episode].all():
                break
    if isinstance(case.game, StagHunt) and case.game.num_stags:
        assert gave_up, "nobody lost patience, so patience was not tested"
