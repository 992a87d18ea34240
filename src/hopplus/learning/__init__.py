"""Learning from play: rollouts, returns, PPO, and the training step that every agent shares."""

from hopplus.core.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
