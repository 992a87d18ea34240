"""Every table can be read in a terminal of 80 columns: no line is longer, and nothing is cut."""

from dataclasses import replace
from io import StringIO
from re import finditer

import numpy as np
import pytest
from rich.console import Console

from hopplus.cli import adaptation, check, crossplay, evaluate, study
from hopplus.cli.main import main
from hopplus.cli.others import print_others
from hopplus.cli.world import print_world
from hopplus.evaluation.fairness import Fairness
from hopplus.games.contract import Finding
from hopplus.games.presets import PRESETS, make
from hopplus.runs.config import RunConfig
from hopplus.runs.oracles import Yardsticks
from hopplus.runs.studies import Question, Study
from hopplus.runs.studies.cluster import failure_file
from hopplus.runs.studies.study import write_study
from hopplus.runs.studies.summary import Answer, VariantSummary
from hopplus_doctor.statistics import Interval, Trend
from report.run_folders import write_run

WIDTH = 80
RUN = "runs/hop_plus-8x8-obstacles-pretrained"
GAME = "stag-hunt-8x8-obstacles"
SOME = {"estimate": -12.3456, "low": -13.0456, "high": -11.6456}


def drawn(draw, *content):
    """What is printed in a terminal of that width."""
    printed = StringIO()
    draw(*content, Console(file=printed, width=WIDTH))
    return printed.getvalue()


def assert_readable(printed, *names):
    """Nothing is cut, no line is too long, and every name is there, in one line or going on in the next one."""
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= WIDTH
    for name in names:
        assert name in printed or _folded(printed, name), name


def _folded(printed, name):
    """Whether the name stands in one column, its parts below one another."""
    lines = printed.splitlines()
    places = ((number, match.start()) for number, line in enumerate(lines) for match in finditer(r"\S+", line))
    return any(_goes_on(lines[number:], place, name) for number, place in places)


def _goes_on(lines, place, rest):
    """Whether the text goes on at this place of these lines, as much of it in each line as stands there."""
    if not lines:
        return False
    there = next(length for length in range(len(rest), -1, -1) if lines[0][place:].startswith(rest[:length]))
    return there == len(rest) or (there > 0 and _goes_on(lines[1:], place, rest[there:].lstrip()))


def test_games(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    assert main(["games"]) == 0
    assert_readable(capsys.readouterr().out, *PRESETS, "nearest_drift", "patient_stag")


def test_runs(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    learner = {"envs": 20, "rollout_steps": 5}
    write_run(tmp_path / "hop_plus-8x8-obstacles-kept", agent="hop_plus", game=GAME, steps=1090, learner=learner)
    write_run(tmp_path / "trials/four-epochs/12", agent="direct_om", game="matrix-prisoners-dilemma", steps=20_000_000)
    write_run(tmp_path / "broken", steps="many")
    assert main(["runs", str(tmp_path)]) == 0
    printed = capsys.readouterr().out.replace(str(tmp_path), "runs")
    assert_readable(printed, "hop_plus-8x8-obstacles-kept", f"hop_plus {GAME}", "direct_om matrix-prisoners-dilemma")
    assert "100%" in printed and " 0%" in printed and "its steps are 'many'" in printed


def test_evaluate_in_self_play():
    names = (RUN, "noisy(nearest_stag, 0.1)", "patient_stag(3)", "runs/omg-8x8-hindsight:2")
    rates = {"stag_rate": SOME, "hare_rate": SOME}
    seats = [
        {"seat": f"player_{seat}", "player": name, "sampled": SOME, "greedy": SOME, "events_greedy": rates}
        for seat, name in enumerate(names, start=1)
    ]
    result = {
        "episodes": 10_000,
        "game": GAME,
        "seeds": 5,
        "per_seat": seats,
        "interval": SOME,
        "interval_greedy": SOME,
        "per_seed": [{"sampled": -12.345, "greedy": -12.345}] * 5,
        "trend": {"p_value": 0.123, "direction": "rising"},
    }
    printed = drawn(evaluate._print_tables, RUN, result)
    assert_readable(printed, RUN, "patient_stag(3)", "runs/omg-8x8-hindsight:2", "-12.346 ±0.700", "stag_rate")


def test_evaluate_others():
    figures = {"top1": 0.812, "top3": 0.951, "cross_entropy": 0.731}
    names = ("up", "down", "left", "right", "stay", "hunt_a_stag")
    columns = ("share", "precision", "recall", "f1", "recall_ceiling")
    actions = [{"name": name, **dict.fromkeys(columns, 0.123), "support": 12_345_678} for name in names]
    yardsticks = {"marginal": figures, "last_action": {"top1": 0.4}, "ceiling": figures}
    score = figures | {"calibration": {"ece": 0.012}, "yardsticks": yardsticks, "actions": actions}
    pair = {"player": RUN, "other": "noisy(nearest_stag, 0.1)"}
    change = {"total_variation": 0.1, "other_likeliest_action": 0.2}
    result = {
        "models": {"others": score},
        "episodes": 10_000,
        "seeds": 5,
        "pairs": [pair | dict.fromkeys(("top1", "ceiling", "ratio", "lowest_seed"), 0.9876)],
        "in_training": {"pairs": 12, "mean_ratio": 0.9, "lowest_ratio": 0.8, "lowest_ratio_of_a_tenth": 0.7},
        "use": {"shuffled": change, "replaced by the prior": change},
    }
    assert_readable(drawn(print_others, RUN, result), RUN, *names, "12,345,678", "cross-entropy")


def test_evaluate_world():
    keys = ("exact_next_state", "observation_mse", "psnr", "reward_mse", "end_error", "paid_recall", "open_loop_exact")
    planes = [plane.name for plane in make(GAME).spec.planes]
    one = dict.fromkeys(keys, 0.99999) | {"psnr": 48.123, "plane_mse": dict.fromkeys(planes, 1.2345e-5)}
    one |= {"vanished": 12, "players": 1_200}
    one["by_steps"] = [{"steps": steps, "exact": 1 - steps / 100, "wrong_cells": 0.01} for steps in range(1, 11)]
    result = {
        "worlds": 40,
        "episodes": 256,
        "line_ups": {"random play": one, "mixed scripts": one, "self-play": one, "all": one},
        "impossible_drawn": {"jumped": 0, "came back": 0, "walked into a wall": 0, "appeared": 0},
    }
    assert_readable(
        drawn(print_world, RUN, result), RUN, "mixed scripts", "100.00%", "48.1 dB", "10: 90.0%", "1.00%", *planes
    )


@pytest.mark.parametrize("length", [3, 10])
def test_evaluate_adaptation(length):
    kinds = ("nearest_stag", "nearest_hare", "patient_stag(3)", "random")
    numbers = {"nearest_stag": 2.5, "nearest_hare": 1.25, "by_belief": 2.25, "random": 0.5}
    players = ("by_belief", "nearest_stag", "trained, seed 2, greedy", "random")
    rows = [Yardsticks((kind,) * 3, 2.25, player, numbers, {}) for kind, player in zip(kinds, players, strict=True)]
    returns = np.random.default_rng(0).normal(2, 0.3, (2, 5, len(rows), length))
    result = adaptation.figures(returns, rows)
    result |= {"game": GAME, "episodes": 2_000, "seeds": 5, "saw": "its own self-play in arenas", "known": "goals"}
    printed = drawn(adaptation.print_adaptation, RUN, result)
    assert_readable(printed, RUN, *(row.name for row in rows), "normalised", "2.25 belief", "2.25 PPO")
    assert ("from episode 5 of a series" in printed) == (length == 10)


@pytest.mark.parametrize("count", [2, 5, 9])
def test_crossplay(count):
    players = [f"{RUN}-{number}" for number in range(count)]
    returns = [[SOME] * count] * count
    by_seed = [[[-12.345, -11.645, -13.045]] * count] * count
    seeds = [3] + [10] * (count - 1)
    result = {"players": players, "returns": returns, "by_seed": by_seed, "seeds": seeds, "episodes": 200}
    printed = drawn(crossplay._print, result)
    assert_readable(printed, *players, f"with {count}")
    assert printed.count("-12.35 ±0.70") == count * count
    assert printed.count("seed by seed") == 1  # only the run with few seeds


def test_check():
    fault = "the seats are not treated alike: after a step of a_very_long_action_name_of_a_users_own_game they differ"
    findings = [Finding("seats", "relabelling the seats relabels the outcome", fault), Finding("jit", "as is", None)]
    wide = Interval(-12.3456, -13.3456, -11.3456)
    fair = Fairness(100_000, (wide,) * 4, (wide,) * 4, Trend("rising", 0.001))
    name = "my_package.games.fishing:FishingWithQuotas"
    printed = drawn(check._print_tables, name, findings, fair)
    assert_readable(printed, name, "player_4", "-13.3456 to -11.3456", "a_very_long_action_name_of_a_users_own_game")
    printed = drawn(check._print_agents, name, make("matrix-chicken"))
    assert_readable(printed, name, "direct_om", "hop_plus", "observation")


@pytest.fixture
def many_variants():
    ppo = RunConfig(game=GAME, steps=20_000)
    names = ("four epochs", "pretrained-on-all-scripts-of-the-line-ups", "one epoch")
    asked = Question("Is it better to go over the data four times than once?", ("four epochs", "one epoch"))
    about = "Does it help to go over the data four times, or to be pretrained?"
    return Study(about, dict.fromkeys(names, ppo), 2, (asked,))


def test_study_status(capsys, monkeypatch, tmp_path, many_variants):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    write_study(many_variants, tmp_path)
    failed = failure_file(tmp_path, next(many_variants.all_trials()))
    failed.parent.mkdir(parents=True)
    failed.write_text("ValueError: --pretrained: models/scripts-of-all-line-ups-of-the-8x8-board has no config.json\n")
    assert main(["study", "status", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert_readable(printed, *many_variants.variants, "waiting", "failed", "config.json")


def test_study_report(capsys, monkeypatch, many_variants):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    score = Interval(-12.345, -13.345, -11.345)
    gap = Interval(1.875, 1.5, 2.25)
    one = VariantSummary("four epochs", 20, score, -12.456, (-12.345,) * 20, -14.345, -10.345, gap, 123_456.7)
    summaries = [replace(one, name=name) for name in many_variants.variants]
    summaries[0] = replace(summaries[0], seeds=3, scores=(-11.111, -12.222, -13.333))
    verdict = "not told apart: the difference lies between -0.12 and 0.34"
    study._print(summaries, [Answer(many_variants.questions[0], score, score, verdict)])
    printed = capsys.readouterr().out
    assert_readable(printed, *many_variants.variants, "-13.345 to -11.345", "-12.456", "1.875", "2057.6")
    assert printed.count("seed by seed") == 1 and "-11.111  -12.222  -13.333" in printed


def test_trials_of_a_study_that_runs(many_variants, tmp_path):
    display = study.TrialTable(many_variants, tmp_path)
    first = next(many_variants.all_trials())
    display.on_state(first, "failed", "ValueError: models/scripts-of-all-line-ups-of-the-8x8-board has no config.json")
    printed = drawn(lambda console: console.print(display._table()))
    assert_readable(printed, *many_variants.variants, "waiting", "updates")
