"""The shapes of the things on a board: outlines in a square of side 1 around the origin, y pointing down."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from hopplus_doctor.names import PLAYER_COLOURS

POINTS_PER_INCH = 72


@dataclass(frozen=True)
class Part:
    """One outline of a shape, filled, stroked or both."""

    outline: Path
    face: str = "none"
    edge: str = "none"
    thickness: float = 0.0


Shape = tuple[Part, ...]


def draw_shape(axes: Axes, shape: Shape, x: float, y: float, size: float, zorder: int) -> None:
    """Draw a shape on axes that are measured in inches."""
    place = Affine2D().scale(size).translate(x, y)
    for part in shape:
        pen = {"linewidth": POINTS_PER_INCH * part.thickness * size, "capstyle": "round", "joinstyle": "round"}
        colours = {"facecolor": part.face, "edgecolor": part.edge, "zorder": zorder}
        axes.add_artist(PathPatch(part.outline.transformed(place), **pen, **colours))


def _ellipse(x: float, y: float, half_width: float, half_height: float, degrees: float = 0.0) -> Path:
    place = Affine2D().scale(half_width, half_height).rotate_deg(degrees).translate(x, y)
    return Path.unit_circle().transformed(place)


def _curve(*points: tuple[float, float], closed: bool = False) -> Path:
    """A smooth line through the points: Catmull-Rom splines as Bezier curves."""
    knots = np.array(points)
    around = np.vstack([knots[-1], knots, knots[:2]]) if closed else np.vstack([knots[0], knots, knots[-1]])
    vertices, codes = [around[1]], [Path.MOVETO]
    for before, start, end, after in zip(around, around[1:], around[2:], around[3:], strict=False):
        vertices += [start + (end - before) / 6, end - (after - start) / 6, end]
        codes += [Path.CURVE4] * 3
    return Path(np.array(vertices), codes)


def _symmetric(*points: tuple[float, float]) -> Path:
    """A closed smooth line through points on the right, from the top to the bottom, and their mirror images."""
    return _curve(*points, *((-x, y) for x, y in reversed(points[1:-1])), closed=True)


def _both_sides(outline: Path) -> Path:
    return Path.make_compound_path(outline, outline.transformed(Affine2D().scale(-1, 1)))


def _star(points: int, outer: float, inner: float) -> Path:
    angles = np.pi * np.arange(2 * points) / points
    radii = np.where(np.arange(2 * points) % 2 == 0, outer, inner)
    corners = np.stack([radii * np.sin(angles), -radii * np.cos(angles)], axis=-1)
    return Path(np.vstack([corners, corners[:1]]), closed=True)


_HIDE, _HIDE_EDGE, _ANTLER, _DARK = "#96602f", "#5f3a18", "#5a3d22", "#2a1a10"
STAG: Shape = (
    Part(_both_sides(_curve((0.06, -0.1), (0.13, -0.24), (0.3, -0.3), (0.34, -0.48))), "none", _ANTLER, 0.055),
    Part(_both_sides(_curve((0.13, -0.24), (0.12, -0.36), (0.16, -0.47))), "none", _ANTLER, 0.045),
    Part(_both_sides(_curve((0.27, -0.29), (0.37, -0.27), (0.45, -0.34))), "none", _ANTLER, 0.045),
    Part(_both_sides(_ellipse(0.24, -0.06, 0.13, 0.06, -18.0)), _HIDE, _HIDE_EDGE, 0.018),
    Part(_both_sides(_ellipse(0.25, -0.06, 0.08, 0.03, -18.0)), "#dba878"),
    Part(_symmetric((0.0, -0.17), (0.14, -0.11), (0.15, 0.06), (0.105, 0.3), (0.0, 0.42)), _HIDE, _HIDE_EDGE, 0.018),
    Part(_symmetric((0.0, 0.2), (0.085, 0.27), (0.075, 0.36), (0.0, 0.405)), "#e3c197"),
    Part(_ellipse(0.0, 0.33, 0.055, 0.038), _DARK),
    Part(_both_sides(_ellipse(0.08, 0.03, 0.026, 0.034)), _DARK),
)

_FUR, _FUR_EDGE = "#d3cfc9", "#8d8780"
HARE: Shape = (
    Part(_both_sides(_ellipse(0.11, -0.25, 0.07, 0.22, 10.0)), _FUR, _FUR_EDGE, 0.018),
    Part(_both_sides(_ellipse(0.115, -0.24, 0.032, 0.155, 10.0)), "#eeb8b1"),
    Part(_ellipse(0.0, 0.17, 0.24, 0.22), _FUR, _FUR_EDGE, 0.018),
    Part(_both_sides(_ellipse(0.055, 0.265, 0.08, 0.065)), "#ffffff"),
    Part(_both_sides(_ellipse(0.105, 0.11, 0.03, 0.038)), "#33302d"),
    Part(_ellipse(0.0, 0.21, 0.036, 0.026), "#d9837c"),
    Part(_both_sides(Path([(0.13, 0.24), (0.32, 0.2)])), "none", _FUR_EDGE, 0.012),
    Part(_both_sides(Path([(0.13, 0.27), (0.32, 0.29)])), "none", _FUR_EDGE, 0.012),
)

_SNOW, _SNOW_EDGE, _SHADE = "#ffffff", "#8fb0cb", "#d5e6f3"
_SLOPE = ((-0.44, 0.3), (-0.3, 0.06), (-0.12, -0.2), (0.06, -0.24), (0.22, -0.02), (0.36, 0.1), (0.44, 0.3))
DRIFT: Shape = (
    Part(_ellipse(0.0, 0.3, 0.45, 0.075), "#c9d6e0"),
    Part(_curve(*_SLOPE, (0.0, 0.33), closed=True), _SNOW, _SNOW_EDGE, 0.022),
    Part(_curve((0.06, -0.2), (0.2, 0.02), (0.34, 0.13), (0.41, 0.28), (0.1, 0.3), (0.16, 0.1), closed=True), _SHADE),
    Part(_curve((-0.3, 0.2), (-0.2, 0.1), (-0.1, 0.12)), "none", "#bcd4e6", 0.022),
    Part(_ellipse(-0.3, -0.22, 0.028, 0.028), _SNOW, _SNOW_EDGE, 0.014),
    Part(_ellipse(0.3, -0.26, 0.034, 0.034), _SNOW, _SNOW_EDGE, 0.014),
    Part(_ellipse(-0.1, -0.38, 0.024, 0.024), _SNOW, _SNOW_EDGE, 0.014),
)


def _coin(colour: str) -> Shape:
    return (
        Part(_ellipse(0.0, 0.05, 0.33, 0.33), "#6d655a"),
        Part(_ellipse(0.0, 0.0, 0.33, 0.33), colour, "#ffffff", 0.03),
        Part(_ellipse(0.0, 0.0, 0.23, 0.23), "none", "#ffffff", 0.03),
    )


_PEEL, _PEEL_EDGE, _STALK, _LEAF = "#d64534", "#8f2318", "#5a3d22", "#4f8f3a"


def _apple(x: float, y: float, size: float) -> Shape:
    def at(*points: tuple[float, float]) -> list[tuple[float, float]]:
        return [(x + size * right, y + size * down) for right, down in points]

    half = at((0.0, -0.12), (0.16, -0.19), (0.31, -0.06), (0.28, 0.16), (0.13, 0.33), (0.0, 0.3))
    mirrored = [(2 * x - right, down) for right, down in reversed(half[1:-1])]
    return (
        Part(_curve(*at((0.0, -0.1), (0.02, -0.22), (0.08, -0.32))), "none", _STALK, 0.05 * size),
        Part(_ellipse(*at((0.17, -0.28))[0], 0.11 * size, 0.05 * size, -25.0), _LEAF),
        Part(_curve(*half, *mirrored, closed=True), _PEEL, _PEEL_EDGE, 0.025 * size),
        Part(_ellipse(*at((-0.13, 0.0))[0], 0.045 * size, 0.08 * size, 20.0), "#ef9a8f"),
    )


APPLE: Shape = _apple(0.0, 0.02, 1.2)
FOODS: tuple[Shape, ...] = (
    _apple(0.0, 0.02, 0.95),
    (*_apple(-0.2, 0.04, 0.75), *_apple(0.2, 0.04, 0.75)),
    (*_apple(-0.22, -0.17, 0.68), *_apple(0.22, -0.17, 0.68), *_apple(0.0, 0.2, 0.68)),
)
"""A food of level 1, 2 and 3: as many apples."""
MARKER: Shape = (Part(_star(4, 0.36, 0.254), "#8f7fb8", "#5a4a85", 0.025),)
BURST: Shape = (Part(_star(13, 0.62, 0.44), "#ffd84d", "#f0a500", 0.02),)
SHAPES = {
    "stags": STAG,
    "hares": HARE,
    "drifts": DRIFT,
    **{f"coins_{seat}": _coin(colour) for seat, colour in enumerate(PLAYER_COLOURS[:4])},
    **{f"food_{level}": shape for level, shape in enumerate(FOODS, start=1)},
    "apples": APPLE,
}


def shape_of(plane_name: str) -> Shape:
    """The shape of the entities of a set plane; a marker if the plane has no shape."""
    return SHAPES.get(plane_name, MARKER)


def _joints() -> np.ndarray:
    courses = [[(0, row / 4), (1, row / 4)] for row in range(1, 5)]
    ends = [(x + 0.25 * (row % 2), row / 4) for row in range(4) for x in (0, 0.5)]
    return np.array(courses + [[(x, y), (x, y + 0.25)] for x, y in ends])


JOINTS = _joints()
"""[lines, 2, 2]: the mortar of one wall cell, from its corner; neighbouring cells join."""
