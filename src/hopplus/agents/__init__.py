"""Agents that act, without gradients: opponent models, beliefs about goals, the trained player, the planner."""

from hopplus.core.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
