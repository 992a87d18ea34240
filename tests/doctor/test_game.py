"""`doctor game` finds what was planted, in games of ours and in PettingZoo environments, and clears what is fair."""

import importlib.util
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from pettingzoo.test.example_envs import generated_agents_parallel_v0

from hopplus.doctor import game as doctor_game
from hopplus.doctor.alike import Measured, standing_out, trends
from hopplus.doctor.answer import Answer, settled
from hopplus.doctor.faults import TieToTheLowestSeat
from hopplus.doctor.first_views import FirstViews
from hopplus.doctor.game import ask, ask_env, groups_of, load_env, stem
from hopplus.games import contract
from hopplus.games.bridges.pettingzoo import parallel_env
from hopplus.games.matrix import MatrixGame
from hopplus.games.presets import make
from probes import SMALL, FirstSeatNearTheStag

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
BAD = ("suspicious", "broken")


def load(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


planted = load("biased_envs")


def found(answer: Answer) -> dict[str, str]:
    """What is bad, and what is to blame for it."""
    return {finding.check: finding.module for finding in answer.findings if finding.verdict in BAD}


@pytest.fixture
def quick_contract(monkeypatch):
    """Fewer situations: what is planted here shows at once."""
    monkeypatch.setattr(contract, "NUM_TABLES", 128)


@pytest.mark.usefixtures("quick_contract")
def test_the_stag_hunt_is_cleared():
    told = []
    answer = ask(make("stag-hunt-4x4"), "stag-hunt-4x4", seconds=0.0, tell=told.append)
    assert found(answer) == {}
    checks = [finding.check for finding in answer.findings]
    assert checks == [
        *(f"contract, {name}" for name in ("spawns", "seats", "ego views")),
        "returns",
        "returns, trend",
        "ties",
    ]
    assert told[-1] == "random play: 4,096 episodes"
    picture = answer.findings[3].picture
    assert picture is not None and picture.labels == ("player_1", "player_2", "player_3", "player_4")


@pytest.mark.usefixtures("quick_contract")
def test_a_hare_that_goes_to_the_lowest_seat_is_found_by_the_rules_and_by_the_ties(monkeypatch):
    monkeypatch.setattr(doctor_game, "PROMISES", {"seats": doctor_game.PROMISES["seats"]})
    bad = found(ask(TieToTheLowestSeat(grid=SMALL), "tie", seconds=0.0))
    assert bad["contract, seats"] == bad["ties"] == "game: rules"


def test_a_seat_that_spawns_next_to_the_prey_is_found(monkeypatch):
    monkeypatch.setattr(doctor_game, "PROMISES", {"spawns": doctor_game.PROMISES["spawns"]})
    answer = ask(FirstSeatNearTheStag(grid=SMALL), "near", seconds=0.0)
    assert found(answer)["contract, spawns"] == "game: spawns"
    assert answer.findings[0].next == "hopplus check near"


def test_a_game_without_deeds_has_no_ties(monkeypatch):
    monkeypatch.setattr(doctor_game, "PROMISES", {"spawns": doctor_game.PROMISES["spawns"]})
    answer = ask(MatrixGame(num_players=3), "matrix", seconds=0.0)
    assert found(answer) == {} and "ties" not in [finding.check for finding in answer.findings]


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("FirstIsPaidMore", "game: returns"),
        ("TieToTheFirst", "game: returns"),
        ("FirstSpawnsNearer", "game: spawns"),
    ],
)
def test_a_planted_bias_is_found_through_the_loader(name, module, monkeypatch):
    monkeypatch.chdir(BENCHMARKS)
    answer = ask_env(load_env(f"biased_envs:{name}"), name, seconds=1.5)
    assert answer.verdict == "broken" and module in found(answer).values()
    loudest = next(finding for finding in answer.findings if finding.check == "returns")
    assert loudest.verdict == "broken" and loudest.says.startswith("player_0's return is +")


@pytest.mark.parametrize("name", ["Matching", "Coins", "Foraging"])
def test_the_same_without_the_bias_is_cleared(name):
    assert found(ask_env(getattr(planted, name), name, seconds=1.5)) == {}


def test_a_game_of_ours_through_the_bridge_is_cleared():
    assert found(ask_env(partial(parallel_env, MatrixGame(num_players=3)), "matrix", seconds=2.0)) == {}


class Gaps(planted.Matching):
    """The last player has to go after the first step, and everybody is told who they are."""

    num_seen = 2

    def has_left(self, agent):
        return agent == "player_2"

    def views(self):
        return {agent: np.array([int(agent[-1]), self.random.random()]) for agent in self.agents}


def test_an_agent_that_leaves_first_is_found_and_an_identity_is_no_bias():
    answer = ask_env(Gaps, "gaps", seconds=0.5)
    assert found(answer)["leaving"] == "game: termination"
    views = next(finding for finding in answer.findings if finding.check == "first observations")
    assert views.verdict not in BAD and "1 numbers never change" in views.says


class Roles(planted.Matching):
    """A wolf, who is paid more, and two sheep, who see more."""

    def __init__(self):
        super().__init__()
        self.possible_agents = ["wolf_0", "sheep_0", "sheep_1"]

    def play(self, actions):
        return {agent: reward + 5 * (agent == "wolf_0") for agent, reward in super().play(actions).items()}

    def views(self):
        return {agent: np.zeros(len(agent)) for agent in self.agents}


def test_only_agents_of_the_same_role_are_compared():
    answer = ask_env(Roles, "roles", seconds=0.5)
    assert found(answer) == {}
    assert [finding.check for finding in answer.findings] == [
        "roles",
        "first observations of sheep",
        "returns of sheep",
        "leaving of sheep",
    ]
    assert [stem(agent) for agent in ("agent_0", "agent-12", "knight7", 3, "alice")] == [
        "agent",
        "agent",
        "knight",
        "agent",
        "alice",
    ]
    assert groups_of(["alice", "bob"]) == []


def test_observations_of_different_shapes_are_not_compared():
    views = FirstViews(("a_0", "a_1"))
    views.add({"a_0": np.zeros(2), "a_1": np.zeros(3)})
    finding = views.finding("", "")
    assert finding.verdict == "not enough evidence" and "different shapes" in finding.says


def test_too_little_time_is_not_enough_evidence():
    answer = ask_env(planted.Coins, "coins", seconds=0.0)
    assert answer.verdict == "not enough evidence" and found(answer) == {}


def returns_finding(values):
    measured = Measured("returns", "game: returns", "return", values, ("a", "b", "c", "d"), 0.02, "")
    findings = (standing_out(measured), *trends(measured))
    return settled([Answer("game", "", findings)])[0]


def test_the_farthest_seat_is_weighed_by_hand_worked_numbers():
    values = np.tile([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], (50, 1))
    finding = returns_finding(values).findings[0]
    # x is 3/4 once and -1/4 thrice: its mean square is 3/16 in each of 100 episodes, and the error sqrt(18.75) / 100
    assert finding.effect is not None and finding.test is not None
    assert finding.effect.estimate == pytest.approx(0.25)
    assert finding.effect.high - finding.effect.estimate == pytest.approx(3.227 * np.sqrt(18.75) / 100, rel=1e-3)
    assert finding.test.p_value == pytest.approx(4 * 7.75e-9, rel=0.02)


@pytest.mark.parametrize("chance", [0.02, 0.5])
def test_fair_returns_raise_no_alarm_be_they_rare_or_not(chance):
    random = np.random.default_rng(0)
    drawn = (random.random((150, 400, 4)) < chance) * random.exponential(size=(150, 400, 4))
    alarms = [returns_finding(values).verdict in BAD for values in drawn]
    assert sum(alarms) <= 2


def test_seats_that_always_get_the_same_are_fine_and_those_never_paid_are_unknown():
    assert returns_finding(np.ones((100, 4))).verdict == "fine"
    measured = Measured("returns", "game: returns", "return", np.zeros((100, 2)), ("a", "b"), 0.0, "")
    assert standing_out(measured).verdict == "not enough evidence"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("biased_envs", "give MODULE:FACTORY"),
        ("no_such_module:make", "No module named 'no_such_module'; give MODULE:FACTORY that can be imported from here"),
        ("math:no_such_factory", "no attribute 'no_such_factory'"),
        ("math:pi", "is a float; give a function that makes the environment"),
    ],
)
def test_what_cannot_be_loaded_is_said(text, words):
    with pytest.raises(ValueError, match=words):
        load_env(text)


def test_what_is_no_environment_of_known_seats_is_said():
    with pytest.raises(ValueError, match=r"is no pettingzoo\.ParallelEnv"):
        ask_env(dict, "builtins:dict", seconds=0.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="possible_agents"):
        ask_env(generated_agents_parallel_v0.parallel_env, "generated", seconds=0.0)
