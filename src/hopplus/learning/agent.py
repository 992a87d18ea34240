"""How a seat's policy starts, acts and learns: the built-in agents, and the base class of your own.

An agent's policy is a `PolicyNetwork`: a module whose arrays are its parameters and whose call gives the
log-probability of each action and a value. Around it the settings decide what else a seat has: opponent models, a
world, imagination, planning.
"""

import equinox as eqx
from jaxtyping import Array, Float32, Key

from hopplus.core.numerics import Metrics
from hopplus.games.game import GameSpec
from hopplus.learning import ppo, recurrent
from hopplus.learning.config import LearnerConfig
from hopplus.learning.optim import Trained, init_trained
from hopplus.learning.ppo import Batch
from hopplus.models import actor_critic
from hopplus.models.central_critic import init_central_critic
from hopplus.models.liam import init_liam


class Agent(eqx.Module):
    """The policy of the built-in agents: an actor-critic that learns by PPO. Override what you change.

    It has no arrays: it is part of the compiled program.
    """

    def settings(self) -> LearnerConfig:
        """The learner settings that a run of this agent starts from."""
        return LearnerConfig()

    def init(self, config: LearnerConfig, spec: GameSpec, goal_size: int, *, key: Key[Array, ""]) -> Trained:
        """The policy of one learner before its first update, with its optimiser."""
        if config.network.critic == "central":
            return init_trained(ppo.optimizer(config.ppo), init_central_critic(config.network, spec, key=key))
        if config.network.reconstruct:
            return init_trained(ppo.optimizer(config.ppo), init_liam(config.network, spec, key=key))
        num_goals = spec.num_agents if config.utilities.is_used else spec.num_agents - 1
        params = actor_critic.init(config.network, spec, goal_size, num_goals, key=key)
        return init_trained(ppo.optimizer(config.ppo), params)

    def update(
        self,
        config: LearnerConfig,
        policy: Trained,
        batch: Batch,
        *,
        value_scale: float,
        remaining: Float32[Array, ""],
        key: Key[Array, ""],
    ) -> tuple[Trained, Metrics]:
        """The policy after one update, and its metrics by name.

        `batch` has the samples of one learner, [seats it plays, samples]; samples that are not `active` are padding.
        `remaining` is the share of the schedule that is left.
        """
        shared = {"value_scale": value_scale, "remaining": remaining, "key": key}
        if batch.recurrent is None:
            return ppo.update(config.ppo, policy, batch, **shared)
        return recurrent.update(config.ppo, config.rollout_steps, policy, batch, **shared)
