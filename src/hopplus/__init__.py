"""Agents for mixed-motive games: they infer goals, predict co-players, learn a world model, and can be audited."""

from hopplus.core.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
