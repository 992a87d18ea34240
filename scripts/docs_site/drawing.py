"""Draw docs/pictures/architecture.svg, the data flow of one update: `python scripts/pictures.py architecture`."""

from pathlib import Path

WIDTH, HEIGHT = 880, 520
INK, LINE = "#22303c", "#5b6b79"
FILLS = {"real": "#dcebfb", "model": "#fdeccd", "learn": "#dff2e1", "read": "#eeeaf6"}
BOXES = {
    "game": (20, 60, 150, 64, "real", ("game", "games/")),
    "player": (20, 210, 150, 64, "real", ("players of all seats", "agents/player.py")),
    "rollout": (250, 60, 160, 64, "real", ("real rollout", "learning/rollout.py")),
    "replay": (250, 360, 160, 64, "real", ("replay buffer", "learning/replay.py")),
    "others": (480, 60, 170, 64, "model", ("opponent models", "models/others.py, goals.py")),
    "world": (480, 360, 170, 64, "model", ("world", "models/world.py")),
    "imagination": (480, 210, 170, 64, "model", ("imagined rollout", "learning/imagination.py")),
    "ppo": (250, 210, 160, 64, "learn", ("policy and critic", "learning/ppo.py")),
    "folder": (700, 210, 160, 64, "read", ("run folder", "runs/")),
    "readers": (700, 360, 160, 64, "read", ("evaluation, report,", "doctor")),
}
ARROWS = (
    ((170, 92), (250, 92), "views, rewards", (210, 84)),
    ((95, 210), (95, 124), "actions", (124, 170)),
    ((330, 124), (330, 210), "samples", (362, 170)),
    ((410, 92), (480, 92), "actions", (445, 84)),
    ((565, 124), (565, 210), "goals, actions", (612, 170)),
    ((410, 392), (480, 392), "transitions", (445, 384)),
    ((565, 360), (565, 274), "outcomes", (598, 322)),
    ((480, 242), (410, 242), "weighted", (445, 234)),
    ((250, 242), (170, 242), "parameters", (203, 234)),
    ((664, 242), (700, 242), "", (0, 0)),
    ((780, 274), (780, 360), "", (0, 0)),
)
BENT = "M 275 124 L 239 170 L 239 380 L 250 392"
"""The way from the rollout to the replay buffer, around the policy."""


def text(x: float, y: float, words: str, size: int, color: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}" text-anchor="middle">{words}</text>'


def rectangle(x: float, y: float, width: float, height: float, kind: str) -> str:
    place = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="{min(8, width / 4)}"'
    return f'<rect {place} fill="{FILLS[kind]}" stroke="{LINE}"/>'


def drawing() -> str:
    """The SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" role="img">',
        "<title>Data flow of one update</title>",
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M 0 0 L 8 4 L 0 8 z" fill="{LINE}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text(20, 30, "One update of one seed", 16, INK).replace('"middle"', '"start"'),
        f'<rect x="10" y="44" width="654" height="396" rx="10" fill="none" stroke="{LINE}" stroke-dasharray="4 4"/>',
        text(780, 196, "metrics, checkpoint", 11, LINE),
        f'<path d="{BENT}" fill="none" stroke="{LINE}" stroke-width="1.5" marker-end="url(#tip)"/>',
    ]
    for (x1, y1), (x2, y2), words, (x, y) in ARROWS:
        parts.append(f'<path d="M {x1} {y1} L {x2} {y2}" stroke="{LINE}" stroke-width="1.5" marker-end="url(#tip)"/>')
        parts += [text(x, y, words, 11, LINE)] if words else []
    for x, y, width, height, kind, (title, below) in BOXES.values():
        parts.append(rectangle(x, y, width, height, kind))
        parts.append(text(x + width / 2, y + 28, title, 14, INK))
        parts.append(text(x + width / 2, y + 48, below, 14 if below == "doctor" else 11, INK))
    legend = (("real", "real play"), ("model", "learned models"), ("learn", "learns to act"), ("read", "what you read"))
    for index, (kind, words) in enumerate(legend):
        parts.append(rectangle(20 + 180 * index, 468, 18, 18, kind))
        parts.append(text(48 + 180 * index, 482, words, 13, INK).replace('"middle"', '"start"'))
    return "\n".join([*parts, "</svg>"]) + "\n"


def save(path: Path) -> None:
    path.write_text(drawing(), encoding="utf-8")
