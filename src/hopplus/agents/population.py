"""Co-players from a population of frozen policies: each is drawn anew for every episode (fictitious co-play).

After Strouse et al., 2021. All policies answer and one answer is taken: for small networks that is faster than to
gather the parameters of the one that plays.
"""

from dataclasses import replace

import equinox as eqx
import jax

from hopplus.agents.config import OpponentsConfig
from hopplus.agents.opponents import OpponentModels
from hopplus.agents.player import Player
from hopplus.games.chance import Chance, next_chance, no_chance
from hopplus.games.coplayers import Lineup, Policy, PolicyState
from hopplus.games.game import Game
from hopplus.models.actor_critic import PolicyNetwork


class Population(eqx.Module):
    """The parameters of frozen policies; leading axis: every checkpoint of every member."""

    params: PolicyNetwork
    opponents: OpponentModels


class DrawnState(eqx.Module):
    """Which policy plays in this episode, and the state of that policy."""

    chance: Chance
    own: PolicyState


class FromPopulation(Policy):
    """A co-player whose policy is drawn from the population at the start of every episode, each equally likely."""

    players: Player | None
    """Leading axis: the policies. None: nobody has filled them in yet."""
    num_policies: int = eqx.field(static=True)

    def init(self) -> PolicyState:
        return DrawnState(no_chance(), self._first().init())

    def next_episode(self, state: PolicyState) -> PolicyState:
        return DrawnState(next_chance(state.chance), self._first().init())

    def __call__(self, observation, legal, state):
        answers = jax.vmap(lambda player: player(observation, legal, state.own))(self._players())
        number = state.chance.below(self.num_policies)
        probabilities, own = jax.tree.map(lambda leaf: leaf[number], answers)
        return probabilities, replace(state, own=own)

    def _players(self) -> Player:
        assert self.players is not None, "the population is not filled in"
        return self.players

    def _first(self) -> Player:
        return jax.tree.map(lambda leaf: leaf[0], self._players())


def filled(lineup: Lineup, population: Population, game: Game, config: OpponentsConfig) -> Lineup:
    """The line-up whose co-players from a population have these policies."""
    players = Player(population.params, population.opponents, game, config)
    return Lineup(
        tuple(replace(one, players=players) if isinstance(one, FromPopulation) else one for one in lineup.policies)
    )
