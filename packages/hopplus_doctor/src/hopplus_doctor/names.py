"""Names of seats and of their colours, and the role that a name gives."""

import colorsys
import re
from collections.abc import Hashable

PLAYER_COLOURS = (
    "#1f6feb",
    "#e8590c",
    "#0b8f7a",
    "#d6336c",
    "#7c3aed",
    "#3f9b2b",
    "#b91c1c",
    "#0ea5e9",
    "#b58900",
    "#1e3a8a",
    "#ec6fb5",
    "#475569",
)


def player_name(seat: int) -> str:
    return f"player_{seat + 1}"


def player_colour(seat: int) -> str:
    """A distinct colour for every seat: twelve chosen ones, then well-spaced hues."""
    if seat < len(PLAYER_COLOURS):
        return PLAYER_COLOURS[seat]
    red, green, blue = colorsys.hsv_to_rgb(seat * 0.618034 % 1.0, 0.75, 0.65)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def stem(agent: Hashable) -> str:
    """An agent's role by its name: `adversary_0` has the role `adversary`."""
    return re.sub(r"[\W_]*\d+$", "", str(agent)) or "agent"
