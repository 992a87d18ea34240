"""Frames as pictures (PNG, SVG) and episodes as animations (GIF).

A picture is one sheet, measured in inches from its top left corner: a headline, the board, and a row per player.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle
from PIL import Image

from hopplus.games import draw
from hopplus.games.draw import Catch, Frame
from hopplus.games.game import NO_ACTION, GameSpec
from hopplus.games.shapes import BURST, JOINTS, POINTS_PER_INCH, Shape, draw_shape, shape_of

MARGIN, HEADER, BOARD, SMALLEST_CELL, LARGEST_CELL = 0.25, 0.95, 5.6, 0.5, 0.9
PANEL, PANEL_HEAD, PANEL_ROW, NOTE_ROW = 3.6, 0.3, 0.5, 0.24
PICTURE_DPI, GIF_DPI = 150, 80
GIF_COLOURS = 256
LAST_FRAME_SECONDS = 2.0

PAPER, INK, MUTED, RULE = "#fffdf8", "#2d2a26", "#8a857c", "#e4dfd3"
FLOOR, OTHER_FLOOR, FLOOR_EDGE = "#f1eee1", "#ebe7d8", "#cfc9b8"
WALL, MORTAR, WALL_EDGE = "#8b8f96", "#7b7f87", "#5c6068"
GAIN, LOSS, GLOW, PILL_EDGE = "#2b8a3e", "#c92a2a", "#fff0c4", "#f0a500"
ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→"}
FLOOR_LAYER, WALL_LAYER, TRAIL_LAYER, BURST_LAYER, THING_LAYER, PLAYER_LAYER, GAIN_LAYER = range(7)

Cell = tuple[int, int]
"""Row and column."""


@dataclass(frozen=True)
class Layout:
    """The positions on the sheet, in inches."""

    cell: float
    panel_left: float
    rows_per_column: int
    """The number of players in one column of the panel."""
    width: float
    height: float

    def on_sheet(self, points: Any) -> np.ndarray:
        """Points of the board, with x and y in cells, in coordinates of the sheet."""
        return np.asarray(points) * self.cell + np.array([MARGIN, HEADER])

    def centre(self, cell: Cell) -> np.ndarray:
        return self.on_sheet((cell[1] + 0.5, cell[0] + 0.5))


def figure(spec: GameSpec, frame: Frame, previous: Frame | None = None, names: Sequence[str] | None = None) -> Figure:
    """The picture of a frame; with `previous`, also catches and moves."""
    draw.check_names(spec, names)
    layout = layout_of(spec, len(frame.notes))
    sheet = Figure(figsize=(layout.width, layout.height), facecolor=PAPER)
    axes = sheet.add_axes((0, 0, 1, 1), xlim=(0, layout.width), ylim=(layout.height, 0))
    axes.set_axis_off()
    caught = draw.catches(spec, previous, frame)
    _draw_header(axes, layout, spec, frame, caught)
    _draw_panel(axes, layout, spec, frame, names)
    if spec.planes:
        _draw_floor(axes, layout, draw.wall_cells(spec, frame))
        _draw_board(axes, layout, spec, frame, previous, caught)
    return sheet


def save_picture(
    spec: GameSpec,
    frame: Frame,
    path: str | Path,
    previous: Frame | None = None,
    names: Sequence[str] | None = None,
) -> None:
    """Write one frame as PNG or SVG, by the suffix of the path."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".png", ".svg"):
        raise ValueError(f"cannot draw {str(path)!r}; give a path that ends in .png or .svg")
    sheet = figure(spec, frame, previous, names)
    if suffix == ".png":
        sheet.savefig(path, dpi=PICTURE_DPI)
    else:
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "hopplus"}):
            sheet.savefig(path, metadata={"Date": None})


def save_gif(
    spec: GameSpec,
    frames: Sequence[Frame],
    path: str | Path,
    names: Sequence[str] | None = None,
    seconds_per_frame: float = 0.5,
) -> None:
    """Write an episode as an animation that loops and pauses on its last frame."""
    if Path(path).suffix.lower() != ".gif":
        raise ValueError(f"cannot animate {str(path)!r}; give a path that ends in .gif")
    if not frames:
        raise ValueError("there is nothing to animate; give at least one frame")
    steps = zip(frames, [None, *frames[:-1]], strict=True)
    images = [_image(figure(spec, frame, before, names)) for frame, before in steps]
    palette = _shared_palette(images)
    first, *others = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    seconds = [seconds_per_frame] * len(others) + [max(LAST_FRAME_SECONDS, seconds_per_frame)]
    milliseconds = [round(1000 * each) for each in seconds]
    first.save(path, save_all=True, append_images=others, duration=milliseconds, loop=0)


def _image(sheet: Figure) -> Image.Image:
    sheet.set_dpi(GIF_DPI)
    canvas = FigureCanvasAgg(sheet)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])


def _shared_palette(images: list[Image.Image]) -> Image.Image:
    """One palette for all frames, of the colours with the largest areas: nothing flickers, and the file stays small."""
    largest_area: dict[Any, int] = {}
    for image in images:
        for area, colour in image.getcolors(image.width * image.height) or []:
            largest_area[colour] = max(area, largest_area.get(colour, 0))
    colours = sorted(largest_area, key=lambda colour: (-largest_area[colour], colour))[:GIF_COLOURS]
    palette = Image.new("P", (1, 1))
    palette.putpalette([channel for colour in colours for channel in colour])
    return palette


def layout_of(spec: GameSpec, num_notes: int = 0) -> Layout:
    """Cells as large as the sheet allows, and as many columns of players as fit beside the board; notes below them."""
    cell = min(max(BOARD / max(spec.height, spec.width, 1), SMALLEST_CELL), LARGEST_CELL)
    board_width, board_height = (cell * spec.width, cell * spec.height) if spec.planes else (0.0, 0.0)
    rows_per_column = int((max(BOARD, board_height) - PANEL_HEAD) / PANEL_ROW)
    num_columns = -(-spec.num_agents // rows_per_column)
    panel_left = 2 * MARGIN + board_width if spec.planes else MARGIN
    panel_height = PANEL_HEAD + PANEL_ROW * min(spec.num_agents, rows_per_column) + NOTE_ROW * num_notes
    return Layout(
        cell=cell,
        panel_left=panel_left,
        rows_per_column=rows_per_column,
        width=panel_left + num_columns * (PANEL + MARGIN),
        height=HEADER + max(board_height, panel_height) + MARGIN,
    )


def _draw_header(axes: Axes, layout: Layout, spec: GameSpec, frame: Frame, caught: list[Catch]) -> None:
    room = layout.width - 2 * MARGIN
    news = "; ".join(draw.catch_text(catch) for catch in caught)
    _write(axes, MARGIN, 0.32, draw.title_text(spec, frame), 15.0, weight="bold")
    _write(axes, MARGIN, 0.6, _shortened(news, int(11 * room)), 10.0, GAIN)
    axes.add_artist(Rectangle((MARGIN, 0.76), room, 0.05, facecolor=RULE))
    axes.add_artist(Rectangle((MARGIN, 0.76), room * min(frame.time / spec.horizon, 1.0), 0.05, facecolor=MUTED))


def _draw_panel(axes: Axes, layout: Layout, spec: GameSpec, frame: Frame, names: Sequence[str] | None) -> None:
    """Draw a row per player: its colour and number, its policy, its last action and its return."""
    for seat in range(spec.num_agents):
        column, row = divmod(seat, layout.rows_per_column)
        left = layout.panel_left + column * (PANEL + MARGIN)
        if row == 0:
            _write(axes, left + 0.5, HEADER + 0.1, "player", 8.0, MUTED)
            _write(axes, left + 1.5, HEADER + 0.1, "last action", 8.0, MUTED)
            _write(axes, left + PANEL, HEADER + 0.1, "return", 8.0, MUTED, ha="right")
        policy = None if names is None else names[seat]
        _draw_panel_row(axes, left, HEADER + PANEL_HEAD + PANEL_ROW * (row + 0.5), spec, frame, seat, policy)
    below = HEADER + PANEL_HEAD + PANEL_ROW * min(spec.num_agents, layout.rows_per_column)
    for number, note in enumerate(frame.notes):
        _write(axes, layout.panel_left, below + NOTE_ROW * (number + 0.5), _shortened(note, 62), 7.5, MUTED)


def _draw_panel_row(
    axes: Axes, start: float, middle: float, spec: GameSpec, frame: Frame, seat: int, policy: str | None
) -> None:
    left, gone = bool(draw.has_left(spec, frame)[seat]), bool(draw.off_board(spec, frame)[seat])
    acted = frame.actions[seat] != NO_ACTION
    reward, colour = float(frame.rewards[seat]), MUTED if gone else INK
    above, below = middle - 0.09, middle + 0.11
    if reward != 0:
        row = FancyBboxPatch((start, middle - 0.22), PANEL + 0.08, 0.44, "round,pad=0,rounding_size=0.08")
        row.set(facecolor=GLOW, linewidth=0, zorder=0)
        axes.add_artist(row)
        _write(axes, start + PANEL, below, draw.reward_text(reward), 9.0, GAIN if reward > 0 else LOSS, ha="right")
    second = ", ".join(filter(None, [policy and _shortened(policy, 34), draw.traits(spec, frame, seat)]))
    if second:
        _write(axes, start + 0.5, below, second, 8.5, MUTED)

    action = draw.action_text(spec, frame, seat)
    doing = f"{ARROWS.get(action, '')} {action}".strip() + (", left" if left and acted else "")
    upper = above if second else middle
    _draw_player(axes, seat, start + 0.24, middle, 0.17, faded=gone)
    _write(axes, start + 0.5, upper, draw.player_name(seat), 10.0, colour, weight="bold")
    _write(axes, start + 1.5, upper, doing, 10.0, colour)
    total = draw.number_text(float(frame.returns[seat]))
    _write(axes, start + PANEL, upper if reward == 0 else above, total, 11.0, ha="right", weight="bold")


def _draw_floor(axes: Axes, layout: Layout, walls: np.ndarray) -> None:
    """Draw a chequered floor and brick walls."""
    height, width = walls.shape
    whole = [layout.on_sheet([(0, 0), (width, 0), (width, height), (0, height)])]
    rows, columns = np.indices(walls.shape)
    axes.add_artist(PolyCollection(whole, facecolors=FLOOR, zorder=FLOOR_LAYER))
    _fill(axes, layout, (rows + columns) % 2 == 1, OTHER_FLOOR)
    axes.add_artist(PolyCollection(whole, facecolors="none", edgecolors=FLOOR_EDGE, zorder=FLOOR_LAYER))
    if walls.any():
        _fill(axes, layout, walls, WALL)
        corners = np.argwhere(walls)[:, None, None, ::-1]
        joints, mortar = layout.on_sheet((corners + JOINTS).reshape(-1, 2, 2)), POINTS_PER_INCH * 0.03 * layout.cell
        axes.add_artist(LineCollection(list(joints), colors=MORTAR, linewidths=mortar, zorder=WALL_LAYER))
        rims = layout.on_sheet(_rims(walls))
        axes.add_artist(
            LineCollection(list(rims), colors=WALL_EDGE, linewidths=1.2, capstyle="round", zorder=WALL_LAYER)
        )


def _fill(axes: Axes, layout: Layout, cells: np.ndarray, colour: str) -> None:
    corners = np.argwhere(cells)[:, None, ::-1] + np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    squares = layout.on_sheet(corners)
    axes.add_artist(
        PolyCollection(list(squares), facecolors=colour, linewidths=0, antialiased=False, zorder=FLOOR_LAYER)
    )


def _rims(walls: np.ndarray) -> np.ndarray:
    """[lines, 2, 2]: the line between each wall cell and each neighbour that is no wall."""
    inside = np.pad(walls, 1)
    across = np.argwhere(inside[:-1, 1:-1] != inside[1:, 1:-1])[:, None, ::-1] + np.array([[0, 0], [1, 0]])
    down = np.argwhere(inside[1:-1, :-1] != inside[1:-1, 1:])[:, None, ::-1] + np.array([[0, 0], [0, 1]])
    return np.concatenate([across, down])


def _draw_board(
    axes: Axes, layout: Layout, spec: GameSpec, frame: Frame, previous: Frame | None, caught: list[Catch]
) -> None:
    """Draw the entities and players of each cell, and the latest catches with the players that left."""
    players, things, leavers = draw.players_by_cell(spec, frame), _things(spec, frame), _leavers(spec, frame, caught)
    for catch in caught:
        cell = (catch.row, catch.column)
        x, y = layout.centre(cell)
        draw_shape(axes, BURST, x, y, layout.cell, BURST_LAYER)
        things.setdefault(cell, []).append(shape_of(catch.plane))

    for cell in {**things, **players}:
        seats = sorted(players.get(cell, []) + leavers.get(cell, []))
        _draw_things(axes, layout, cell, things.get(cell, []), crowd=len(seats))
        offsets, radius = _slots(len(seats), beside_things=cell in things)
        for seat, offset in zip(seats, offsets, strict=True):
            x, y = layout.centre(cell) + offset * layout.cell
            _draw_player(axes, seat, x, y, radius * layout.cell, faded=seat in leavers.get(cell, []))

    if previous is not None:
        _draw_trails(axes, layout, draw.players_by_cell(spec, previous), players)
    taken = {*things, *players}
    for catch in caught:
        taken.add(_draw_gain(axes, layout, spec, catch, taken))


def _things(spec: GameSpec, frame: Frame) -> dict[Cell, list[Shape]]:
    """The shapes on each cell that has any."""
    things: dict[Cell, list[Shape]] = {}
    for index, plane in enumerate(spec.planes):
        if plane.kind == "set":
            for row, column in np.argwhere(frame.board[..., index]).tolist():
                things.setdefault((row, column), []).append(shape_of(plane.name))
    return things


def _leavers(spec: GameSpec, frame: Frame, caught: list[Catch]) -> dict[Cell, list[int]]:
    """The seats that left the board after a catch, by the cell of the catch."""
    gone = draw.has_left(spec, frame)
    leavers: dict[Cell, list[int]] = {}
    for catch in caught:
        already = leavers.setdefault((catch.row, catch.column), [])
        already.extend(seat for seat in catch.seats if gone[seat] and seat not in already)
    return leavers


def _slots(count: int, beside_things: bool) -> tuple[np.ndarray, float]:
    """The offsets of the players of one cell from its centre, and their radius: below the things, or all over it."""
    if beside_things:
        num_rows = max(1, -(-count // 4))
        down, middle, largest, overlap = (0.46, 0.26, 0.23, 1.15) if num_rows == 1 else (0.58, 0.2, 0.2, 1.15)
    else:
        num_rows = max(1, round(count**0.5))
        down, middle, largest, overlap = 0.97, 0.0, 0.33, 1.0
    across, num_columns = 0.97, max(1, -(-count // num_rows))
    radius = min(largest, overlap * across / (2 * num_columns), down / (2 * num_rows))
    column_gap = min(2.1 * radius, (across - 2 * radius) / max(1, num_columns - 1))
    row_gap = min(2.1 * radius, (down - 2 * radius) / max(1, num_rows - 1))
    slots = np.zeros((count, 2))
    for index in range(count):
        row, column = divmod(index, num_columns)
        in_row = min(num_columns, count - row * num_columns)
        slots[index] = (column - (in_row - 1) / 2) * column_gap, middle + (row - (num_rows - 1) / 2) * row_gap
    return slots, radius


def _draw_things(axes: Axes, layout: Layout, cell: Cell, things: list[Shape], crowd: int) -> None:
    """Draw the things on a cell side by side, above its players."""
    size, up = (0.92, 0.0) if crowd == 0 else (0.66, 0.2) if crowd <= 4 else (0.46, 0.28)
    size = min(size, 1.0 / max(1, len(things)))
    for index, shape in enumerate(things):
        right = (index - (len(things) - 1) / 2) * size
        x, y = layout.centre(cell) + np.array([right, -up]) * layout.cell
        draw_shape(axes, shape, x, y, size * layout.cell, THING_LAYER)


def _draw_player(axes: Axes, seat: int, x: float, y: float, radius: float, faded: bool = False) -> None:
    colour = draw.player_colour(seat)
    red, green, blue = (1 - 0.6 * (1 - channel) for channel in to_rgb(colour))
    pale = to_hex((red, green, blue))
    face, ring, ink = ("white", pale, pale) if faded else (colour, "white", "white")
    edge = POINTS_PER_INCH * 0.14 * radius
    axes.add_artist(Circle((x, y), 0.93 * radius, facecolor=face, edgecolor=ring, linewidth=edge, zorder=PLAYER_LAYER))
    points = POINTS_PER_INCH * radius * (1.15 if seat < 9 else 0.9)
    _write(axes, x, y + 0.03 * radius, str(seat + 1), points, ink, ha="center", weight="bold", zorder=PLAYER_LAYER)


def _draw_trails(axes: Axes, layout: Layout, before: dict[Cell, list[int]], after: dict[Cell, list[int]]) -> None:
    """Draw a faint line from the last position of each player."""
    came_from = {seat: cell for cell, seats in before.items() for seat in seats}
    moves = [(seat, came_from.get(seat, cell), cell) for cell, seats in after.items() for seat in seats]
    for seat, start, end in moves:
        if start != end:
            line = [[layout.centre(start), layout.centre(end)]]
            pen = {"linewidths": POINTS_PER_INCH * 0.1 * layout.cell, "capstyle": "round", "alpha": 0.35}
            axes.add_artist(LineCollection(line, colors=draw.player_colour(seat), zorder=TRAIL_LAYER, **pen))


def _draw_gain(axes: Axes, layout: Layout, spec: GameSpec, catch: Catch, taken: set[Cell]) -> Cell:
    """Write the reward of each hunter towards a free neighbouring cell, and return that cell."""
    offsets = {(-1, 0): (0, -0.71), (1, 0): (0, 0.7), (0, 1): (0.85, 0), (0, -1): (-0.85, 0)}
    around = {(catch.row + down, catch.column + right): offset for (down, right), offset in offsets.items()}
    free = [at for at in around if at not in taken and 0 <= at[0] < spec.height and 0 <= at[1] < spec.width]
    side = free[0] if free else (catch.row - 1, catch.column)
    x, y = layout.centre((catch.row, catch.column)) + np.array(around[side]) * layout.cell
    pill = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": PILL_EDGE}
    points = max(8.0, POINTS_PER_INCH * 0.2 * layout.cell)
    words, colour = draw.catch_reward_text(catch), GAIN if max(catch.rewards) > 0 else LOSS
    _write(axes, x, y, words, points, colour, ha="center", weight="bold", zorder=GAIN_LAYER, bbox=pill)
    return side


def _write(axes: Axes, x: float, y: float, words: str, points: float, colour: str = INK, **more: Any) -> None:
    axes.text(x, y, words, color=colour, fontsize=points, family="DejaVu Sans", va="center", parse_math=False, **more)


def _shortened(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
