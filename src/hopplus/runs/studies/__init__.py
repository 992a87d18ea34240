"""Studies: variants x trials, run on Ray, summarised with intervals."""

from hopplus.core.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
