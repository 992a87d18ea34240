"""Adaptation without a gradient step: one frozen learner with every company of scripted co-players.

    normalised return of a company = (agent - uniform legal play) / (oracle - uniform legal play)

All are returns of the first seat, in episodes that follow each other with the same company. A company is a multiset of
kinds, such as {nearest_stag, nearest_hare, random}. What a learner and its company do is chosen by numbers, so that all
companies, seeds and players are rows of one compiled program.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations_with_replacement

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Float64, Int32, Key

from hopplus.evaluation.clairvoyant import Known, goals_of, inform
from hopplus.evaluation.series import play_rows
from hopplus.games.coplayers import Lineup, Memory, Policy, read_policies
from hopplus.games.game import Game, GameSpec, Observation, views_of_others
from hopplus.planning import beliefs

LETTERS = {"nearest_stag": "N", "nearest_hare": "H", "random": "R", "patient_stag(3)": "P"}
"""What a co-player can be, and the letter that stands for it."""
KINDS = ("nearest_stag", "nearest_hare", "random")
"""What co-players are unless said otherwise, and what the player by belief takes them for."""
STAG_HUNTER = KINDS.index("nearest_stag")
ENOUGH = 0.5
"""How likely a partner must be for stags to be worth the way."""
SMALLEST_GAIN = 0.05
"""An oracle that gains less than this over uniform play cannot tell a good agent from a bad one."""


def lineups(spec: GameSpec, kinds: Sequence[str] = KINDS) -> list[tuple[str, ...]]:
    """Every company of these kinds that a learner can have."""
    if not spec.has_plane("stags") or spec.num_agents < 2:
        raise ValueError(f"adaptation is measured among hunters of stags and hares; {spec.name} is no such game")
    unknown = [kind for kind in kinds if kind not in LETTERS]
    if unknown or len(set(kinds)) < len(kinds) or not kinds:
        raise ValueError(f"--kinds is {','.join(kinds)}; give some of {', '.join(LETTERS)}, each once")
    return list(combinations_with_replacement(kinds, spec.num_agents - 1))


def short_name(lineup: Sequence[str]) -> str:
    """A letter for each co-player, as in NHR."""
    return "".join(LETTERS[name] for name in lineup)


def scripts(spec: GameSpec, kinds: Sequence[str] = KINDS) -> tuple[Policy, ...]:
    """The players of these kinds, in their order."""
    return read_policies(",".join(kinds), spec)


class OneOf(Policy):
    """One of several players, told by its number. Which one is data, so that one program serves for all of them.

    Nobody else is asked, as long as the number is not mapped over.
    """

    policies: tuple[Policy, ...]
    choice: Int32[Array, "*rows"]

    def start(self) -> Memory:
        return tuple(policy.start() for policy in self.policies)

    def again(self, memory: Memory) -> Memory:
        return tuple(policy.again(own) for policy, own in zip(self.policies, memory, strict=True))

    def __call__(self, observation, legal, memory):
        def ask(index, observation, legal, memory):
            probabilities, remembered = self.policies[index](observation, legal, memory[index])
            return probabilities.astype(jnp.float32), (*memory[:index], remembered, *memory[index + 1 :])

        each = [partial(ask, index) for index in range(len(self.policies))]
        return jax.lax.switch(self.choice, each, observation, legal, memory)


class Suspicion(eqx.Module):
    """What a player who infers remembers: its beliefs, and what it expected of each co-player in the state before."""

    belief: Float32[Array, "*batch others kinds"]
    predicted: Float32[Array, "*batch others kinds actions"]
    legal: Bool[Array, "*batch others actions"]


class ByBelief(Policy):
    """Hunts stags while it believes in a partner, else hares: as good as one can play with two scripts to choose from.

    A Bayes filter for each co-player over the kinds it can be, with the true scripts as the likelihoods and the
    smoothing of `planning.beliefs`. It begins uniform in every episode, and sees nothing but its own views.
    """

    game: Game
    kinds: tuple[Policy, ...]
    for_stags: Policy
    for_hares: Policy

    def start(self) -> Suspicion:
        others, actions = self.game.spec.num_agents - 1, self.game.spec.num_actions
        return Suspicion(
            belief=jnp.full((others, len(self.kinds)), 1 / len(self.kinds), jnp.float32),
            predicted=jnp.zeros((others, len(self.kinds), actions), jnp.float32),
            legal=jnp.zeros((others, actions), bool),
        )

    def __call__(self, observation, legal, memory):
        belief = jax.vmap(beliefs.update)(memory.belief, memory.predicted, memory.legal, observation.last_actions[1:])
        views = views_of_others(self.game.spec, observation)
        may_do = jax.vmap(self.game.legal_in_view)(views)
        remembered = Suspicion(belief, jax.vmap(self._expected)(views, may_do), may_do)
        present = jnp.any(views.planes[..., 0] > 0, axis=(1, 2))
        hunting_stags, _ = self.for_stags(observation, legal, ())
        hunting_hares, _ = self.for_hares(observation, legal, ())
        wanted = partner_probability(belief[:, STAG_HUNTER], present) >= ENOUGH
        return jnp.where(wanted, hunting_stags, hunting_hares), remembered

    def _expected(self, view: Observation, legal: Bool[Array, " actions"]) -> Float32[Array, "kinds actions"]:
        """What a co-player of each kind would do. The kinds remember nothing."""
        return jnp.stack([kind(view, legal, kind.start())[0] for kind in self.kinds])


def partner_probability(hunts_stags: Float32[Array, " others"], present: Bool[Array, " others"]) -> Float32[Array, ""]:
    """That one co-player at least is still on the board and hunts stags."""
    return 1 - jnp.prod(jnp.where(present, 1 - hunts_stags, 1.0))


def by_belief(game: Game) -> ByBelief:
    """The yardstick "NS or NH by belief" for this game."""
    kinds = scripts(game.spec)
    return ByBelief(game, kinds, for_stags=kinds[0], for_hares=kinds[1])


def returns_in_company(
    game: Game,
    players: Sequence[Policy],
    choices: Sequence[int],
    companies: Sequence[tuple[str, ...]],
    num_series: int,
    length: int = 1,
    *,
    known: Known = "nothing",
    key: Key[Array, ""],
    on_row: Callable[[], None] | None = None,
) -> Float32[np.ndarray, "rows {num_series} {length}"]:
    """What the first seat gets. Row i: player number choices[i] with companies[i] in the seats after it.

    Every array of a player has a leading axis of rows; a script has no arrays. A planner can be told the truth.
    """
    names = sorted({name for company in companies for name in company})
    kinds = scripts(game.spec, names)
    numbers = np.array([[names.index(name) for name in company] for company in companies], np.int32)
    others = [OneOf(kinds, jnp.asarray(column)) for column in numbers.T]
    if known != "nothing":
        goals = jnp.asarray(np.stack([goals_of(game.spec, company) for company in companies]))
        players = [inform(player, goals, tuple(others) if known == "others" else ()) for player in players]
    first = OneOf(tuple(players), jnp.array(choices, jnp.int32))
    table = Lineup((first, *others))
    return play_rows(game, table, num_series, length, num_rows=len(companies), key=key, on_row=on_row)


def agent_returns(
    game: Game,
    manners: Sequence[Sequence[Policy]],
    companies: Sequence[tuple[str, ...]],
    episodes: int,
    length: int = 1,
    *,
    num_seeds: int,
    known: Known = "nothing",
    key: Key[Array, ""],
    on_row: Callable[[], None] | None = None,
) -> Float64[np.ndarray, "manners {num_seeds} lineups {length}"]:
    """A frozen agent's mean return in the first seat with every company, in each episode of a series.

    `manners` are its ways to act, such as sampled and greedy: for each, the policies of its learning seats, whose
    arrays have a leading axis of seeds. Each policy sits in the first seat for an equal share of a seed's episodes.
    """
    num_seats = len(manners[0])
    shape = (len(manners), len(companies), num_seats, num_seeds)
    choice, company, _, _ = (index.ravel().tolist() for index in np.indices(shape))
    copies = len(manners) * len(companies)
    players = [jax.tree.map(lambda *leaves: jnp.concatenate([*leaves] * copies), *policies) for policies in manners]
    rows = [companies[index] for index in company]
    share = series_of_each(episodes, num_seats, length)
    found = returns_in_company(game, players, choice, rows, share, length, known=known, key=key, on_row=on_row)
    by_seat = found.mean(axis=1, dtype=np.float64).reshape(*shape, length)
    return by_seat.mean(axis=2).swapaxes(1, 2)


def series_of_each(episodes: int, num_policies: int, length: int = 1) -> int:
    """How many series each of an agent's policies plays, so that together they have as many episodes as asked for."""
    return -(-episodes // (num_policies * length))


def normalised(
    agent: Float64[np.ndarray, "*seeds lineups"],
    uniform: Float64[np.ndarray, " lineups"],
    oracle: Float64[np.ndarray, " lineups"],
) -> Float64[np.ndarray, "*seeds lineups"]:
    """0 is uniform legal play, 1 the oracle, for each company; more than 1 where the agent beats an imperfect oracle.

    NaN where the oracle gains less than SMALLEST_GAIN over uniform play: the quotient would be mostly noise. Such a
    company is left out of the mean over companies.
    """
    gain = np.where(oracle - uniform >= SMALLEST_GAIN, oracle - uniform, np.nan)
    return (agent - uniform) / gain
