"""Do published multi-agent environments treat interchangeable agents alike? `hopplus doctor game` on each of them.

    pip install -r benchmarks/audit_requirements.txt
    python benchmarks/audit.py --quick                  three environments, five seconds each
    python benchmarks/audit.py --out results/audit.json

Agents play at random for three minutes in each environment, in a process of its own with a core of its own, two at a
time. Agents whose names differ only in a number are compared. The smallest detectable effect is the difference of one
agent's return from the mean of all that would be called suspicious in 95 of 100 such examinations, as a share of the
mean absolute return.

docs/audit.md says what was read in the source of each environment with an alarm. `READ` holds that in one line.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import metadata
from pathlib import Path
from typing import Any

from scipy.stats import norm

from hopplus_doctor.answer import SUSPICIOUS_BELOW

QUICK = ("mpe2.simple_spread_v3", "lbforaging.Foraging-8x8-3p-3f-v3", "jaxmarl:coin_game")
LIBRARIES = ("mpe2", "pettingzoo", "magent2", "lbforaging", "rware", "jaxmarl", "jumanji")
PATIENCE = 420.0
"""Seconds beyond those of play, for imports and compiling."""
READ: dict[str, tuple[str, str]] = {
    "jumanji:Connector-v3": (
        "confirmed",
        "starts are drawn one agent after another, and of agents that meet, also in the walks that place the targets, "
        "the one with the lower number stays where it was",
    ),
}
"""Environments with an alarm: "design", "confirmed" or "withdrawn", and the cause as read in the source."""
POWER = 0.95


def examined(name: str, seconds: float, seed: int) -> dict[str, Any]:
    """Examine one environment, in this process."""
    from audit_envs import ENVS
    from hopplus.core.cores import claim_cores
    from hopplus_doctor.environment import examine_env

    claim_cores(1)
    started = time.perf_counter()
    if name in ENVS:
        answer = examine_env(ENVS[name], name, seconds=seconds, seed=seed)
    else:
        from hopplus.doctor.game import examine_game
        from hopplus.games.presets import make

        answer = examine_game(make(name), name, seconds=seconds, seed=seed)
    tested = [finding for finding in answer.findings if finding.check.startswith("returns") and finding.effect]
    tested = [finding for finding in tested if "trend" not in finding.check]
    num_tests = sum(finding.test is not None for finding in answer.findings)
    alarms = [finding for finding in answer.findings if finding.verdict in ("suspicious", "broken")]
    return {
        "env": name,
        "verdict": answer.verdict,
        "alarms": [f"{finding.check}: {finding.says}" for finding in alarms],
        "groups": [_effect(finding, num_tests) for finding in tested],
        "says": [f"{finding.check}: {finding.says}" for finding in answer.findings],
        "seconds": round(time.perf_counter() - started, 1),
    }


def detectable(half: float, matters: float, *, seats: int, tests: int) -> float:
    """The smallest difference that is found so often, given half the length of the interval of the difference.

    It is found if the estimate is at least what matters, and its p-value is below the level after Holm's adjustment.
    """
    level = SUSPICIOUS_BELOW / (2 * seats)
    error = half / float(norm.isf(level))
    return max(matters, error * float(norm.isf(level / tests))) + error * float(norm.isf(1 - POWER))


def _effect(finding: Any, tests: int) -> dict[str, Any]:
    """The difference of the agent that stands out, in the unit of returns, and what would have been found."""
    effect, matters = finding.effect, finding.test.matters
    half = effect.high - effect.estimate
    seats = len(finding.picture.labels)
    size = matters / 0.02  # what matters is 2% of the mean absolute return
    return {
        "check": finding.check,
        "agents": seats,
        "tests": tests,
        "effect": {"estimate": effect.estimate / size, "low": effect.low / size, "high": effect.high / size},
        "detectable": detectable(half, matters, seats=seats, tests=tests) / size,
    }


def in_own_process(name: str, seconds: float, seed: int) -> dict[str, Any]:
    """Examine one environment in a process of its own; an error is recorded."""
    command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds), "--seed", str(seed)]
    started = time.perf_counter()
    quiet = os.environ | {"SDL_VIDEODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1", "PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds + PATIENCE, env=quiet, check=False
        )
    except subprocess.TimeoutExpired:
        return {"env": name, "verdict": "not examined", "error": f"no answer in {seconds + PATIENCE:g} seconds"}
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        return {"env": name, "verdict": "not examined", "error": last[0][:300]}
    row = json.loads(done.stdout.strip().splitlines()[-1])
    return row | {"play_seconds": seconds, "process_seconds": round(time.perf_counter() - started, 1)}


def versions() -> dict[str, str]:
    found = {}
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found


def with_reading(row: dict[str, Any]) -> dict[str, Any]:
    """The row with what its source says about the cause of its alarms."""
    read, why = READ.get(row["env"], ("", ""))
    is_alarm = row["verdict"] in ("suspicious", "broken")
    return (
        row | in_words(row) | {"read": (read or "not read yet") if is_alarm else None, "why": why if is_alarm else ""}
    )


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    verdicts = [row["verdict"] for row in rows]
    names = ("fine", "not enough evidence", "suspicious", "broken")
    examined_rows = [row for row in rows if row["verdict"] != "not examined"]
    return {
        "environments": len(examined_rows),
        "not_examined": len(rows) - len(examined_rows),
        **{name.replace(" ", "_"): verdicts.count(name) for name in names},
        **{name: sum(row["read"] == name for row in rows) for name in ("design", "confirmed", "withdrawn")},
    }


def in_words(row: dict[str, Any]) -> dict[str, str]:
    """The largest difference of a seat, and the largest of the smallest differences that would be found."""
    groups, says = row.get("groups", []), row.get("says", [])
    worst = max(groups, key=lambda group: abs(group["effect"]["estimate"]), default=None)
    counts = [re.search(r"([\d,]+) episodes", line) for line in says if line.startswith("returns")]
    words = {"difference": "-", "detectable": "-", "episodes": next((found[1] for found in counts if found), "-")}
    if worst:
        of = worst["effect"]
        words["difference"] = f"{of['estimate']:+.1%} ({of['low']:+.1%} to {of['high']:+.1%})"
        words["detectable"] = f"{max(group['detectable'] for group in groups):.1%}"
    elif any("had the same return in each" in line for line in says):
        words["difference"] = "none: all get the same"
    elif any("was 0 in all" in line for line in says):
        words["difference"] = "unknown: nothing was paid"
    return words


def shown(row: dict[str, Any]) -> tuple[str, ...]:
    words = in_words(row)
    seconds = f"{row.get('process_seconds', 0):.0f}"
    return row["env"], row["verdict"], words["difference"], words["detectable"], row.get("read") or "", seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three environments, five seconds each")
    parser.add_argument("--seconds", type=float, default=180.0, help="of play in each environment")
    parser.add_argument("--jobs", type=int, default=2, help="environments at a time, each on a core of its own")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="these environments; with --out the others keep their rows")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(examined(asked.one, asked.seconds, asked.seed)))
        return
    from audit_envs import ENVS, GAMES
    from measure import print_table, write_result

    names = QUICK if asked.quick else asked.only if asked.only is not None else (*ENVS, *GAMES)
    seconds = 5.0 if asked.quick else asked.seconds
    kept = json.loads(asked.out.read_text())["rows"] if asked.only is not None and asked.out else []
    rows = {row["env"]: with_reading(row) for row in kept}
    about = {"commands": ["python benchmarks/audit.py"], "versions": versions()}

    def write() -> None:
        if asked.out:
            ordered = [rows[name] for name in (*ENVS, *GAMES) if name in rows]
            write_result(asked.out, about | {**summary(ordered), "rows": ordered})

    with ThreadPoolExecutor(asked.jobs) as pool:
        examining = [pool.submit(in_own_process, name, seconds, asked.seed) for name in names]
        for each in as_completed(examining):
            row = with_reading(each.result())
            rows[row["env"]] = row
            print(" | ".join(shown(row)), row.get("error", ""), flush=True)
            write()  # an hour's work is not lost if it is stopped
    write()
    headings = ("environment", "verdict", "difference of a seat", "smallest detectable", "source", "seconds")
    print_table("published environments", headings, [shown(row) for row in rows.values()])
    print(json.dumps(summary(list(rows.values()))))


if __name__ == "__main__":
    main()
