"""Networks that an agent learns: each model is a file with `init`, `apply` and, where it has one, `loss`."""

from hopplus.core.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
