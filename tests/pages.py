"""The script of a page in node, if there is one."""

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hopplus.games.lineups import read_policies, split
from hopplus.share.page import TEMPLATES, page_data
from hopplus.share.parity import record

SCRIPT = TEMPLATES / "page.js"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
LOAD = """
require(process.argv[1]);
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const weights = hopplus.decodeWeights(given.weights);
"""


def in_node(program: str, data: dict[str, Any], weights: bytes, **given: Any) -> Any:
    """What the program writes as JSON; it finds `given`, with the page's data as `given.page`, and `weights`."""
    content = json.dumps({"page": data, "weights": base64.b64encode(weights).decode(), **given})
    line = ["node", "-e", LOAD + program, str(SCRIPT)]
    ended = subprocess.run(line, input=content, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def recorded(run: Any, lineup: str, count: int, *, seed: int = 0) -> tuple[dict[str, Any], bytes, list[dict[str, Any]]]:
    """A page of the run, and episodes that Python plays with a line-up of the page."""
    data, weights = page_data([run], lineup=lineup)
    name = data["agents"][0]["name"]
    policies = []
    for seat, text in enumerate(split(lineup)):
        base, _, number = text.partition(":")
        if base == name:
            policies.append(run.policy(seat=int(number) - 1 if number else seat % run.num_learning))
        else:
            policies += read_policies(text, run.game)
    return data, weights, record(run.game, policies, split(lineup), count, seed=seed)


def golden(agent: str) -> Path:
    return Path(__file__).parent / "golden" / "format_1" / agent
