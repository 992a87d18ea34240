"""How well agents play, how well their models predict, and whether a difference is more than noise."""

from hopplus.core.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
