"""Line-ups, the normalisation worked by hand, and the player by belief against a filter in plain Python."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.evaluation import selfplay, series
from hopplus.evaluation.adaptation import (
    HUNTERS,
    OneOf,
    agent_returns,
    all_lineups,
    by_belief,
    first_seat_returns,
    normalised,
    partner_probability,
    scripts,
    short_name,
)
from hopplus.games.board import Board
from hopplus.games.coplayers import Lineup, Policy, usual_kinds
from hopplus.games.lineups import lineup
from hopplus.games.presets import make
from hopplus.games.rollout import init_env, rollout
from hopplus.games.stag_hunt import StagHunt
from hopplus_doctor.statistics import mean_of_known
from reference.coplayers import NearestHare, NearestStag, Random, View

HUNT = make("stag-hunt-4x4")
PAIR = StagHunt(grid=Board(4, 4), num_players=2)
STAG, HARE = 0, 1


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(series, "NUM_ENVS", 100)


def test_every_line_up_is_listed_once():
    names = [short_name(one) for one in all_lineups(HUNT.spec)]
    assert names == ["NNN", "NNH", "NNR", "NHH", "NHR", "NRR", "HHH", "HHR", "HRR", "RRR"]
    assert all_lineups(PAIR.spec) == [("nearest_stag",), ("nearest_hare",), ("random",)]
    assert len(all_lineups(HUNT.spec, (*HUNTERS, "patient_stag(3)"))) == 20


@pytest.mark.parametrize("kinds", [("nearest_stag", "nearest_stag"), ("idler",), ()])
def test_a_kind_is_known_and_named_once(kinds):
    with pytest.raises(ValueError, match="some of nearest_stag, nearest_hare, patient_stag, random, noisy or MODULE"):
        all_lineups(HUNT.spec, kinds)


@pytest.mark.parametrize(
    ("name", "line_ups"),
    [
        ("coins-3x3", ["O", "A", "R"]),
        ("foraging-8x8", ["SSS", "SSE", "SSR", "SEE", "SER", "SRR", "EEE", "EER", "ERR", "RRR"]),
        ("snowdrift-8x8", ["NNN", "NNI", "NNR", "NII", "NIR", "NRR", "III", "IIR", "IRR", "RRR"]),
        ("harvest-8x8-beam", ["SSS", "SSG", "SSR", "SGG", "SGR", "SRR", "GGG", "GGR", "GRR", "RRR"]),
        ("matrix-stag-hunt", ["R"]),
    ],
)
def test_every_game_has_line_ups_of_its_scripts(name, line_ups):
    spec = make(name).spec
    assert [short_name(one) for one in all_lineups(spec)] == line_ups
    assert len(scripts(make(name))) == len(usual_kinds(spec))


def test_line_ups_need_players_that_can_change_seats():
    with pytest.raises(ValueError, match="have different roles"):
        all_lineups(dataclasses.replace(PAIR.spec, roles=("red", "blue")))


def test_normalised_returns_by_hand():
    """Two seeds, three line-ups; in the last the oracle gains .01, which is too little to divide by."""
    uniform, oracle = np.array([1.0, 0.5, 0.3]), np.array([5.0, 1.0, 0.31])
    agent = np.array([[3.0, 1.0, 0.3], [1.0, 0.25, 9.0]])
    found = normalised(agent, uniform, oracle)
    np.testing.assert_allclose(found, [[0.5, 1.0, np.nan], [0.0, -0.5, np.nan]])
    np.testing.assert_allclose(mean_of_known(found), [0.75, -0.25])
    np.testing.assert_allclose(normalised(oracle, uniform, oracle), [1.0, 1.0, np.nan])


def test_a_partner_who_has_left_is_none():
    hunts = jnp.array([0.5, 0.5, 0.9])
    assert float(partner_probability(hunts, jnp.array([True, True, False]))) == pytest.approx(0.75)
    assert float(partner_probability(hunts, jnp.zeros(3, bool))) == 0


def likelihoods(state, legal, time, seat):
    """For each kind, what the seat does in this state, with a twentieth of uniform legal play mixed in."""
    cells, alive = state.prey_position[time], state.prey_alive[time]
    view = View(
        legal=legal[time, seat].tolist(),
        walls=state.walls[time].tolist(),
        cell=int(state.position[time, seat]),
        stags=cells[:1][alive[:1]].tolist(),
        hares=cells[1:][alive[1:]].tolist(),
        drifts=[],
    )
    uniform = np.array(view.legal) / np.sum(view.legal)
    kinds = [NearestStag(), NearestHare(), Random()]
    return np.array([0.95 * np.array(kind.probabilities(view, 0)) + 0.05 * uniform for kind in kinds])


def test_beliefs_are_those_of_a_filter_in_plain_python():
    """The believer sits in seat 2, so that its co-players come in the order 3, 0, 1."""
    stag, hare, random = scripts(HUNT)
    players = Lineup((random, hare, by_belief(HUNT), stag))

    @jax.jit
    @jax.vmap
    def first_steps(key):
        open_key, play_key = jax.random.split(key)
        return rollout(HUNT, players, init_env(HUNT, players, key=open_key), 10, key=play_key)[1]

    envs = jax.device_get(first_steps(jax.random.split(jax.random.key(4), 12)))
    checked = sum(_check_beliefs(jax.tree.map(lambda leaf, index=index: leaf[index], envs)) for index in range(12))
    assert checked > 30


def _check_beliefs(steps, *, seat=2, others=(3, 0, 1)):
    """Compare the beliefs in every step of an environment; return how often they changed."""
    (remembered,) = [group for group in steps.policy_state if not isinstance(group, tuple)]
    belief, checked = np.zeros((3, 3)), 0
    for time in range(len(steps.actions)):
        if steps.reset_before[time]:
            belief = np.full((3, 3), 1 / 3)
        elif steps.state.present[time, seat]:
            for index, other in enumerate(others):
                if steps.state.present[time - 1, other]:
                    seen = likelihoods(steps.state, steps.legal, time - 1, other)
                    belief[index] *= seen[:, steps.actions[time - 1, other]]
                    belief[index] /= belief[index].sum()
                    checked += 1
        np.testing.assert_allclose(remembered.belief[time, 0], belief, rtol=1e-4, atol=1e-6)
    return checked


def test_one_of_several_plays_as_the_one_itself():
    among = first_seat_returns(PAIR, scripts(PAIR), [STAG], [("random",)], 100, key=jax.random.key(1))
    alone = first_seat_returns(PAIR, scripts(PAIR)[:1], [0], [("random",)], 100, key=jax.random.key(1))
    np.testing.assert_array_equal(among, alone)


def test_the_first_seat_gets_in_a_series_what_it_gets_in_single_episodes():
    """Scripts remember nothing from one episode to the next, and returns of whole episodes are no other."""
    (got,) = first_seat_returns(PAIR, scripts(PAIR), [HARE], [("random",)], 100, 5, key=jax.random.key(1))
    itself = selfplay.play(PAIR, lineup("nearest_hare,random", PAIR), 500, num_seeds=1, key=jax.random.key(2))
    expected = itself.returns[0, :, 0].mean()
    assert got.shape == (100, 5) and got.mean() == pytest.approx(expected, abs=0.05)
    np.testing.assert_allclose(got.mean(axis=0), expected, atol=0.12)


class Counting(Policy):
    """Stays for its first two episodes, then hunts hares."""

    hunter: Policy

    def init(self):
        return jnp.int32(0)

    def next_episode(self, policy_state):
        return policy_state + 1

    def __call__(self, observation, legal, policy_state):
        hunting, _ = self.hunter(observation, legal, ())
        staying = jax.nn.one_hot(PAIR.spec.stay, PAIR.spec.num_actions)
        return jnp.where(policy_state < 2, staying, hunting), policy_state


def test_what_is_remembered_is_carried_through_a_series_and_no_further():
    player = Counting(scripts(PAIR)[HARE])
    (got,) = first_seat_returns(PAIR, [player], [0], [("nearest_stag",)], 100, 4, key=jax.random.key(1))
    assert np.all(got[:, :2] == 0) and np.all(got[:, 2:] > 0)


def test_by_belief_hunts_what_its_co_players_hunt():
    names = [name for name in HUNTERS if name != "random"]
    chosen = [(name,) * 3 for name in names for _ in range(2)]
    players = [by_belief(HUNT), scripts(HUNT)[STAG]]
    found = first_seat_returns(HUNT, players, [0, 1] * 2, chosen, 300, key=jax.random.key(2))
    with_stags, stags_alone, with_hares, among_hares = found.mean(axis=(1, 2))
    assert with_stags > 2.6 and with_stags == pytest.approx(stags_alone, abs=0.2)
    assert with_hares > 0.85 and among_hares == 0


def test_returns_of_an_agent_by_manner_and_seed_and_line_up():
    """Its policies are scripts by number, and differ by seed, by manner and by seat."""
    policy = lambda *by_seed: OneOf(scripts(PAIR), jnp.array(by_seed, jnp.int32))  # noqa: E731
    manners = [[policy(STAG, HARE)], [policy(HARE, STAG)]]
    found = agent_returns(PAIR, manners, all_lineups(PAIR.spec), 100, num_seeds=2, key=jax.random.key(3))[..., 0]
    assert found.shape == (2, 2, 3)
    for manner, seed in ((0, 0), (1, 1)):
        with_stag, with_hare, _ = found[manner, seed]
        assert with_stag == 5 and with_hare == 0, "hunts stags"
    for manner, seed in ((0, 1), (1, 0)):
        assert np.all(found[manner, seed] > 0.8) and np.all(found[manner, seed] <= 1), "hunts hares"
    seats = [policy(STAG, HARE), policy(STAG, STAG)]
    (two_seats,) = agent_returns(PAIR, [seats], all_lineups(PAIR.spec), 200, num_seeds=2, key=jax.random.key(3))
    assert two_seats[0, 0, 0] == 5 and 2.9 < two_seats[1, 0, 0] <= 3, "the mean over its seats' policies"
