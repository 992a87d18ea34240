"""The presets to test: two of one game are tested together in the heavy run only."""

import pytest

from hopplus.games.presets import PRESETS

SMALLER = ("coins-3x3", "harvest-8x8", "harvest-16x16-16", "harvest-16x16-64")
"""Presets of a game of which CI tests another one."""
EVERY_PRESET = [pytest.param(name, marks=pytest.mark.heavy) if name in SMALLER else name for name in PRESETS]
