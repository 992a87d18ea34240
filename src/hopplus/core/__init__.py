"""Helpers for every other folder: checks of settings, small numerics, random streams, devices."""

from hopplus.core.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
