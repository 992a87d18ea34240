"""Games as pure functions: the rules, scripted players, drawing, checks, and bridges to other libraries."""

from hopplus.core.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
