"""The policy and the critic of one seat: an ego view goes in, action probabilities and a value come out."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.core.numerics import MASKED
from hopplus.games.fields import Field, Observation, features, num_features
from hopplus.games.game import GameSpec
from hopplus.models.config import ActorCriticConfig
from hopplus.models.networks import GRU, MLP, Heads, init_gru, init_heads, init_mlp
from hopplus.models.others import walks
from hopplus.models.pointer import Pointer, init_pointer


class PolicyNetwork(eqx.Module):
    """A policy and a critic; all leaves are parameters. Subclass it for a network of your own."""

    @abstractmethod
    def __call__(
        self, observation: Observation, legal: Bool[Array, " actions"], goals: Float32[Array, "others goal"]
    ) -> tuple[Float32[Array, " actions"], Float32[Array, ""]]:
        """The log-probability of each action, and the value of the state, given the co-players' inferred goals."""

    def start(self) -> Float32[Array, " hidden"] | None:
        """The recurrent state at the start of an episode; None for a network without memory."""
        return None

    def step(
        self,
        hidden: Float32[Array, " hidden"] | None,
        observation: Observation,
        legal: Bool[Array, " actions"],
        goals: Float32[Array, "others goal"],
    ) -> tuple[Float32[Array, " actions"], Float32[Array, ""], Float32[Array, " hidden"] | None]:
        """Log-probabilities, value, and the next recurrent state. A network with memory overrides it and `start`."""
        return *self(observation, legal, goals), hidden

    @property
    def reads_all_views(self) -> bool:
        """Whether it gets the views of all seats in training, in the place of goals."""
        return False

    def auxiliary_loss(
        self,
        hidden: Float32[Array, " hidden"],
        views: Float32[Array, "others features"],
        actions: Int32[Array, " others"],
        present: Bool[Array, " others"],
    ) -> Float32[Array, ""] | None:
        """What a network with memory learns besides PPO, from the others' views and actions in one step."""
        return None

    def values_under(
        self,
        observation: Observation,
        goals: Float32[Array, "others goal"],
        instead: Float32[Array, "others options goal"],
    ) -> Float32[Array, "others options"]:
        """The value of one state with one co-player's goal replaced."""
        legal = jnp.ones(self.num_actions, bool)

        def one(other: Int32[Array, ""], goal: Float32[Array, " goal"]) -> Float32[Array, ""]:
            return self(observation, legal, goals.at[other].set(goal))[1]

        over_options = jax.vmap(one, in_axes=(None, 0))
        return jax.vmap(over_options)(jnp.arange(len(instead)), instead)

    @property
    def num_actions(self) -> int:
        """The number of actions; only the default `values_under` needs it."""
        raise NotImplementedError(f"write `num_actions` in {type(self).__name__} to use it with learned goals")


class ActorCritic(PolicyNetwork):
    """One trunk with two heads."""

    trunk: MLP
    heads: Heads
    """A logit for each action, then the value."""
    fields: tuple[Field, ...] = eqx.field(static=True)
    """What it reads of an observation."""
    memory: GRU | None = None
    """Between trunk and heads."""
    pointer: Pointer | None = None
    """Beside the heads: where to walk."""

    def __call__(self, observation, legal, goals):
        return self.step(self.start(), observation, legal, goals)[:2]

    def start(self):
        return None if self.memory is None else jnp.zeros(self.memory.size, jnp.float32)

    def step(self, hidden, observation, legal, goals):
        inputs = jnp.concatenate([features(self.fields, observation), goals.reshape(-1)])
        inputs = self.trunk(jnp.pad(inputs, (0, self.trunk.num_inputs - len(inputs))))
        if self.memory is not None:
            assert hidden is not None
            inputs = hidden = self.memory(hidden, inputs)
        outputs = self.heads(inputs)
        log_probabilities = jax.nn.log_softmax(jnp.where(legal, outputs[:-1], MASKED))
        if self.pointer is not None:
            log_probabilities = self.pointer(inputs, observation, legal, log_probabilities)
        return log_probabilities, outputs[-1], hidden

    def values_under(self, observation, goals, instead):
        """What the answers share is computed once."""
        first, *rest = self.trunk.layers
        seen = features(self.fields, observation)
        of_goals = first.weight[len(seen) :].reshape(*goals.shape, -1)
        usual = seen @ first.weight[: len(seen)] + first.bias + jnp.einsum("jg,jgh->h", goals, of_goals)
        hidden = jnp.tanh(usual + jnp.einsum("jog,jgh->joh", instead - goals[:, None], of_goals))
        for layer in rest:
            hidden = jnp.tanh(hidden @ layer.weight + layer.bias)
        return hidden @ self.heads.weight[-1] + self.heads.bias[-1]


def init(
    config: ActorCriticConfig,
    spec: GameSpec,
    goal_size: int = 0,
    num_goals: int | None = None,
    *,
    key: Key[Array, ""],
) -> ActorCritic:
    """A policy that starts almost uniform, and a critic that starts near zero.

    Besides its view it reads `num_goals` goals of `goal_size` numbers each, by default one of each co-player; one more
    is its own. Where it is given fewer, it reads zeros.
    """
    has_memory = config.memory == "gru"
    trunk_key, heads_key, *memory_key = jax.random.split(key, 3 if has_memory else 2)
    width = config.memory_size if has_memory else config.hidden[-1]
    gains = [0.01] * spec.num_actions + [1.0]
    num_goals = spec.num_agents - 1 if num_goals is None else num_goals
    num_inputs = num_features(spec.observation) + num_goals * goal_size
    pointer = None
    if config.destinations > 0 and walks(spec):
        pointer = init_pointer(width, config.destinations, spec, key=jax.random.fold_in(key, 1))
    return ActorCritic(
        pointer=pointer,
        trunk=init_mlp(num_inputs, config.hidden, key=trunk_key),
        heads=init_heads(width, gains, key=heads_key),
        fields=spec.observation,
        memory=init_gru(config.hidden[-1], width, key=memory_key[0]) if has_memory else None,
    )


def apply(
    params: PolicyNetwork,
    observation: Observation,
    legal: Bool[Array, " actions"],
    goals: Float32[Array, "others goal"],
) -> tuple[Float32[Array, " actions"], Float32[Array, ""]]:
    """The log-probability of each action, and the value of the state, given the co-players' inferred goals."""
    return params(observation, legal, goals)
