"""The settings of evaluation. No JAX here."""

from typing import Literal

KINDS = ("nearest_stag", "nearest_hare", "random")
"""The default kinds of co-players, and the kinds that the player by belief considers."""
KINDS_TEXT = ",".join(KINDS)
Known = Literal["nothing", "goals", "others"]
"""What a planner knows of its co-players without inferring it."""
