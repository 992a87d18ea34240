"""The page needs nothing but itself, says everything, trusts no string, and its replay holds the episode as played."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import jax
import numpy as np
import pytest

import hopplus.report
from hopplus.games import Board, MatrixGame, Snowdrift, StagHunt, lineup, play_episode
from hopplus.games.draw import frames
from hopplus.games.matrix import CHICKEN
from hopplus.report import Replay, curves, page
from hopplus.report.replay import replay_data, symbols
from hopplus.runs.records import read_run
from report.run_folders import evaluation_of, metric_lines, write_run

HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>'
SECTIONS = ("headline", "learning", "seats", "policy", "replay", "config")


def replay_of(game, seats, title="an episode"):
    players = lineup(seats, game)
    episode = jax.jit(lambda key: play_episode(game, players, key=key))(jax.random.key(0))
    return Replay(title, game.spec, frames(game, episode), seats.split(","))


@pytest.fixture(scope="module")
def hunt():
    game = StagHunt(grid=Board(4, 5, obstacle_pieces=1), num_players=3, num_hares=2, horizon=12)
    return replay_of(game, "nearest_stag,nearest_stag,nearest_hare")


@pytest.fixture(scope="module")
def chicken():
    return replay_of(MatrixGame(payoff=CHICKEN, horizon=4), "random,random", "chicken")


@pytest.fixture
def run(tmp_path):
    return read_run(write_run(tmp_path / "run"))


class Tags(HTMLParser):
    """Every tag with its attributes, and all text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def data_of(text):
    match = re.search(r'<script type="application/json" id="replay-data">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def boards_of(data):
    """The boards as the viewer sees them, built from the page's data alone."""
    shape = (data["height"], data["width"], len(data["planes"]))
    boards = np.zeros((len(data["frames"]), *shape), np.uint8)
    for board, frame in zip(boards, data["frames"], strict=True):
        for row, column, plane in frame["cells"] + data["fixed"]:
            board[row, column, plane] = 1
    return boards


def test_the_page_loads_nothing(run, hunt, chicken):
    text = page(run, [hunt, chicken])
    assert "http://" not in text and "https://" not in text and "@import" not in text and "url(http" not in text
    tags = Tags(text)
    assert not {tag for tag, _ in tags.tags} & {"link", "img", "iframe", "object", "embed", "base", "form"}
    for _, attributes in tags.tags:
        assert "src" not in attributes
        assert all((attributes.get(name) or "#").startswith("#") for name in ("href", "xlink:href"))
    assert "default-src 'none'" in text


def test_the_page_has_every_section_and_its_links_lead_somewhere(run, hunt):
    tags = Tags(page(run, [hunt]))
    names = [attributes["id"] for _, attributes in tags.tags if "id" in attributes]
    assert set(SECTIONS) <= set(names) and len(names) == len(set(names))
    assert {attributes["href"][1:] for tag, attributes in tags.tags if tag == "a"} <= set(names)
    assert ("html", {"lang": "en"}) in tags.tags
    text = tags.text.replace("\u00a0", " ")
    for words in ("stag-hunt-4x4", "ppo", "Page's trend test", "19,002", "10,000 episodes", "2.90 (2.80 to 3.00)"):
        assert words in text
    assert "128, 128" in text and "clip" in text
    assert "policy/explained_variance" in tags.text and "charts/stag_rate" in tags.text


def test_the_headline_states_the_return_with_its_interval(run):
    # The seeds' means over updates 8 to 10 are 2.015 - 0.1, 2.015 - 0 and 2.015 + 0.1; t(97.5%, 2) = 4.3027
    text = Tags(page(run, [])).text
    assert "2.01" in text or "2.02" in text  # 2.015 may be rounded either way
    half = 4.302652729911275 * 0.1 / np.sqrt(3)
    assert f"{2.015 - half:.2f} to {2.015 + half:.2f}, 95% over seeds" in text


def test_a_complete_run_has_done_all_that_was_planned(tmp_path):
    learner = {"envs": 20, "rollout_steps": 5}
    complete = read_run(write_run(tmp_path / "complete", steps=1090, learner=learner))
    assert "planned" not in Tags(page(complete, [])).text
    halfway = read_run(write_run(tmp_path / "halfway", steps=2090, learner=learner))
    assert "of 2,000 planned" in Tags(page(halfway, [])).text


def test_hostile_strings_are_shown_and_not_obeyed(tmp_path, chicken):
    lines = [{**line, f"policy/{HOSTILE}": [1.0, 2.0, 3.0], f"{HOSTILE}/x": [1.0] * 3} for line in metric_lines(3)]
    folder = write_run(
        tmp_path / "a<b & c", lines, agent=HOSTILE, game=HOSTILE, learner={HOSTILE: [HOSTILE, {"a": HOSTILE}]}
    )
    evaluation = evaluation_of(1)
    evaluation["per_seat"][0]["seat"] = HOSTILE
    (folder / "evaluation.json").write_text(json.dumps(evaluation))
    episode = Replay(HOSTILE, chicken.spec, chicken.frames, [HOSTILE, "b"])
    text = page(read_run(folder), [episode], title=HOSTILE)

    tags = Tags(text)
    assert HOSTILE not in text and "img" not in {tag for tag, _ in tags.tags}
    assert sum(tag == "script" for tag, _ in tags.tags) == 2
    assert not any(name.startswith("on") for _, attributes in tags.tags for name in attributes)
    assert data_of(text)[0]["title"] == HOSTILE and data_of(text)[0]["seats"][0]["policy"] == HOSTILE


def test_groups_are_made_of_what_was_recorded(tmp_path):
    lines = [
        {
            **line,
            "wm/loss": [1.0] * 3,
            "moa/top1/player_1": [0.1] * 3,
            "moa/top1/player_2": [0.2] * 3,
            "odd/a/b": [2.0] * 3,
        }
        for line in metric_lines(3)
    ]
    tags = Tags(page(read_run(write_run(tmp_path, lines)), []))
    for words in ("World model", "Opponent models", "odd", "moa/top1", "odd/a/b", "No episode was given"):
        assert words in tags.text
    assert "moa/top1/player_1" not in tags.text


def test_losses_of_opponent_models_are_drawn_by_co_player(tmp_path):
    pairs = [(seat, other) for seat in (1, 2, 3) for other in (1, 2, 3) if seat != other]
    lines = [
        line
        | {"moa/ce_loss": [1.0] * 3, "moa/recall/stay": [0.5] * 3}
        | {f"moa/{name}/player_{a}_of_{b}": [0.1 * b] * 3 for a, b in pairs for name in ("ce_loss", "recall/stay")}
        for line in metric_lines(3)
    ]
    run = read_run(write_run(tmp_path, lines))
    text = Tags(page(run, [])).text
    assert "moa/ce_loss by co-player" in text and "moa/recall/stay" in text
    assert "player_1_of_2" not in text
    drawn = curves.small_pair_curves(run, "moa/ce_loss").axes[0].lines
    assert len(drawn) == len(pairs)
    colours = {(line.get_color(), float(line.get_ydata()[0])) for line in drawn}
    assert len(colours) == 3, "all lines about one co-player have its colour"


def test_losses_that_are_no_number_are_said(tmp_path):
    lines = metric_lines(3)
    lines[1]["policy/value_loss"] = [None, 1.0, float("inf")]
    text = Tags(page(read_run(write_run(tmp_path, lines)), [])).text
    assert "Entries that are not finite are not drawn: policy/value_loss (2 of 9)" in text


@pytest.mark.parametrize("num_seeds", [1, 2])
def test_few_seeds_and_a_single_update_make_a_page(tmp_path, num_seeds):
    run = read_run(write_run(tmp_path, metric_lines(1, num_seeds), evaluation=False))
    text = Tags(page(run, [])).text
    assert "trend test is left out" in text and "of 3 planned" in text
    assert ("one seed, no interval" in text) == (num_seeds == 1)


def test_a_run_in_which_no_episode_has_ended_makes_a_page(tmp_path):
    lines = metric_lines(2)
    for line in lines:
        line.update({tag: [None] * 3 for tag in line if tag.startswith("charts/")})
    text = Tags(page(read_run(write_run(tmp_path, lines)), [])).text
    assert "no episode has ended yet" in text and "no numbers" in text


def test_a_run_without_returns_makes_a_page(tmp_path):
    lines = [{"update": 1, "env_steps": 5, "other": [1.0]}]
    assert "nothing under" in Tags(page(read_run(write_run(tmp_path, lines)), [])).text


def test_an_evaluation_that_says_little_makes_a_page(tmp_path):
    folder = write_run(tmp_path)
    (folder / "evaluation.json").write_text(
        json.dumps({"mean_return": None, "per_seat": [{"sampled": {"estimate": 1}}]})
    )
    assert "mean return of - with" in Tags(page(read_run(folder), [])).text


def test_the_replay_decodes_to_the_frames_given(run, hunt):
    (data,) = data_of(page(run, [hunt]))
    np.testing.assert_array_equal(boards_of(data), [frame.board for frame in hunt.frames])
    assert data["fixed"] and data["seats"][0]["policy"] == "nearest_stag"
    for name in ("time", "actions", "rewards", "returns", "terminated"):
        expected = [np.asarray(getattr(frame, name)) for frame in hunt.frames]
        np.testing.assert_array_equal([frame[name] for frame in data["frames"]], expected)
    caught = [catch for frame in data["frames"] for catch in frame["catches"]]
    assert caught and all(catch["words"].startswith("player_") and catch["gain"].startswith("+") for catch in caught)


def test_a_matrix_game_has_no_board_and_every_payoff(run, chicken):
    (data,) = data_of(page(run, [chicken]))
    assert data["planes"] == data["fixed"] == [] and len(data["frames"]) == 5
    assert {did for frame in data["frames"][1:] for did in frame["did"]} <= {"cooperate", "defect"}
    assert all(words.startswith(("+", "-")) for frame in data["frames"][1:] for words in frame["reward_words"])
    assert data["frames"][0]["reward_words"] == ["", ""] and data["frames"][0]["did"] == ["-", "-"]


def test_every_plane_has_a_shape_that_the_page_draws(hunt):
    snow = replay_of(Snowdrift(grid=Board(4, 4), num_players=2, num_drifts=2, horizon=6), "nearest_drift,idler")
    drawn = {symbol["name"]: symbol["paths"] for symbol in symbols()}
    for replay in (hunt, snow):
        assert all(drawn[plane["shape"]] for plane in replay_data(replay)["planes"])
    assert all(re.fullmatch(r"[MLQCZ\d .e-]+", path["d"]) for paths in drawn.values() for path in paths)


def test_a_replay_needs_frames_and_a_name_per_seat(chicken):
    with pytest.raises(ValueError, match="give one frame at least"):
        Replay("empty", chicken.spec, [], ["a", "b"])
    with pytest.raises(ValueError, match="give one name per seat"):
        Replay("nameless", chicken.spec, chicken.frames, ["a"])


@pytest.mark.skipif(shutil.which("node") is None, reason="node checks that the script can be parsed; it is not here")
def test_the_script_can_be_parsed():
    script = Path(hopplus.report.__file__).parent / "templates" / "replay.js"
    subprocess.run(["node", "--check", str(script)], check=True, capture_output=True)
