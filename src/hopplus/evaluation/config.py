"""The settings of evaluation. No JAX here."""

from typing import Literal

Known = Literal["nothing", "goals", "others"]
"""What a planner knows of its co-players without inferring it."""
