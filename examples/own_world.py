"""A world of your own: a network that sees the whole board at once and predicts what the joint action does.

    hopplus train hop_plus --world.kind own_world:make --game stag-hunt-4x4 --steps 4000 --out runs/world
    hopplus evaluate runs/world --world

A world is a module whose arrays are its parameters. It gives a `Prediction`: logits of where each player goes, of the
cells, of every seat's reward and of its end. Training, sampling, imagination and scoring are those of the built-in one.
"""

import jax
import jax.numpy as jnp

from hopplus.games import GameSpec
from hopplus.models.cells_prediction import Prediction, set_planes
from hopplus.models.networks import MLP, Heads, init_heads, init_mlp
from hopplus.models.world import GONE, STANDS, Situation, WorldModel

UNCHANGED = 3.0


class WholeBoard(WorldModel):
    """A plain network over all planes and actions. It starts by predicting that nothing changes."""

    trunk: MLP
    heads: Heads

    def __call__(self, spec: GameSpec, now: Situation) -> Prediction:
        did = jax.nn.one_hot(now.actions, spec.num_actions)
        inputs = [now.board.reshape(-1), did.reshape(-1), now.ended, (now.time + 1 >= spec.horizon)[None]]
        hidden = self.trunk(jnp.concatenate([jnp.asarray(part, jnp.float32) for part in inputs]))
        on = now.board[..., jnp.array(set_planes(spec))].astype(jnp.float32)
        walkers, rewards, ended, cells = jnp.split(self.heads(hidden), _ends(spec))
        walkers = walkers.reshape(spec.num_agents, GONE + 1).at[:, STANDS].add(UNCHANGED)
        return Prediction(
            walkers=walkers,
            sets=(2 * on - 1) * (UNCHANGED + cells.reshape(on.shape)),
            rewards=rewards.reshape(spec.num_agents, -1),
            ended=ended - UNCHANGED,
        )


def _ends(spec: GameSpec) -> list[int]:
    """Where the outputs for walkers, rewards and ends stop; the cells follow."""
    walkers = spec.num_agents * (GONE + 1)
    rewards = walkers + spec.num_agents * len(spec.reward_support)
    return [walkers, rewards, rewards + spec.num_agents]


def make(config, spec: GameSpec, *, key) -> WholeBoard:
    """The factory gets the settings (`--world.hidden` ...), the game's spec and a key."""
    trunk_key, heads_key = jax.random.split(key)
    num_inputs = spec.height * spec.width * len(spec.planes) + spec.num_agents * (spec.num_actions + 1) + 1
    num_outputs = _ends(spec)[-1] + spec.height * spec.width * len(set_planes(spec))
    trunk = init_mlp(num_inputs, (config.hidden, config.hidden), key=trunk_key)
    return WholeBoard(trunk, init_heads(config.hidden, [0.01] * num_outputs, key=heads_key))
