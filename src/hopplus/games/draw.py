"""Episodes as frames, and frames as text for the terminal.

A frame is drawn from the game's spec and from NumPy arrays, without the rules of the game, so that a learned world can
be drawn too. Pictures and animations are in `hopplus.games.pictures`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from rich import box
from rich import table as rich_table
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.style import Style
from rich.text import Text

from hopplus.games.game import NO_ACTION, Game, GameSpec
from hopplus_doctor.names import PLAYER_COLOURS, player_colour, player_name

RichTable: Any = vars(rich_table)["Table"]

PLAYER_LETTERS = "123456789ABCEFGIJKLMNOPQRTUVWXYZdefgijklmnpqrtuvwxyz&%$@+=<>?~^:"
"""One letter per seat in the terminal, without D, H and S, which could be read as drift, hare and stag, and without the
letters of things on the board."""
MANY_SEATS = 16
"""A table of more seats than that has two columns."""
FEW_LETTERS = 6
"""The least that is shown of a policy's name in a table of many seats."""
WALL_STYLE, CATCH_STYLE = Style.parse("grey58 on grey35"), Style.parse("bold black on #ffd84d")
TEXT_COLUMNS = 80
POLICY_COLUMNS = 16
"""The least width for names of policies; a board that leaves less is drawn above the table of seats."""


@dataclass(frozen=True)
class Symbol:
    """How an entity of a set plane is drawn in text, and the words for catching it."""

    letter: str
    style: Style
    noun: str
    verb: str


SYMBOLS = {
    "stags": Symbol("S", Style.parse("bold #ffd9a0 on #7a4a1f"), "stag", "caught"),
    "hares": Symbol("h", Style.parse("bold #2b2b2b on #c9c5bf"), "hare", "caught"),
    "drifts": Symbol("*", Style.parse("bold #2f6690 on #dcecf7"), "drift", "removed"),
    **{
        f"coins_{seat}": Symbol("o", Style(color=colour, bold=True), f"coin of player_{seat + 1}", "took")
        for seat, colour in enumerate(PLAYER_COLOURS[:4])
    },
    **{
        f"food_{level}": Symbol(letter, Style.parse("bold #7a1f1f on #f7dcdc"), f"food of level {level}", "loaded")
        for level, letter in enumerate("abc", start=1)
    },
    "apples": Symbol("o", Style.parse("bold #b3261e"), "apple", "ate"),
}


@dataclass(frozen=True)
class Frame:
    """One state of an episode, with the actions and rewards of the step before it."""

    board: np.ndarray
    """uint8 [height, width, planes], the players in seat order."""
    time: int
    actions: np.ndarray
    """int [agents]; NO_ACTION for a seat that did not act."""
    rewards: np.ndarray
    """float [agents], the rewards of those actions."""
    returns: np.ndarray
    """float [agents], the sum of the rewards so far."""
    terminated: np.ndarray
    """bool [agents]"""
    notes: tuple[str, ...] = ()
    """Lines about the state, such as what a player believes; all frames of an episode have as many."""


@dataclass(frozen=True)
class Catch:
    """An entity that left a set plane in one step, and the seats that took it."""

    plane: str
    row: int
    column: int
    seats: tuple[int, ...]
    rewards: tuple[float, ...]
    """The rewards of those seats in that step."""


def frames(game: Game, episode: Any) -> list[Frame]:
    """The first state of an episode and the state after each of its steps."""
    num_steps = int(episode.num_steps)
    boards, terminated = map(np.asarray, _boards_and_ends(game, episode.states))
    num_agents = terminated.shape[-1]

    actions = np.full((num_steps + 1, num_agents), NO_ACTION)
    actions[1:] = np.where(terminated[:num_steps], NO_ACTION, np.asarray(episode.actions)[:num_steps])
    rewards = np.zeros((num_steps + 1, num_agents))
    rewards[1:] = np.asarray(episode.rewards)[:num_steps]
    returns = np.cumsum(rewards, axis=0)
    return [
        Frame(boards[time], time, actions[time], rewards[time], returns[time], terminated[time])
        for time in range(num_steps + 1)
    ]


@eqx.filter_jit
def _boards_and_ends(game: Game, states: Any) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(game.board)(states), jax.vmap(game.terminated)(states)


def catches(spec: GameSpec, previous: Frame | None, frame: Frame) -> list[Catch]:
    """The catches between two frames.

    Each set plane says from where players take (`Plane.reached`). Prey on which players stand may also have walked
    away, so that catch needs a rewarded player on its cell. If that player has left the board, the catch counts even if
    the cell is on again, because other prey may have walked onto it.
    """
    if previous is None or spec.num_walkers == 0:
        return []
    before, after = (shown.board[..., walker_planes(spec)] > 0 for shown in (previous, frame))
    left = before.any(axis=(0, 1)) & ~after.any(axis=(0, 1))
    remained = (before & after).any(axis=(0, 1))
    stood = before & (left | remained) & (frame.rewards != 0)
    acted = np.ones_like(left) if spec.stay is None else frame.actions != spec.stay
    reaching = {"on": stood, "entered": after, "beside": _beside(before) & acted & (frame.rewards != 0)}

    caught = []
    for index, plane in enumerate(spec.planes):
        if plane.kind != "set":
            continue
        was_there, is_there = previous.board[..., index] > 0, frame.board[..., index] > 0
        near = reaching[plane.reached]
        taken = was_there & near.any(axis=-1) & ~is_there
        if plane.reached == "on":
            taken |= was_there & (stood & left).any(axis=-1)
        for row, column in np.argwhere(taken).tolist():
            here = near[row, column]
            hunters = here & acted if (here & acted).any() else here
            seats = tuple(np.flatnonzero(hunters).tolist())
            caught.append(Catch(plane.name, row, column, seats, tuple(frame.rewards[list(seats)].tolist())))
    return caught


def _beside(cells: np.ndarray) -> np.ndarray:
    """bool [height, width, agents]: the cells around those that are on."""
    around = np.pad(cells, ((1, 1), (1, 1), (0, 0)))
    return around[:-2, 1:-1] | around[2:, 1:-1] | around[1:-1, :-2] | around[1:-1, 2:]


def players_by_cell(spec: GameSpec, frame: Frame) -> dict[tuple[int, int], list[int]]:
    """The seats on each cell that has any, in seat order."""
    seats_at: dict[tuple[int, int], list[int]] = {}
    for row, column, seat in np.argwhere(frame.board[..., walker_planes(spec)]).tolist():
        seats_at.setdefault((row, column), []).append(seat)
    return seats_at


def walker_planes(spec: GameSpec) -> list[int]:
    return [index for index, plane in enumerate(spec.planes) if plane.kind == "walker"]


def wall_cells(spec: GameSpec, frame: Frame) -> np.ndarray:
    """bool [height, width]"""
    fixed = [index for index, plane in enumerate(spec.planes) if plane.kind == "fixed"]
    return frame.board[..., fixed].max(axis=-1, initial=0) > 0


def has_left(spec: GameSpec, frame: Frame) -> np.ndarray:
    """bool [agents]: seats that have terminated and are no longer on the board. Without a board, no seat leaves."""
    return frame.terminated & off_board(spec, frame)


def traits(spec: GameSpec, frame: Frame, seat: int) -> str:
    """What the board shows of a player besides its place, in words, as in "level 2" or "away 3"; empty if nothing."""
    words = []
    for index, plane in enumerate(spec.planes):
        cells = frame.board[..., index] > 0
        if plane.kind == "category" and np.any(cells & (frame.board[..., seat] > 0)):
            words.append(plane.name.replace("_", " "))
        if plane.kind == "counter" and index % spec.num_agents == seat and cells.any():
            words.append(f"{plane.name.rpartition('_')[0]} {cells.sum()}")
    return ", ".join(words)


def off_board(spec: GameSpec, frame: Frame) -> np.ndarray:
    """bool [agents]: seats without a place on the board, for good or for a while."""
    walkers = walker_planes(spec)
    present = np.any(frame.board[..., walkers] > 0, axis=(0, 1)) if walkers else np.ones(spec.num_agents, bool)
    return np.asarray(~present)


def action_text(spec: GameSpec, frame: Frame, seat: int) -> str:
    """The last action of a seat; "has left" after it has left the game; a dash at the start."""
    action = int(frame.actions[seat])
    if action != NO_ACTION:
        return spec.action_names[action]
    return "has left" if has_left(spec, frame)[seat] else "-"


def number_text(number: float) -> str:
    """The number with one decimal, or with two if one decimal is not exact."""
    return f"{number:.1f}" if abs(number - round(number, 1)) < 1e-4 else f"{number:.2f}"


def reward_text(number: float) -> str:
    return ("+" if number >= 0 else "") + number_text(number)


def title_text(spec: GameSpec, frame: Frame) -> str:
    over = ", over" if frame.terminated.all() else ""
    return f"{spec.name.replace('_', ' ')}, step {frame.time} of {spec.horizon}{over}"


def catch_text(catch: Catch) -> str:
    """For example: player_1 and player_3 caught a stag, +5.0 each."""
    players = " and ".join(filter(None, [", ".join(map(player_name, catch.seats[:-1])), player_name(catch.seats[-1])]))
    symbol = SYMBOLS.get(catch.plane)
    event = (
        f"{symbol.verb} {'an' if symbol.noun[0] in 'aeiou' else 'a'} {symbol.noun}"
        if symbol
        else f"took from {catch.plane}"
    )
    gained = catch_reward_text(catch)
    return f"{players} {event}, {gained}{' each' if len(catch.seats) > 1 and '/' not in gained else ''}"


def catch_reward_text(catch: Catch) -> str:
    """The reward of each hunter; more than one number if they differ."""
    return " / ".join(dict.fromkeys(reward_text(reward) for reward in sorted(catch.rewards, reverse=True)))


def check_names(spec: GameSpec, names: Sequence[str] | None) -> Sequence[str] | None:
    if names is not None and len(names) != spec.num_agents:
        raise ValueError(f"{len(names)} names for {spec.num_agents} seats; give one name per seat, or no names")
    return names


def terminal(
    spec: GameSpec, frame: Frame, previous: Frame | None = None, names: Sequence[str] | None = None
) -> RenderableType:
    """The board and a table of the seats, in at most 80 columns."""
    check_names(spec, names)
    title = Text(title_text(spec, frame), style="bold")
    if not spec.planes:
        return Group(title, _seat_tables(spec, frame, names), *map(Text, frame.notes))

    caught = catches(spec, previous, frame)
    cells = _board_text(spec, frame, caught)
    board = Panel(cells, box=box.ROUNDED, padding=0, expand=False, border_style="bright_black")
    room = TEXT_COLUMNS - (spec.width * _cell_columns(spec) + 3)
    body = RichTable.grid(padding=(0, 1))
    fits = room >= sum(_table_columns(spec)) + (POLICY_COLUMNS if names else 0)
    if fits and spec.num_agents <= MANY_SEATS:
        body.add_row(board, _seat_table(spec, frame, names, room, range(spec.num_agents)))
    else:
        body.add_row(board)
        body.add_row(_seat_tables(spec, frame, names))
    news = [Text(catch_text(catch), style="bold yellow") for catch in caught]
    return Group(title, body, _legend(spec, frame), *map(Text, frame.notes), *news)


def _table_columns(spec: GameSpec) -> tuple[int, int, int]:
    """The widths of the columns seat, last action and return, with a blank on either side."""
    trait = max((2 + len(plane.name) for plane in spec.planes if plane.kind in ("category", "counter")), default=0)
    return 6 if spec.num_agents < 10 else 9, 2 + trait + max(len("last action"), *map(len, spec.action_names)), 9


def _seat_tables(spec: GameSpec, frame: Frame, names: Sequence[str] | None) -> Any:
    """The table of all seats below the board; of many seats in two columns, if the policies fit in."""
    seats, half = range(spec.num_agents), TEXT_COLUMNS // 2 - 1
    if len(seats) <= MANY_SEATS or half < sum(_table_columns(spec)) + (FEW_LETTERS + 2 if names else 0):
        return _seat_table(spec, frame, names, TEXT_COLUMNS, seats)
    body, middle = RichTable.grid(padding=(0, 1)), -(-len(seats) // 2)
    body.add_row(*(_seat_table(spec, frame, names, half, part) for part in (seats[:middle], seats[middle:])))
    return body


def _seat_table(spec: GameSpec, frame: Frame, names: Sequence[str] | None, room: int, seats: Sequence[int]) -> Any:
    seat_columns, action_columns, return_columns = _table_columns(spec)
    table = RichTable(box=None, padding=(0, 1), header_style="bright_black")
    table.add_column("seat", min_width=seat_columns - 2)
    if names is not None:
        most = room - seat_columns - action_columns - return_columns - 2
        table.add_column("policy", overflow="ellipsis", no_wrap=True, max_width=most)
    table.add_column("last action", min_width=action_columns - 2)
    table.add_column("return", justify="right", min_width=return_columns - 2)
    left = off_board(spec, frame)
    for seat in seats:
        chip = Text.assemble((f" {_player_letter(seat)} ", _player_style(seat, faded=bool(left[seat]))))
        chip.append("" if seat < 9 else f" {seat + 1}")
        policy = [] if names is None else [names[seat]]
        doing = ", ".join(filter(None, [action_text(spec, frame, seat), traits(spec, frame, seat)]))
        row = [*policy, doing, number_text(float(frame.returns[seat]))]
        table.add_row(chip, *(Text(entry, style="bright_black" if left[seat] else "") for entry in row))
    return table


def _board_text(spec: GameSpec, frame: Frame, caught: list[Catch]) -> Text:
    """The board as text. A row has as many lines as its fullest cell needs, so that every player shows."""
    columns = _cell_columns(spec)
    per_line = max(1, columns - 1)
    walls = wall_cells(spec, frame)
    contents = _contents(spec, frame, caught)
    lines = []
    for row in range(spec.height):
        cells = [contents.get((row, column), []) for column in range(spec.width)]
        for line_index in range(max(1, *(-(-len(cell) // per_line) for cell in cells))):
            line = Text()
            for column, cell in enumerate(cells):
                shown = cell[line_index * per_line : (line_index + 1) * per_line]
                if walls[row, column]:
                    line.append("#" * columns, style=WALL_STYLE)
                    continue
                if not cell and line_index == 0:
                    shown = [(".", Style(dim=True))]
                line.append(" " * (columns - per_line))
                for letter, style in shown:
                    line.append(letter, style=style)
                line.append(" " * (per_line - len(shown)))
            lines.append(line)
    return Text("\n").join(lines)


def _contents(spec: GameSpec, frame: Frame, caught: list[Catch]) -> dict[tuple[int, int], list[tuple[str, Style]]]:
    """The coloured letters on each cell: its entities, its players, and the players that have just left from it."""
    contents: dict[tuple[int, int], list[tuple[str, Style]]] = {}
    for index, plane in enumerate(spec.planes):
        if plane.kind == "set":
            symbol = _symbol(plane.name)
            for row, column in np.argwhere(frame.board[..., index]).tolist():
                contents.setdefault((row, column), []).append((symbol.letter, symbol.style))
    present = players_by_cell(spec, frame)
    for cell, seats in present.items():
        contents.setdefault(cell, []).extend((_player_letter(seat), _player_style(seat)) for seat in seats)
    for catch in caught:
        cell = (catch.row, catch.column)
        leavers = [seat for seat in catch.seats if seat not in present.get(cell, [])]
        letters = contents.setdefault(cell, [])
        letters.append(("!", CATCH_STYLE))
        letters.extend((_player_letter(seat), _player_style(seat, faded=True)) for seat in leavers)
    return contents


def _legend(spec: GameSpec, frame: Frame) -> Text:
    legend = Text()
    for plane in spec.planes:
        if plane.kind == "set":
            symbol = _symbol(plane.name)
            legend.append(symbol.letter, style=symbol.style)
            legend.append(f" {symbol.noun}  ", style="bright_black")
    if wall_cells(spec, frame).any():
        legend.append("#", style=WALL_STYLE)
        legend.append(" wall  ", style="bright_black")
    legend.append("!", style=CATCH_STYLE)
    legend.append(" catch", style="bright_black")
    return legend


def _symbol(plane_name: str) -> Symbol:
    return SYMBOLS.get(plane_name, Symbol("o", Style.parse("bold white on #6b5b95"), plane_name, "took"))


def _cell_columns(spec: GameSpec) -> int:
    return max(1, min(4, (TEXT_COLUMNS - 2) // spec.width))


def _player_letter(seat: int) -> str:
    return PLAYER_LETTERS[seat % len(PLAYER_LETTERS)]


def _player_style(seat: int, faded: bool = False) -> Style:
    colour = player_colour(seat)
    return Style(color=colour, underline=True) if faded else Style(color="white", bgcolor=colour, bold=True)
