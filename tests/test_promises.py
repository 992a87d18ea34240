"""What a release of 1.x promised is still there: names, flags, settings, tags, files, arrays of recordings."""

import copy
import json

import pytest

import promises


@pytest.fixture(scope="module")
def promised():
    return json.loads(promises.FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def now():
    return promises.today()


def test_nothing_that_was_promised_is_lost(promised, now):
    assert promises.lost(promised, now) == []


def test_the_file_promises_what_users_use(promised):
    assert {"train", "load", "evaluate", "examine"} <= {*promised["names"]["hopplus"]}
    assert "--ppo.clip" in promised["commands"]["hopplus train AGENT"]
    assert "--json" in promised["commands"]["hopplus evaluate"]
    assert "Recorder" in promised["names"]["hopplus_doctor"] and "hopplus.core" not in promised["names"]
    assert "clip" in promised["settings"]["PPOConfig"] and "policy/value_loss" in promised["tags"]["metrics.jsonl"]
    assert "config.json" in promised["files"]["run folder"] and len(promised["recordings"]) > 2


@pytest.mark.parametrize("kind", ["names", "commands", "settings", "tags", "files", "recordings"])
def test_a_loss_is_seen_and_an_addition_is_not(promised, kind):
    fewer, part = copy.deepcopy(promised), next(part for part, members in promised[kind].items() if members)
    gone = fewer[kind][part].pop()
    assert promises.lost(promised, fewer) == [f"{kind}: {part} no longer has {gone}"]
    assert promises.lost(fewer, promised) == []
    assert promises.merged(fewer, promised) == promises.merged(promised, fewer)
