"""A page plays as Python does, needs no network, and holds what it should."""

import json
import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from hopplus.cli.main import main
from hopplus.games.lineups import read_policies, split
from hopplus.games.presets import make
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning.page_episodes import PERSON, read_page_episodes
from hopplus.runs import load
from hopplus.share.games import DESCRIBE, SCRIPTS, page_game
from hopplus.share.page import page_data, page_html, share
from hopplus.share.parity import record
from pages import SCRIPT, golden, in_node, needs_node, recorded

WEB = Path(__file__).parents[2] / "web"
COMPARE = "process.stdout.write(JSON.stringify(hopplus.compare(given.page, weights, given.episodes)));"
TOLERANCE = 1e-5
needs_tools = pytest.mark.skipif(
    shutil.which("node") is None or not (WEB / "node_modules" / "esbuild").is_dir(), reason="npm install was not run"
)
needs_browser = pytest.mark.skipif(
    not Path("/usr/bin/chromium").exists() or not (WEB / "node_modules" / "puppeteer-core").is_dir(),
    reason="there is no Chromium, or npm install was not run",
)


def checked(found, count):
    assert found["first_difference"] == ""
    assert found["episodes_equal"] == found["episodes"] == count
    assert max(found["largest_difference"].values()) < TOLERANCE
    assert found["sampled"] > 3 * count and found["sampled_unequal"] == 0
    return found


def test_the_script_is_built_from_the_sources():
    found = sha256()
    for source in sorted((WEB / "src").iterdir()):
        found.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    first = SCRIPT.read_text().splitlines()[0]
    assert first.endswith(found.hexdigest()), "run npm run build in web/"


@needs_tools
def test_the_build_gives_the_same_script():
    assert subprocess.run(["node", str(WEB / "build.mjs"), "--check"], check=False).returncode == 0
    checker = WEB / "node_modules" / "typescript" / "bin" / "tsc"
    assert subprocess.run(["node", str(checker), "--noEmit", "-p", str(WEB)], check=False).returncode == 0


AGENTS = [
    ("hop_plus", "hop_plus,patient_stag(3),hop_plus,nearest_hare"),
    ("omg", "omg:1,omg:2,nearest_stag,random"),
    ("ppo", "ppo:4,ppo:1,ppo:2,ppo:3"),
    ("ppo_gru", "ppo_gru:1,ppo_gru:2,random,random"),
    ("hop_plus_notes", "hop_plus_notes:1,hop_plus_notes:2,hop_plus_notes:3,random"),
    ("hop", "hop:1,random,hop:3,hop:4"),
]


@needs_node
@pytest.mark.parametrize(
    ("agent", "lineup"),
    [pytest.param(*each, marks=() if each[0] == "hop_plus" else pytest.mark.heavy) for each in AGENTS],
)
def test_agents_think_as_in_python(agent, lineup):
    data, weights, episodes = recorded(load(golden(agent)), lineup, 8)
    found = checked(in_node(COMPARE, data, weights, episodes=episodes), 8)
    assert (found["largest_difference"]["beliefs"] > 0) == (agent in ("hop_plus", "omg", "hop_plus_notes", "hop"))


@needs_node
@pytest.mark.parametrize(
    ("name", "lineup"),
    [
        ("matrix-chicken", "random,random"),
        pytest.param(
            "stag-hunt-8x8", "nearest_stag,patient_stag(1),nearest_hare,patient_stag(3)", marks=pytest.mark.heavy
        ),
        ("stag-hunt-8x8-obstacles", "nearest_stag,nearest_stag,nearest_hare,random"),
        ("foraging-8x8", "nearest_food,strongest_food,easy_food,random"),
        ("coins-3x3", "own_coins,any_coins"),
        pytest.param("coins-5x5", "own_coins,own_coins,any_coins,random", marks=pytest.mark.heavy),
    ],
)
def test_rules_and_scripts_are_those_of_python(name, lineup):
    game, seats = make(name), split(lineup)
    episodes = record(game, read_policies(lineup, game), seats, 8)
    data = {"game": page_game(game, name), "scripts": [], "agents": [], "lineup": seats}
    checked(in_node(COMPARE, data, b"", episodes=episodes), 8)


@needs_node
def test_a_difference_is_found():
    """The comparison itself: one changed number of each kind."""
    data, weights, episodes = recorded(load(golden("ppo")), "ppo:1,ppo:2,random,random", 1)

    def after(change):
        changed = json.loads(json.dumps(episodes))
        change(changed[0])
        return in_node(COMPARE, data, weights, episodes=changed)

    def put(one, *path, value):
        for name in path[:-1]:
            one = one[name]
        one[path[-1]] = value

    assert after(lambda one: put(one, "after", 0, "time", value=7))["episodes_equal"] == 0
    assert after(lambda one: put(one, "rewards", 0, 0, value=0.25))["episodes_equal"] == 0
    assert after(lambda one: put(one, "over", 0, 0, value=True))["episodes_equal"] == 0
    assert (
        after(lambda one: put(one, "first", "position", 0, value=(one["first"]["position"][0] + 1) % 16))[
            "episodes_equal"
        ]
        == 0
    )
    assert after(lambda one: put(one, "probabilities", 0, 0, 0, value=2.0))["largest_difference"]["probabilities"] > 1
    assert after(lambda one: put(one, "sampled", 0, 0, value=99))["sampled_unequal"] == 1


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return share([golden("hop_plus"), golden("ppo")], tmp_path_factory.mktemp("page") / "page.html")


def test_a_page_may_load_nothing(page):
    text = page.read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy and policy[1].startswith("default-src 'none'") and "connect-src" not in policy[1]
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", text.split('<script type="application/json"')[0])
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(", text)


def test_a_page_cannot_be_broken_out_of_by_a_name(tmp_path):
    run = shutil.copytree(golden("ppo"), tmp_path / "<script>")
    data, weights = page_data([load(run)])
    assert "<script>" not in json.dumps(data)
    data["game"]["name"] = "</script><script>alert(1)"
    assert "<script>alert" not in page_html(data, weights)


def test_the_command_writes_a_page(tmp_path, capsys):
    out = tmp_path / "page.html"
    line = ["share", str(golden("hop")), "--out", str(out), "--lineup", "random,person,hop,nearest_stag"]
    assert main(line) == 0
    assert "plays its policy without search" in capsys.readouterr().out
    assert '"lineup":["random","person","hop","nearest_stag"]' in out.read_text()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--lineup", "person,random"], "names 2 players"),
        (["--lineup", "person,random,random,clown"], "clown is none of"),
        (["--out", "."], "give a file"),
        (["--seed", "7"], "no seed 7"),
        (["--more", str(golden("ppo"))], "the same name"),
    ],
)
def test_bad_input_is_refused(flags, says, capsys):
    assert main(["share", str(golden("ppo")), *flags]) == 2
    assert says in capsys.readouterr().err


def test_games_without_rules_in_the_page_are_named():
    with pytest.raises(ValueError, match="no rules for snowdrift-8x8"):
        page_game(make("snowdrift-8x8"), "snowdrift-8x8")
    with pytest.raises(ValueError, match="no moving prey"):
        page_game(StagHunt(prey_moves=0.5), "own")
    assert {kind for kind, _ in DESCRIBE.values()} == set(SCRIPTS)


def drive(*line):
    ended = subprocess.run(
        ["node", str(WEB / "drive.mjs"), *map(str, line)], capture_output=True, text=True, check=False, timeout=600
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.heavy
@needs_browser
def test_a_browser_thinks_as_python_does_and_asks_the_network_for_nothing(page, tmp_path):
    data, _ = page_data([load(golden("hop_plus")), load(golden("ppo"))])
    assert [agent["name"] for agent in data["agents"]] == ["hop_plus", "ppo"]
    _, _, episodes = recorded(load(golden("hop_plus")), "hop_plus,hop_plus,random,nearest_stag", 20)
    (tmp_path / "recorded.json").write_text(json.dumps(episodes))
    found = checked(drive("compare", page, tmp_path / "recorded.json"), 20)
    assert found["requests"] == 0 and found["errors"] == []


@needs_node
def test_what_a_page_saves_is_read(page, tmp_path):
    """A script plays in the place of a person; the game's own rules confirm every reward and end."""
    assert drive("node", page, tmp_path, 6) == {"episodes": 6}
    read = read_page_episodes(tmp_path / "node.json", make("stag-hunt-4x4"))
    assert [one[0] for one in read.seats] == [PERSON] * 6
    assert {name for one in read.seats for name in one[1:]} <= {"nearest_stag", "nearest_hare"}
    assert read.episodes.rewards.sum() > 6


@pytest.mark.heavy
@needs_browser
def test_what_a_person_plays_with_keys_is_saved_and_read(page, tmp_path):
    found = drive("browser", page, tmp_path, 20)
    assert found == {"episodes": 20, "requests": 0, "errors": []}
    assert len(read_page_episodes(tmp_path / "browser.json", make("stag-hunt-4x4")).seats) == 20


@pytest.mark.heavy
@needs_browser
def test_a_page_fits_a_phone(page, tmp_path):
    """It is wide enough, a tap is a move, and a screen reader hears a name of every control in each language."""
    found = drive("show", page, tmp_path)
    assert found["fits"] == {"desktop": True, "phone": True} and found["errors"] == [] and found["requests"] == 0
    assert min(found["tapped"].values()) > 0
    assert found["small"] == found["unnamed"] == {"desktop": [], "phone": []}
    assert found["untranslated"] == []
    assert "player 1 (you): row" in found["board"]["desktop"] and "玩家 1" in found["board"]["phone"]
