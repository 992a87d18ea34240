"""A game as a `MultiAgentEnv` of JaxMARL (https://jaxmarl.foersterlab.com).

The observation of a seat is one vector, so that JaxMARL's baselines run unchanged: all fields of its view, categories
one-hot. On a board these are the planes, the share of the horizon that has passed, and each player's last action, the
viewer first (zeros if there was none). A seat that has left gets no reward, and stays done until the episode is over
for all.
"""

from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, Num, PRNGKeyArray, PyTree

from hopplus.games.fields import features, is_within_unit, num_features
from hopplus.games.game import Game

try:
    from jaxmarl.environments.multi_agent_env import MultiAgentEnv
    from jaxmarl.environments.spaces import Box, Discrete
except ImportError as error:
    raise ImportError('the JaxMARL bridge needs an extra; run: pip install "hopplus[jaxmarl]"') from error

ALL = "__all__"


class JaxMARLGame(MultiAgentEnv):
    """A game with its own state. The inherited `step` resets after an episode; `step_env` does not."""

    def __init__(self, game: Game):
        spec = game.spec
        super().__init__(spec.num_agents)
        self.game = game
        self.agents = [f"player_{seat + 1}" for seat in range(spec.num_agents)]
        size = num_features(spec.observation)
        low, high = (0.0, 1.0) if is_within_unit(spec.observation) else (-jnp.inf, jnp.inf)
        self.observation_spaces = {agent: Box(low, high, (size,), jnp.float32) for agent in self.agents}
        self.action_spaces = {agent: Discrete(spec.num_actions) for agent in self.agents}

    @property
    def name(self) -> str:
        return self.game.spec.name

    @property
    def agent_classes(self) -> dict[str, list[str]]:
        return {"player": self.agents}

    @partial(jax.jit, static_argnums=0)
    def reset(self, key: PRNGKeyArray) -> tuple[dict[str, Float32[Array, " features"]], PyTree[Array]]:
        state = self.game.reset(key=_typed(key))
        return self.get_obs(state), state

    def step_env(
        self, key: PRNGKeyArray, state: PyTree[Array], actions: Mapping[str, Num[Array, "..."]]
    ) -> tuple[
        dict[str, Float32[Array, " features"]],
        PyTree[Array],
        dict[str, Float32[Array, ""]],
        dict[str, Bool[Array, ""]],
        dict[str, Array],
    ]:
        state, rewards = self.game.step(state, self._joint_action(actions), key=_typed(key))
        terminated = self.game.terminated(state)
        dones = {**self._by_seat(terminated), ALL: jnp.all(terminated)}
        return self.get_obs(state), state, self._by_seat(rewards), dones, {}

    def get_obs(self, state: PyTree[Array]) -> dict[str, Float32[Array, " features"]]:
        seen = self.game.observe(state)
        return self._by_seat(jax.vmap(partial(features, self.game.spec.observation))(seen))

    @partial(jax.jit, static_argnums=0)
    def get_avail_actions(self, state: PyTree[Array]) -> dict[str, Bool[Array, " actions"]]:
        return self._by_seat(self.game.legal(state))

    def _joint_action(self, actions: Mapping[str, Num[Array, "..."]]) -> Int32[Array, " agents"]:
        return jnp.stack([jnp.asarray(actions[agent], jnp.int32).reshape(()) for agent in self.agents])

    def _by_seat(self, stacked: Array) -> dict[str, Array]:
        return {agent: stacked[seat] for seat, agent in enumerate(self.agents)}


def _typed(key: PRNGKeyArray) -> Key[Array, ""]:
    """The key as a typed key, which games need; JAX also has untyped keys."""
    return key if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(key)
