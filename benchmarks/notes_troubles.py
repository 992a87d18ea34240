"""Which troubles of the notes appear in their agent, hop_plus_notes? results/notes_troubles.json.

    python benchmarks/notes_studies.py value_loss long    first: the figures that this reads
    python benchmarks/notes_troubles.py
    python benchmarks/notes_troubles.py --quick           print it, write nothing

Each trouble has a figure, an interval, and a bound that somebody chose. It appears if the whole interval is beyond the
bound, it does not if none of it is, and otherwise it is not clear. The agent is trained as it is, without any fault.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.stats import binomtest

from hopplus_doctor.statistics import Interval, seed_interval
from measure import interval_words, print_json, print_table, write_result

RESULTS = Path(__file__).resolve().parent.parent / "results"
AGENT, BASE = "critic on all", "ppo"
"""Variants of the study of the value loss: hop_plus_notes as it is, and ppo with as many environments and steps."""
LONG = "hop_plus_notes"
SIGNIFICANT = 0.05
IMPOSSIBLE = ("jumped", "doubled", "revived")
Found = dict[str, Any]


def appears(interval: Interval, bound: float, *, above: bool) -> Literal["yes", "no", "not clear"]:
    """Whether all, none or a part of the interval is beyond the bound."""
    beyond = [(end >= bound) if above else (end <= bound) for end in (interval.low, interval.high)]
    return "yes" if all(beyond) else "no" if not any(beyond) else "not clear"


def value_loss(value_losses: Found, _: Found) -> Found:
    """The value loss of each seed, over the mean of ppo's."""
    base = np.mean(value_losses["variants"][BASE]["value_loss_by_seed"])
    ratio = seed_interval(np.array(value_losses["variants"][AGENT]["value_loss_by_seed"]) / base)
    return {"figure": asdict(ratio), "bound": 10, "appears": appears(ratio, 10, above=True)}


def seats(value_losses: Found, _: Found) -> Found:
    """What the first seat gets more than the last, and Page's test."""
    agent = value_losses["variants"][AGENT]
    by_seed = np.array(agent["seats_by_seed"])
    more, trend = seed_interval(by_seed[:, 0] - by_seed[:, -1]), agent["trend"]
    known = "not clear" if trend is None else "yes" if trend["p_value"] < SIGNIFICANT else "no"
    return {"figure": asdict(more), "bound": SIGNIFICANT, "appears": known, "trend": trend}


def collapse(value_losses: Found, _: Found) -> Found:
    """The top-1 of the opponent model; it has collapsed if half of the actions are never predicted."""
    agent = value_losses["variants"][AGENT]
    never, actions = agent["never_predicted"], len(agent["recall"])
    return {
        "figure": agent["top1"],
        "bound": 0.5,
        "appears": "yes" if 2 * len(never) >= actions else "no",
        "never_predicted": never,
        "actions": actions,
    }


def boards(value_losses: Found, _: Found) -> Found:
    """The share of players whom the world puts where no rule allows; the interval is over predictions, not seeds."""
    agent = value_losses["variants"][AGENT]
    judged = agent["world"]["line_ups"]["all"]
    count, most = judged["transitions"] * len(agent["seats"]), max(judged["impossible"][kind] for kind in IMPOSSIBLE)
    ends = binomtest(most, count).proportion_ci(method="wilson")
    share = Interval(most / count, float(ends.low), float(ends.high))
    known = appears(share, 0.01, above=True)
    return {"figure": asdict(share), "bound": 0.01, "appears": known, "impossible": judged["impossible"]}


def fall(_: Found, long: Found) -> Found:
    """The last tenth of a long run over its best tenth."""
    ratio = seed_interval(np.array(long["variants"][LONG]["last_over_best_by_seed"]))
    return {"figure": asdict(ratio), "bound": 0.95, "appears": appears(ratio, 0.95, above=False)}


TROUBLES: dict[str, tuple[str, Callable[[Found, Found], Found]]] = {
    "value_loss": ("value loss over ppo's", value_loss),
    "seats": ("return of player 1 minus player 4; bound: p of Page's test", seats),
    "collapse": ("top-1 of the opponent model; bound: share of actions never predicted", collapse),
    "boards": ("share of players in impossible places, the most frequent kind", boards),
    "fall": ("last tenth of a long run over its best tenth", fall),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="print it, write nothing")
    quick = parser.parse_args().quick
    studies = [json.loads((RESULTS / f"notes_{name}.json").read_text()) for name in ("value_loss", "long")]
    found = {name: {"what": what, **measure(*studies)} for name, (what, measure) in TROUBLES.items()}
    rows = [
        (one["what"], interval_words(one["figure"], 3), f"{one['bound']:g}", one["appears"]) for one in found.values()
    ]
    print_table("troubles of the notes in hop_plus_notes", ("trouble", "figure", "bound", "appears"), rows)
    commands = [command for study in studies for command in study["commands"]]
    if not quick:
        commands = [*dict.fromkeys(commands), "python benchmarks/notes_troubles.py"]
        write_result(RESULTS / "notes_troubles.json", {"commands": commands, "troubles": found})
    print_json({"appears": {name: one["appears"] for name, one in found.items()}}, ["numpy"])


if __name__ == "__main__":
    main()
