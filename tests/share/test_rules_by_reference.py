"""The rules and scripts of a page, against the slow references, which were written from the rules alone."""

from dataclasses import asdict, fields
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games.board import random_words
from hopplus.games.presets import make
from hopplus.share.games import page_game
from pages import in_node, needs_node
from reference import coins, coplayers, foraging, matrix, stag_hunt

PLAY = """
const { Session, Random } = hopplus;
const random = new Random(given.seed);
const episodes = [];
for (let episode = 0; episode < given.count; episode++) {
  const seats = given.page.lineup.map(() => given.players[random.below(given.players.length)]);
  const session = new Session(given.page, weights, seats, random);
  session.start();
  while (!session.isOver) {
    const actions = session.choose(new Map());
    const count = given.page.game.spec.action_names.length;
    session.play(random.below(4) ? actions : actions.map(() => random.below(count)));
  }
  episodes.push({
    seats,
    moments: session.moments.map(({ state, legal, over, actions, rewards, key, thoughts }) => ({
      state, legal, over, actions, rewards, key, probabilities: thoughts.map((one) => Array.from(one.probabilities)),
    })),
  });
}
process.stdout.write(JSON.stringify(episodes));
"""
SCRIPTS = {
    "random": coplayers.Random(),
    "nearest_stag": coplayers.NearestStag(),
    "nearest_hare": coplayers.NearestHare(),
    "patient_stag(3)": coplayers.PatientStag(3),
}
FORAGERS = {
    "random": coplayers.Random(),
    "nearest_food": coplayers.Forager("nearest"),
    "strongest_food": coplayers.Forager("strongest"),
    "easy_food": coplayers.Forager("easy"),
}
COLLECTORS = {"random": coplayers.Random(), "own_coins": coplayers.OwnCoins(), "any_coins": coplayers.AnyCoins()}
STAG_HUNTS = ("stag-hunt-4x4", "stag-hunt-8x8", "stag-hunt-8x8-obstacles")


def played(name, players, count):
    """Episodes that node plays: mostly what scripts choose, and sometimes any action, legal or not."""
    game = make(name)
    data = {"game": page_game(game, name), "scripts": [], "agents": [], "lineup": ["random"] * game.spec.num_agents}
    return game, in_node(PLAY, data, b"", players=list(players), count=count, seed=1)


def rows(flat, width):
    return [flat[start : start + width] for start in range(0, len(flat), width)]


def state_of(saved, width, of=stag_hunt):
    """A state of the reference from one of the page."""
    given = {field.name: saved[field.name] for field in fields(of.State)}
    return of.State(**(given | {"walls": rows(saved["walls"], width)}))


def view_of(state, legal, seat):
    alive = [cell for cell, lives in zip(state.prey_position, state.prey_alive, strict=True) if lives]
    stags = [cell for cell in alive if cell in state.prey_position[:1] and state.prey_alive[0]]
    hares = [cell for index, cell in enumerate(state.prey_position) if index and state.prey_alive[index]]
    cell = state.position[seat] if state.present[seat] else None
    return coplayers.View(legal=legal[seat], walls=state.walls, cell=cell, stags=stags, hares=hares, drifts=[])


def check_thoughts(rules, state, moment, seats, on_stag):
    legal = stag_hunt.legal(rules, state)
    assert moment["legal"] == legal and moment["over"] == stag_hunt.terminated(rules, state)
    for seat, name in enumerate(seats):
        if moment["over"][seat]:
            continue
        view = view_of(state, legal, seat)
        wanted = SCRIPTS[name].probabilities(view, on_stag[seat])
        assert moment["probabilities"][seat] == pytest.approx(wanted, abs=1e-6)
        on_stag[seat] = coplayers.steps_on_stag_after(view, on_stag[seat])


@needs_node
@pytest.mark.parametrize("count", [12, pytest.param(1000, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("name", STAG_HUNTS)
def test_stag_hunts_are_played_by_the_rules(name, count):
    game, episodes = played(name, SCRIPTS, count)
    rules = stag_hunt.Rules(1, game.spec.horizon, 10.0, 1.0, None, game.grid.obstacle_pieces, None)
    for episode in episodes:
        moments, on_stag = episode["moments"], [0] * 4
        stag_hunt.check_reset(rules, state_of(moments[0]["state"], game.grid.width))
        for moment, after in pairwise(moments):
            state = state_of(moment["state"], game.grid.width)
            check_thoughts(rules, state, moment, episode["seats"], on_stag)
            expected, rewards = stag_hunt.step(rules, state, moment["actions"])
            assert asdict(state_of(after["state"], game.grid.width)) == asdict(expected)
            assert moment["rewards"] == [float(reward) for reward in rewards]
        assert all(moments[-1]["over"]) and all(stag_hunt.terminated(rules, expected))
    assert len(episodes) == count


@needs_node
@pytest.mark.parametrize("count", [12, pytest.param(1000, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("name", ["matrix-stag-hunt", "matrix-prisoners-dilemma", "matrix-chicken"])
def test_matrix_games_are_played_by_the_rules(name, count):
    game, episodes = played(name, ["random"], count)
    rules = matrix.Rules(game.payoff, game.spec.horizon)
    for episode in episodes:
        moments = episode["moments"]
        matrix.check_reset(rules, matrix.State(**moments[0]["state"]))
        for moment, after in pairwise(moments):
            expected, rewards = matrix.step(rules, matrix.State(**moment["state"]), moment["actions"])
            assert after["state"] == asdict(expected)
            assert moment["rewards"] == [float(reward) for reward in rewards]
        assert len(moments) == game.spec.horizon + 1


def foraging_view(state, legal, seat):
    foods = {state.food_position[food]: state.food_level[food] for food in state.foods}
    others = [cell for other, cell in enumerate(state.position) if other != seat]
    seen = {"foods": foods, "level": state.level[seat], "others": others}
    return coplayers.View(legal[seat], state.walls, state.position[seat], [], [], [], **seen)


def coins_view(state, legal, seat):
    count = len(state.position)
    own_first = [state.coin_position[(seat + place) % count] for place in range(count)]
    return coplayers.View(legal[seat], state.walls, state.position[seat], [], [], [], coins=own_first)


def check_episode(of, rules, episode, width, scripts, view_of, step):
    """Every state, reward, end, legal action and probability of an episode in which nobody leaves."""
    moments = episode["moments"]
    of.check_reset(rules, state_of(moments[0]["state"], width, of))
    for moment, after in pairwise(moments):
        state = state_of(moment["state"], width, of)
        legal = of.legal(rules, state)
        assert moment["legal"] == legal and moment["over"] == of.terminated(rules, state)
        for seat, name in enumerate(episode["seats"]):
            wanted = scripts[name].probabilities(view_of(state, legal, seat), 0)
            assert moment["probabilities"][seat] == pytest.approx(wanted, abs=1e-6)
        expected, rewards = step(state, moment)
        assert asdict(state_of(after["state"], width, of)) == asdict(expected)
        assert moment["rewards"] == [float(reward) for reward in rewards]
    assert all(moments[-1]["over"]) and all(of.terminated(rules, expected))


@needs_node
@pytest.mark.parametrize("count", [12, pytest.param(1000, marks=pytest.mark.heavy)])
def test_foraging_is_played_by_the_rules(count):
    game, episodes = played("foraging-8x8", FORAGERS, count)
    rules = foraging.Rules(game.horizon, game.player_levels, game.food_levels, 0, None)

    def step(state, moment):
        return foraging.step(rules, state, moment["actions"])

    for episode in episodes:
        check_episode(foraging, rules, episode, game.grid.width, FORAGERS, foraging_view, step)
    assert len(episodes) == count


@needs_node
@pytest.mark.parametrize("count", [12, pytest.param(1000, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("name", ["coins-3x3", "coins-5x5"])
def test_coins_are_played_by_the_rules(name, count):
    game, episodes = played(name, COLLECTORS, count)
    rules = coins.Rules(game.horizon, game.coin_reward, game.cost, 0, None)
    keys = jnp.array([moment["key"] for one in episodes for moment in one["moments"][:-1]], jnp.uint32)
    words_of = jax.vmap(lambda key: random_words(game.num_players, key=jax.random.wrap_key_data(key)))
    words = iter(np.asarray(words_of(keys)).tolist())

    def step(state, moment):
        return coins.step(rules, state, moment["actions"], coins.Draws(next(words)))

    for episode in episodes:
        check_episode(coins, rules, episode, game.grid.width, COLLECTORS, coins_view, step)
    assert len(episodes) == count
