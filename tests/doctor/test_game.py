"""`doctor game` finds what was planted, in games of hopplus and in PettingZoo environments, and clears what is fair."""

import importlib.util
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from pettingzoo.test.example_envs import generated_agents_parallel_v0

from hopplus.doctor import game as doctor_game
from hopplus.doctor.faults import TieToTheLowestSeat
from hopplus.doctor.game import examine_game
from hopplus.games import contract
from hopplus.games.bridges.pettingzoo import parallel_env
from hopplus.games.matrix import MatrixGame
from hopplus.games.presets import make
from hopplus_doctor.answer import Answer, settled
from hopplus_doctor.environment import examine_env, groups_of, load_env
from hopplus_doctor.first_views import FirstViews
from hopplus_doctor.names import stem
from hopplus_doctor.seat_differences import Measured, standing_out, trends
from probes import SMALL, FirstSeatNearTheStag

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
BAD = ("suspicious", "broken")
EPISODES = 1000
"""Of small environments: a count, so that the machine's speed changes no verdict."""


def load(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


planted = load("biased_envs")


def alarms(answer: Answer) -> dict[str, str]:
    """The checks with an alarm, and the part that each blames."""
    return {finding.check: finding.module for finding in answer.findings if finding.verdict in BAD}


@pytest.fixture
def quick_contract(monkeypatch):
    """Fewer situations: what is planted here shows at once."""
    monkeypatch.setattr(contract, "NUM_ENVS", 128)


@pytest.mark.usefixtures("quick_contract")
def test_the_stag_hunt_is_cleared():
    shown = []
    answer = examine_game(make("stag-hunt-4x4"), "stag-hunt-4x4", episodes=4096, on_progress=shown.append)
    assert alarms(answer) == {}
    checks = [finding.check for finding in answer.findings]
    assert checks == [
        *(f"contract, {name}" for name in ("spawns", "seats", "ego views", "rotated views")),
        "returns",
        "returns, trend",
        "ties",
    ]
    assert shown[-1] == "random play: 4,096 episodes"
    picture = answer.findings[checks.index("returns")].picture
    assert picture is not None and picture.labels == ("player_1", "player_2", "player_3", "player_4")


@pytest.mark.usefixtures("quick_contract")
def test_a_hare_that_goes_to_the_lowest_seat_is_found_by_the_rules_and_by_the_ties(monkeypatch):
    monkeypatch.setattr(doctor_game, "PROMISES", {"seats": doctor_game.PROMISES["seats"]})
    bad = alarms(examine_game(TieToTheLowestSeat(grid=SMALL), "tie", episodes=1))
    assert bad["contract, seats"] == bad["ties"] == "game: rules"


def test_a_seat_that_spawns_next_to_the_prey_is_found(monkeypatch):
    monkeypatch.setattr(doctor_game, "PROMISES", {"spawns": doctor_game.PROMISES["spawns"]})
    answer = examine_game(FirstSeatNearTheStag(grid=SMALL), "near", episodes=1)
    assert alarms(answer)["contract, spawns"] == "game: spawns"
    assert answer.findings[0].kind == "test" and "1e-06" in answer.findings[0].threshold
    assert answer.findings[0].next == "hopplus check near"


def test_a_game_without_events_has_no_ties(monkeypatch):
    monkeypatch.setattr(doctor_game, "PROMISES", {"spawns": doctor_game.PROMISES["spawns"]})
    answer = examine_game(MatrixGame(num_players=3), "matrix", episodes=1)
    assert alarms(answer) == {} and "ties" not in [finding.check for finding in answer.findings]


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
    answer = examine_env(load_env(f"biased_envs:{name}"), name, episodes=EPISODES)
    assert answer.verdict == "broken" and module in alarms(answer).values()
    loudest = next(finding for finding in answer.findings if finding.check == "returns")
    assert loudest.verdict == "broken" and loudest.says.startswith("player_0's return is +")


@pytest.mark.parametrize("name", ["Matching", "Coins", "Foraging"])
def test_the_same_without_the_bias_is_cleared(name):
    assert alarms(examine_env(getattr(planted, name), name, episodes=EPISODES)) == {}


def test_a_game_of_ours_through_the_bridge_is_cleared():
    assert alarms(examine_env(partial(parallel_env, MatrixGame(num_players=3)), "matrix", episodes=300)) == {}


class Gaps(planted.Matching):
    """The last player has to go after the first step, and everybody is shown who they are."""

    num_seen = 2

    def has_left(self, agent):
        return agent == "player_2"

    def views(self):
        return {agent: np.array([int(agent[-1]), self.random.random()]) for agent in self.agents}


def test_an_agent_that_leaves_first_is_found_and_an_identity_is_no_bias():
    answer = examine_env(Gaps, "gaps", episodes=500)
    assert alarms(answer)["leaving"] == "game: termination"
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
    answer = examine_env(Roles, "roles", episodes=500)
    assert alarms(answer) == {}
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


class Named(planted.FirstIsPaidMore):
    """Agents without numbers; the first is paid more. Counts how often it was begun."""

    begun = 0

    def __init__(self):
        super().__init__()
        self.possible_agents = ["alice", "bob", "carol"]

    def begin(self):
        type(self).begun += 1

    def play(self, actions):
        rewards = planted.Matching.play(self, actions)
        return rewards | {"alice": 1.1 * rewards["alice"]}


def test_agents_that_cannot_be_compared_are_refused_before_anything_is_played(monkeypatch):
    monkeypatch.setattr(Named, "begun", 0)
    words = r"by their names \(alice, bob, carol\) .* add --alike all; .* as in --alike alice,bob"
    with pytest.raises(ValueError, match=words):
        examine_env(Named, "named", seconds=1e9)
    assert Named.begun == 0


@pytest.mark.parametrize(
    ("alike", "suffix", "is_found"),
    [(("all",), "", True), (("alice", "carol"), " of alice, carol", True), (("bob", "carol"), " of bob, carol", False)],
)
def test_agents_that_are_said_to_be_alike_are_compared(alike, suffix, is_found):
    answer = examine_env(Named, "named", alike=alike, episodes=EPISODES)
    assert (alarms(answer).get(f"returns{suffix}") == "game: returns") == is_found
    assert bool(alarms(answer)) == is_found
    returns = next(finding for finding in answer.findings if finding.check == f"returns{suffix}")
    assert returns.more == f"hopplus doctor game --env named --alike {','.join(alike)} --episodes {10 * EPISODES}"
    assert returns.next is not None and "hopplus doctor game" not in returns.next


@pytest.mark.parametrize(
    ("alike", "words"),
    [
        (("alice", "dave"), "has no agent 'dave'; its agents are alice, bob, carol"),
        (("alice", "alice"), "name two or more"),
    ],
)
def test_names_that_cannot_be_compared_are_said(alike, words):
    with pytest.raises(ValueError, match=words):
        examine_env(Named, "named", alike=alike, episodes=1)


class Alone(planted.Matching):
    """One agent."""

    num_players = 1


def test_one_agent_has_nobody_to_be_compared_with():
    with pytest.raises(ValueError, match="has only one agent, player_0"):
        examine_env(Alone, "alone", seconds=1e9)


@pytest.mark.parametrize("budget", [{"seconds": -1.0}, {"seconds": float("nan")}, {"episodes": 0}])
def test_a_budget_that_makes_no_sense_is_said(budget):
    with pytest.raises(ValueError, match=f"--{next(iter(budget))} is "):
        examine_env(planted.Coins, "coins", **budget)


def test_so_many_episodes_are_played_as_are_asked_for():
    shown = []
    examine_env(planted.Matching, "matching", episodes=70, on_progress=shown.append)
    assert shown[69] == "random play: 70 episodes" and shown[-1] == "resets: 70" and len(shown) == 140


def test_observations_of_different_shapes_are_not_compared():
    views = FirstViews(("a_0", "a_1"))
    views.add({"a_0": np.zeros(2), "a_1": np.zeros(3)})
    finding = views.finding("", advice="", more="")
    assert finding.verdict == "not enough evidence" and "different shapes" in finding.says


@pytest.mark.parametrize("budget", [{"seconds": 0.0}, {"episodes": 10}])
def test_too_little_play_is_not_enough_evidence(budget):
    answer = examine_env(planted.Coins, "coins", **budget)
    assert answer.verdict == "not enough evidence" and alarms(answer) == {}


def returns_finding(values):
    measured = Measured("returns", "game: returns", "return", values, ("a", "b", "c", "d"), 0.02, "", "")
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
    raised = [returns_finding(values).verdict in BAD for values in drawn]
    assert sum(raised) <= 2


def test_seats_that_always_get_the_same_are_fine_and_those_never_paid_are_unknown():
    assert returns_finding(np.ones((100, 4))).verdict == "fine"
    measured = Measured("returns", "game: returns", "return", np.zeros((100, 2)), ("a", "b"), 0.0, "", "")
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
        examine_env(dict, "builtins:dict", seconds=0.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="possible_agents"):
        examine_env(generated_agents_parallel_v0.parallel_env, "generated", seconds=0.0)
