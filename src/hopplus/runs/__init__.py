"""Runs: train an agent into a folder, resume it, load its policies, evaluate them."""

from hopplus.core.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
