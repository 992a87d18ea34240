"""Adaptation without a gradient step: one frozen agent with every line-up of scripted co-players.

    normalised return with a line-up = (agent - uniform legal play) / (oracle - uniform legal play)

All are returns of the first seat, in consecutive episodes with the same co-players. A line-up is a multiset of kinds,
such as {nearest_stag, nearest_hare, random}. Players are chosen by numbers, so that all line-ups, seeds and players are
rows of one compiled program.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Float64, Int32, Key

from hopplus.core.extensions import is_own, thing_of
from hopplus.evaluation.config import Known
from hopplus.evaluation.known_co_players import GOALS, goals_of, inform
from hopplus.evaluation.series import play_rows
from hopplus.games.coplayers import KINDS, Lineup, Policy, PolicyState, scripts_for, usual_kinds
from hopplus.games.fields import Observation
from hopplus.games.game import Game, GameSpec, views_of_others
from hopplus.games.lineups import read_policies
from hopplus.planning import beliefs

LETTERS = {"nearest_hare": "H"}
"""The letter of a kind of co-players where it is not the first of its name."""
HUNTERS = (*KINDS["stags"], "random")
"""The kinds that the player by belief considers."""
STAG_HUNTER = HUNTERS.index("nearest_stag")
ENOUGH = 0.5
"""The player by belief hunts stags if a partner is at least this likely."""
SMALLEST_GAIN = 0.05
"""Below this gain of the oracle over uniform play, a normalised return is mostly noise."""


def all_lineups(spec: GameSpec, kinds: Sequence[str] | None = None) -> list[tuple[str, ...]]:
    """Every line-up of co-players of these kinds, or of the game's usual ones."""
    if spec.num_agents < 2:
        raise ValueError(f"{spec.name} has one player; adaptation is to co-players, so it needs two players or more")
    if len(spec.seats_by_role) > 1:
        raise ValueError(
            f"the players of {spec.name} have different roles; adaptation is measured where any can take any seat"
        )
    kinds = usual_kinds(spec) if kinds is None else kinds
    unknown = [kind for kind in kinds if not _is_script(kind, spec)]
    if unknown or len(set(kinds)) < len(kinds) or not kinds:
        known = ", ".join(scripts_for(spec))
        raise ValueError(f"--kinds is {','.join(kinds)}; give some of {known} or MODULE:FACTORY, each once")
    return list(combinations_with_replacement(kinds, spec.num_agents - 1))


def _is_script(kind: str, spec: GameSpec) -> bool:
    name = kind.partition("(")[0]
    return name in scripts_for(spec) or is_own(name) or thing_of(kind) is not None


def short_name(lineup: Sequence[str]) -> str:
    """A letter for each co-player, as in NHR; a small one for a script of your own."""
    return "".join(map(letter_of, lineup))


def letter_of(kind: str) -> str:
    """The letter of a kind of co-players: the first of its name, small for a script of your own."""
    own = is_own(kind.partition("(")[0]) or thing_of(kind) is not None
    return kind.rpartition(":")[2][0].lower() if own else LETTERS.get(kind, kind[0].upper())


def scripts(game: Game, kinds: Sequence[str] | None = None) -> tuple[Policy, ...]:
    """The players of these kinds, or of the game's usual ones, in their order."""
    return read_policies(usual_kinds(game.spec) if kinds is None else kinds, game)


class OneOf(Policy):
    """One of several players, chosen by its number. The number is data, so that one program serves all players.

    Only the chosen player is evaluated, unless the number is mapped over.
    """

    policies: tuple[Policy, ...]
    choice: Int32[Array, "*rows"]

    def init(self) -> PolicyState:
        return tuple(policy.init() for policy in self.policies)

    def next_episode(self, state: PolicyState) -> PolicyState:
        return tuple(policy.next_episode(own) for policy, own in zip(self.policies, state, strict=True))

    def __call__(self, observation, legal, policy_state):
        def ask(index, observation, legal, policy_state):
            probabilities, own_state = self.policies[index](observation, legal, policy_state[index])
            return probabilities.astype(jnp.float32), (*policy_state[:index], own_state, *policy_state[index + 1 :])

        each = [partial(ask, index) for index in range(len(self.policies))]
        return jax.lax.switch(self.choice, each, observation, legal, policy_state)


class KindBeliefs(eqx.Module):
    """The state of `ByBelief`: its beliefs about kinds, and what it predicted of each co-player in the last state."""

    belief: Float32[Array, "*batch others kinds"]
    predicted: Float32[Array, "*batch others kinds actions"]
    legal: Bool[Array, "*batch others actions"]


class ByBelief(Policy):
    """Hunts stags while a partner is likely, else hares: the best play with two scripts to choose from.

    It keeps a Bayes filter over the kinds of each co-player, with the true scripts as likelihoods and the smoothing of
    `planning.beliefs`. The filter starts uniform in every episode and uses only the player's own views.
    """

    game: Game
    kinds: tuple[Policy, ...]
    for_stags: Policy
    for_hares: Policy

    def init(self) -> KindBeliefs:
        others, actions = self.game.spec.num_agents - 1, self.game.spec.num_actions
        return KindBeliefs(
            belief=jnp.full((others, len(self.kinds)), 1 / len(self.kinds), jnp.float32),
            predicted=jnp.zeros((others, len(self.kinds), actions), jnp.float32),
            legal=jnp.zeros((others, actions), bool),
        )

    def __call__(self, observation, legal, policy_state):
        belief = jax.vmap(beliefs.update)(
            policy_state.belief, policy_state.predicted, policy_state.legal, observation["last_actions"][1:]
        )
        views = views_of_others(self.game.spec, observation)
        others_legal = jax.vmap(self.game.legal_in_view)(views)
        beliefs_now = KindBeliefs(belief, jax.vmap(self._predict)(views, others_legal), others_legal)
        present = jnp.any(views["planes"][..., 0] > 0, axis=(1, 2))
        hunting_stags, _ = self.for_stags(observation, legal, ())
        hunting_hares, _ = self.for_hares(observation, legal, ())
        wanted = partner_probability(belief[:, STAG_HUNTER], present) >= ENOUGH
        return jnp.where(wanted, hunting_stags, hunting_hares), beliefs_now

    def _predict(self, view: Observation, legal: Bool[Array, " actions"]) -> Float32[Array, "kinds actions"]:
        """The action distribution of a co-player of each kind. These kinds have no state."""
        return jnp.stack([kind(view, legal, kind.init())[0] for kind in self.kinds])


def partner_probability(hunts_stags: Float32[Array, " others"], present: Bool[Array, " others"]) -> Float32[Array, ""]:
    """The probability that at least one co-player is on the board and hunts stags."""
    return 1 - jnp.prod(jnp.where(present, 1 - hunts_stags, 1.0))


def by_belief(game: Game) -> ByBelief:
    """The yardstick "NS or NH by belief" for a stag hunt."""
    kinds = scripts(game, HUNTERS)
    return ByBelief(game, kinds, for_stags=kinds[0], for_hares=kinds[1])


def first_seat_returns(
    game: Game,
    players: Sequence[Policy],
    choices: Sequence[int],
    lineups: Sequence[tuple[str, ...]],
    num_series: int,
    length: int = 1,
    *,
    known: Known = "nothing",
    key: Key[Array, ""],
    on_row: Callable[[], None] | None = None,
) -> Float32[np.ndarray, "rows {num_series} {length}"]:
    """The returns of the first seat. Row i: player number choices[i] with lineups[i] in the seats after it.

    Every array of a player has a leading axis of rows. `known` gives a planner the true goals of its co-players, or
    the co-players themselves.
    """
    names = sorted({name for lineup in lineups for name in lineup})
    kinds = jax.tree.map(lambda leaf: _for_rows(leaf, len(lineups)), scripts(game, names))
    numbers = np.array([[names.index(name) for name in lineup] for lineup in lineups], np.int32)
    others = [OneOf(kinds, jnp.asarray(column)) for column in numbers.T]
    if known != "nothing":
        only_goals = known == "goals"
        has_goals = only_goals or {name for lineup in lineups for name in lineup} <= GOALS.keys()
        goals = jnp.asarray(np.stack([goals_of(game.spec, lineup) for lineup in lineups])) if has_goals else None
        players = [inform(player, goals, () if only_goals else tuple(others)) for player in players]
    first = OneOf(tuple(players), jnp.array(choices, jnp.int32))
    seats = Lineup((first, *others))
    return play_rows(game, seats, num_series, length, num_rows=len(lineups), key=key, on_row=on_row)


def _for_rows(leaf: Any, num_rows: int) -> Any:
    """An array of a trained co-player for every row; numbers of a script are no arrays, and stay."""
    return jnp.broadcast_to(leaf, (num_rows, *leaf.shape)) if eqx.is_array(leaf) else leaf


def agent_returns(
    game: Game,
    manners: Sequence[Sequence[Policy]],
    lineups: Sequence[tuple[str, ...]],
    episodes: int,
    length: int = 1,
    *,
    num_seeds: int,
    known: Known = "nothing",
    key: Key[Array, ""],
    on_row: Callable[[], None] | None = None,
) -> Float64[np.ndarray, "manners {num_seeds} lineups {length}"]:
    """A frozen agent's mean return in the first seat with every line-up, in each episode of a series.

    `manners` are its ways to act, such as sampled and greedy: for each, the policies of its learning seats, whose
    arrays have a leading axis of seeds. Each policy sits in the first seat for an equal share of a seed's episodes.
    """
    num_seats = len(manners[0])
    shape = (len(manners), len(lineups), num_seats, num_seeds)
    choices, lineup_indices, _, _ = (index.ravel().tolist() for index in np.indices(shape))
    copies = len(manners) * len(lineups)
    players = [jax.tree.map(lambda *leaves: jnp.concatenate([*leaves] * copies), *policies) for policies in manners]
    rows = [lineups[index] for index in lineup_indices]
    share = series_of_each(episodes, num_seats, length)
    returns = first_seat_returns(game, players, choices, rows, share, length, known=known, key=key, on_row=on_row)
    by_seat = returns.mean(axis=1, dtype=np.float64).reshape(*shape, length)
    return by_seat.mean(axis=2).swapaxes(1, 2)


def series_of_each(episodes: int, num_policies: int, length: int = 1) -> int:
    """How many series each of an agent's policies plays, so that together they play at least `episodes`."""
    return -(-episodes // (num_policies * length))


def normalised(
    agent: Float64[np.ndarray, "*seeds lineups"],
    uniform: Float64[np.ndarray, " lineups"],
    oracle: Float64[np.ndarray, " lineups"],
) -> Float64[np.ndarray, "*seeds lineups"]:
    """Returns scaled for each line-up: 0 is uniform legal play, 1 the oracle, above 1 better than the oracle.

    NaN where the oracle gains less than SMALLEST_GAIN over uniform play: the quotient would be mostly noise. The mean
    over line-ups leaves such a line-up out.
    """
    gain = np.where(oracle - uniform >= SMALLEST_GAIN, oracle - uniform, np.nan)
    return (agent - uniform) / gain
