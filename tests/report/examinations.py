"""An examination with every verdict and every kind of picture, full of what could go wrong on a page."""

import math

from hopplus_doctor.answer import NO_THRESHOLD, Answer, Examination, Finding, Picture, Significance
from hopplus_doctor.statistics import Interval

HOSTILE = '</td></script><script>alert("x")</script><img src=x onerror=alert(1)> $x_{$ [bold]&amp;[/] _'
SEATS = ("player_1", "player_2", "player_3")

BARS = Picture(
    "bars",
    "updates by seat",
    SEATS,
    {"policy": [400, None, 400.0], "others": [400, 0, -3]},
    "updates",
    {"policy": [390.0, math.nan, 395.0]},
    {"policy": [410.0, math.nan, 405.0]},
)
BOXES = Picture("boxes", "returns by seat", SEATS, {"player_1": [1.0, None, 2.0], "player_2": [], "player_3": [3.0]})
LINES = Picture("lines", "buffers over time", ("0", "10", "20"), {"a": [1, None, 3], "b": [None] * 3}, "samples")
MATRIX = Picture(
    "matrix", "policies in seats", ("policy 1", "policy 2"), {"seat 1": [-0.5, None], "seat 2": [1.0, 2.0]}
)


def examination() -> Examination:
    effect = Interval(0.42, 0.31, 0.53)
    seats = (
        Finding("config", "learner", "exact", "fine", "All settings are the same.", picture=MATRIX),
        Finding(
            "returns", "policy", "test", "suspicious", "Seats differ.", effect, "return", Significance(2e-4, 0.1), BOXES
        ),
        Finding(
            "updates",
            "others",
            "exact",
            "broken",
            "Seat 2 has none.",
            Interval(400.0, 400.0, 400.0),
            "updates",
            None,
            BARS,
            "do a",
        ),
        Finding(
            "rotation",
            "policy",
            "test",
            "not enough evidence",
            "Few seeds.",
            None,
            "",
            Significance(1.0, 0.1),
            None,
            "do b",
        ),
    )
    hostile_picture = Picture("lines", HOSTILE, (HOSTILE, "b"), {HOSTILE: [1.0, 2.0], "_hidden": [2.0, 1.0]}, HOSTILE)
    world = (
        Finding("steps", "world", "test", "fine", "It is good.", effect, "", Significance(0.5, 1.0), LINES),
        Finding(
            HOSTILE,
            HOSTILE,
            "judgement",
            "broken",
            HOSTILE,
            effect,
            HOSTILE,
            None,
            hostile_picture,
            HOSTILE,
            threshold="broken above 0.3",
        ),
    )
    phases = Finding("phases", "time", "judgement", "fine", "As it should.", threshold=NO_THRESHOLD)
    answers = (
        Answer("seats", "Does training treat seats alike?", seats, 12.34),
        Answer("world", HOSTILE, world),
        Answer("time", "Where does the time go?", (phases,)),
        Answer("critic", "What feeds the critic?", ()),
    )
    return Examination(f"runs/{HOSTILE}", "hopplus doctor runs/x", "0.4.0", answers)
