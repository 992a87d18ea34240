"""Episodes for the viewer, which steps through them in a browser.

Python computes everything that needs the game: the cells, the catches, and every text. The script
`templates/replay.js` only draws them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.path import Path as Outline

from hopplus.evaluation.decisions import Decisions
from hopplus.games import draw
from hopplus.games.draw import Catch, Frame
from hopplus.games.game import NO_ACTION, GameSpec
from hopplus.games.shapes import BURST, JOINTS, MARKER, SHAPES, Shape

SYMBOL_SHAPES: dict[str, Shape] = {**SHAPES, "marker": MARKER, "burst": BURST}
"""The shapes of the viewer by name. A plane without its own shape is shown as a marker."""
SYMBOL_HALF = 0.65
"""Half the side of a symbol's square. A burst is larger than its cell."""


@dataclass(frozen=True)
class Replay:
    """One episode for the viewer: the frames in order, and the players of the seats."""

    title: str
    spec: GameSpec
    frames: Sequence[Frame]
    names: Sequence[str]
    """One name per seat: the policy that played there."""
    decisions: Decisions | None = None
    """The decisions of one seat, for each frame in which a seat still acts."""

    def __post_init__(self) -> None:
        draw.check_names(self.spec, self.names)
        if not self.frames:
            raise ValueError(f"the replay {self.title!r} has no frames; give one frame at least")


def replay_data(replay: Replay) -> dict[str, Any]:
    """The data of the viewer, in JSON types."""
    spec, first = replay.spec, replay.frames[0]
    before: list[Frame | None] = [None, *replay.frames[:-1]]
    return {
        "title": replay.title,
        "game": spec.name.replace("_", " "),
        "horizon": spec.horizon,
        "height": spec.height,
        "width": spec.width,
        "planes": [_plane_data(spec, index) for index in range(len(spec.planes))],
        "seats": [
            {"name": draw.player_name(seat), "policy": name, "colour": draw.player_colour(seat)}
            for seat, name in enumerate(replay.names)
        ],
        "fixed": _cells(spec, first, ("fixed",)),
        "frames": [_frame_data(spec, previous, frame) for previous, frame in zip(before, replay.frames, strict=True)],
        "decisions": _decisions_data(replay),
    }


def _decisions_data(replay: Replay) -> dict[str, Any] | None:
    """The decisions of one seat: for each frame in which it acts, its beliefs about co-players and its own actions."""
    decisions, spec = replay.decisions, replay.spec
    if decisions is None:
        return None
    others = [(decisions.seat + place) % spec.num_agents for place in range(1, spec.num_agents)]
    acting = [not frame.terminated[decisions.seat] for frame in replay.frames[:-1]]
    return {
        "seat": decisions.seat,
        "goals": list(decisions.goals),
        "plans": decisions.values is not None,
        "frames": [
            {
                "beliefs": [
                    {"seat": other, "shares": _shares(decisions.beliefs[step, place])}
                    for place, other in enumerate(others)
                    if decisions.goals
                ],
                "actions": _actions_data(replay, decisions, step),
            }
            for step, acts in enumerate(acting)
            if acts
        ],
    }


def _actions_data(replay: Replay, decisions: Decisions, step: int) -> list[dict[str, Any]]:
    """A row for every legal action of the seat; the taken action is marked."""
    taken = int(replay.frames[step + 1].actions[decisions.seat])
    rows = []
    for action in np.flatnonzero(decisions.legal[step]).tolist():
        row = {
            "name": replay.spec.action_names[action],
            "share": round(float(decisions.policy[step, action]), 3),
            "taken": action == taken,
        }
        if decisions.values is not None and decisions.visits is not None:
            row["value"] = f"{decisions.values[step, action]:.2f}"
            row["visits"] = f"{decisions.visits[step, action]:.0f}"
        rows.append(row)
    return rows


def _shares(probabilities: np.ndarray) -> list[float]:
    return np.round(probabilities, 3).tolist()


def _plane_data(spec: GameSpec, index: int) -> dict[str, str]:
    plane = spec.planes[index]
    symbol = draw.SYMBOLS.get(plane.name)
    return {
        "name": plane.name,
        "kind": plane.kind,
        "noun": symbol.noun if symbol else plane.name,
        "shape": plane.name if plane.name in SHAPES else "marker",
    }


def _cells(spec: GameSpec, frame: Frame, kinds: tuple[str, ...]) -> list[list[int]]:
    """[row, column, plane] of every cell that is on, in planes of these kinds."""
    if not spec.planes:
        return []
    return [cell for cell in np.argwhere(frame.board).tolist() if spec.planes[cell[2]].kind in kinds]


def _frame_data(spec: GameSpec, previous: Frame | None, frame: Frame) -> dict[str, Any]:
    seats = range(spec.num_agents)
    return {
        "time": frame.time,
        "headline": draw.title_text(spec, frame),
        "cells": _cells(spec, frame, ("walker", "set")),
        "actions": frame.actions.tolist(),
        "rewards": frame.rewards.tolist(),
        "returns": frame.returns.tolist(),
        "terminated": frame.terminated.tolist(),
        "left": draw.has_left(spec, frame).tolist(),
        "did": [draw.action_text(spec, frame, seat) for seat in seats],
        "reward_words": [_reward_words(spec, frame, seat) for seat in seats],
        "return_words": [draw.number_text(float(total)) for total in frame.returns],
        "catches": [_catch_data(spec, catch) for catch in draw.catches(spec, previous, frame)],
    }


def _reward_words(spec: GameSpec, frame: Frame, seat: int) -> str:
    """The reward in words. Zero is left out on a board; in a matrix game it is shown as any other payoff."""
    reward, has_acted = float(frame.rewards[seat]), frame.actions[seat] != NO_ACTION
    return draw.reward_text(reward) if reward != 0 or (has_acted and not spec.planes) else ""


def _catch_data(spec: GameSpec, catch: Catch) -> dict[str, Any]:
    return {
        "plane": spec.plane_index(catch.plane),
        "row": catch.row,
        "column": catch.column,
        "seats": list(catch.seats),
        "words": draw.catch_text(catch),
        "gain": draw.catch_reward_text(catch),
    }


def symbols() -> list[dict[str, Any]]:
    """The outlines of stag, hare, drift, marker and burst as SVG paths, equal to those of the pictures."""
    return [
        {
            "name": name,
            "paths": [
                {"d": outline_data(part.outline), "fill": part.face, "stroke": part.edge, "width": part.thickness}
                for part in shape
            ],
        }
        for name, shape in SYMBOL_SHAPES.items()
    ]


def outline_data(outline: Outline) -> str:
    """An outline as the `d` of an SVG path."""
    letters = {Outline.MOVETO: "M", Outline.LINETO: "L", Outline.CURVE3: "Q", Outline.CURVE4: "C"}
    pieces = []
    for points, code in outline.iter_segments(simplify=False, curves=True):
        if code == Outline.CLOSEPOLY:
            pieces.append("Z")
        elif code in letters:
            pieces.append(letters[code] + " ".join(f"{number:.4g}" for number in points))
    return "".join(pieces)


def brick_data() -> str:
    """The mortar of one cell of wall as the `d` of an SVG path, from the cell's corner."""
    return "".join(f"M{x:g} {y:g}L{end_x:g} {end_y:g}" for (x, y), (end_x, end_y) in JOINTS.tolist())
