"""The PPO settings that every program in `training.py` is run with, so that all of them do the same work."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Four independent actor-critics in self-play; the defaults are those of the reference figures."""

    num_envs: int = 256
    num_steps: int = 36
    """Of each environment between two updates."""
    num_epochs: int = 4
    num_minibatches: int = 8
    """Of one epoch; a minibatch holds whole joint steps, that is, one sample for every seat."""
    hidden_size: int = 128
    """Of each of the two tanh layers that policy and value share."""
    learning_rate: float = 5e-4
    adam_epsilon: float = 1e-5
    max_gradient_norm: float = 0.5
    """Of one seat's network."""
    discount: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    """Of the probability ratio, and of how far a value may move from the one in the rollout."""
    entropy_coefficient: float = 0.06
    value_coefficient: float = 0.5

    @property
    def env_steps_per_update(self) -> int:
        return self.num_envs * self.num_steps

    @property
    def minibatch_size(self) -> int:
        return self.env_steps_per_update // self.num_minibatches
