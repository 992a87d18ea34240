"""What leaves the machine: exported agents, and pages on which people play them."""

from hopplus.core.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
