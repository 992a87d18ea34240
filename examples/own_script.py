"""A scripted co-player of your own: it hunts stags as long as it sees a partner, and hares otherwise.

    hopplus play stag-hunt-4x4 --seats own_script:Careful,nearest_stag,nearest_hare,random
    hopplus train ppo --co-players "own_script:Careful,own_script:Careful(3),random" --steps 200000 --out runs/careful
    hopplus evaluate runs/careful --co-players own_script:Careful,random,random
    hopplus pretrain --data.types own_script:Careful nearest_hare --out models/careful

In Python, players are objects: `hopplus.RunConfig(co_players=[Careful(spec), "random"])`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.games import GameSpec, Policy, StagHunt, lineup, make
from hopplus.games.coplayers import Nearest


class Careful(Policy):
    """A player uses only its own seat's view. It returns the probability of every action, and its next state."""

    for_stags: Nearest
    for_hares: Nearest
    partners: int = eqx.field(static=True)

    def __init__(self, spec: GameSpec, partners: int = 1):
        """A factory gets the game's spec, then the values in brackets: `own_script:Careful(3)`."""

        def nearest(plane: str, action: str) -> Nearest:
            assert spec.stay is not None
            targets = ((spec.plane_index(plane), spec.action_names.index(action)),)
            return Nearest(targets, spec.stay, spec.straight_paths, spec.plane_index("obstacles"))

        self.for_stags, self.for_hares = nearest("stags", "hunt stag"), nearest("hares", "hunt hare")
        self.partners = partners

    def init(self):
        return ()

    def __call__(self, observation, legal, state):
        players = observation["planes"][..., 1 : observation["last_actions"].shape[0]]
        num_seen = jnp.sum(jnp.any(players > 0, axis=(0, 1)))
        stags, _ = self.for_stags(observation, legal, ())
        hares, _ = self.for_hares(observation, legal, ())
        return jnp.where(num_seen >= self.partners, stags, hares), state


if __name__ == "__main__":
    game = make("stag-hunt-4x4")
    assert isinstance(game, StagHunt)
    players = lineup([Careful(game.spec), "nearest_stag,nearest_hare,random"], game)  # checked when it is made
    state = game.reset(key=jax.random.key(0))
    probabilities, _ = players(game.observe(state), game.legal(state), players.init())
    print(dict(zip(game.spec.action_names, probabilities[0].tolist(), strict=True)))
