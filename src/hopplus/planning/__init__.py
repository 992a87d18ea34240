"""Planning before acting: beliefs, one-step lookahead, search. It imports no models."""

from hopplus.core.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
