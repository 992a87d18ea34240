"""Play as a learner needs it: what each seat saw, did, thought of the state, and whether it was in the game at all."""

from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key

from hopplus.games.board import random_words
from hopplus.games.coplayers import Lineup, Memory
from hopplus.games.game import Game, Observation, steps_passed
from hopplus.games.rollout import JointPolicy, Step, Table, levels_from_words, paid_deeds, rollout
from hopplus.learning import minds
from hopplus.learning.devices import in_parts
from hopplus.learning.minds import Impression, Mind, MindConfig, Player
from hopplus.learning.planner import Planner, PlanningConfig
from hopplus.models import actor_critic
from hopplus.models.actor_critic import ActorCritic
from hopplus.models.world import Outcome, Situation, Transition


class Thought(eqx.Module):
    """What the learning seats made of the state they last saw; it is recorded with the step."""

    values: Float32[Array, "*batch seats"]
    impression: Impression


class Seats(eqx.Module):
    """A table's players: the learning seats first, each with its parameters, then the fixed co-players."""

    params: ActorCritic
    """One set for each learning seat, stacked."""
    minds: Mind
    """The same."""
    game: Game
    config: MindConfig = eqx.field(static=True)
    co_players: Lineup
    num_learning: int = eqx.field(static=True)
    planning: PlanningConfig = eqx.field(static=True, default=PlanningConfig())
    """How the learning seats plan while they play, if they do."""
    discount: float = eqx.field(static=True, default=0.99)

    def start(self) -> Memory:
        first = minds.start(self.config, self.game.spec)
        by_seat = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.num_learning, *leaf.shape)), first)
        return Thought(jnp.zeros(self.num_learning, jnp.float32), by_seat), self.co_players.start()

    def again(self, memory: Memory) -> Memory:
        thought, remembered = memory
        one = lambda impression: minds.again(self.config, self.game.spec, impression)  # noqa: E731
        impression = jax.vmap(one, axis_size=self.num_learning)(thought.impression)
        return Thought(jnp.zeros_like(thought.values), impression), self.co_players.again(remembered)

    def __call__(
        self, observations: Observation, legal: Bool[Array, "agents actions"], memory: Memory
    ) -> tuple[Float32[Array, "agents actions"], Memory]:
        learning, others = slice(None, self.num_learning), slice(self.num_learning, None)
        thought, remembered = memory

        def one_seat(params, mind, observation, legal, impression):
            impression = minds.perceive(self.config, self.game, mind, observation, impression)
            log_probabilities, value = actor_critic.apply(params, observation, legal, impression.goals)
            if not self.planning.is_used:
                return jnp.exp(log_probabilities), value, impression
            player = Player(params, mind, self.game, self.config)
            planner = Planner(player, self.game, self.planning, self.discount)
            return planner.explore(planner.plan(observation, impression), log_probabilities), value, impression

        probabilities, values, impression = jax.vmap(one_seat)(
            self.params,
            self.minds,
            jax.tree.map(lambda leaf: leaf[learning], observations),
            legal[learning],
            thought.impression,
        )
        thought = Thought(values, impression)
        if not self.co_players.policies:
            return probabilities, (thought, remembered)
        seen = jax.tree.map(lambda leaf: leaf[others], observations)
        scripted, remembered = self.co_players(seen, legal[others], remembered)
        return jnp.concatenate([probabilities, scripted]), (thought, remembered)


class Trajectory(eqx.Module):
    """Steps of the learning seats; leading axes: environments, time."""

    observation: Observation
    legal: Bool[Array, "*batch seats actions"]
    actions: Int32[Array, "*batch agents"]
    """Of all seats: what co-players did is what their models learn from."""
    log_probabilities: Float32[Array, "*batch seats"]
    best: Float32[Array, "*batch agents"]
    """The probability of the likeliest action of each seat: nobody can predict it better."""
    values: Float32[Array, "*batch seats"]
    goals: Float32[Array, "*batch seats others goal"]
    """What each learning seat took its co-players' goals to be."""
    rewards: Float32[Array, "*batch agents"]
    """Of all seats, for the record of episodes; a seat learns from its own."""
    did: Bool[Array, "*batch deeds agents"]
    """Which of the game's deeds each seat did and was paid for."""
    in_game: Bool[Array, "*batch agents"]
    """Before the step."""
    reset_before: Bool[Array, "*batch"]
    terminated_after: Bool[Array, "*batch agents"]
    transition: Transition | None
    """The same in seat order, for a world to learn from."""
    planned: Float32[Array, "*batch seats actions"] | None
    """What the seats' planning made of the actions, for their policies to learn."""


class Players(JointPolicy, Protocol):
    """All seats of a table, of which the first so many learn; their memory begins with what those thought."""

    @property
    def num_learning(self) -> int: ...


def collect(
    game: Game,
    seats: Players,
    tables: Table,
    num_steps: int,
    *,
    seat_keys: Key[Array, " agents"],
    table_key: Key[Array, ""],
    num_devices: int = 1,
    with_transitions: bool = False,
    with_plans: bool = False,
) -> tuple[Table, Trajectory, Float32[Array, "envs seats"]]:
    """Play every table on, each device its share of them; also the values of the states that it stopped at."""
    num_envs = tables.reset_before.shape[0]
    draws = jax.vmap(lambda key: random_words(num_envs * num_steps, key=key))(seat_keys)
    levels = levels_from_words(draws).reshape(-1, num_envs, num_steps)

    def one_table(seats: Players, table: Table, levels: Float32[Array, "time agents"], key: Key[Array, ""]):
        record = lambda step: _record(game, seats.num_learning, step, with_transitions, with_plans)  # noqa: E731
        table, steps = rollout(game, seats, table, num_steps, key=key, levels=levels, record=record)
        _, (thought, _) = seats(game.observe(table.state), game.legal(table.state), table.memory)
        return table, steps, thought.values

    def some_tables(seats: Players, parts: tuple[Table, Array, Array]):
        return jax.vmap(one_table, in_axes=(None, 0, 0, 0))(seats, *parts)

    parts = (tables, jnp.moveaxis(levels, 0, -1), jax.random.split(table_key, num_envs))
    return in_parts(some_tables, num_devices, num_envs)(seats, parts)


def _record(game: Game, num_learning: int, step: Step, with_transitions: bool, with_plans: bool) -> Trajectory:
    learning = slice(None, num_learning)
    thought, _ = step.memory
    chosen = jnp.arange(step.legal.shape[-1]) == step.actions[:, None]
    probability = jnp.sum(jnp.where(chosen, step.probabilities, 0.0), axis=-1)
    return Trajectory(
        observation=jax.tree.map(lambda leaf: leaf[learning], step.observation),
        legal=step.legal[learning],
        actions=step.actions,
        log_probabilities=jnp.log(probability[learning]),
        best=jnp.max(step.probabilities, axis=-1),
        values=thought.values,
        goals=thought.impression.goals,
        rewards=step.rewards,
        did=paid_deeds(game.spec, step.legal, step.actions, step.rewards),
        in_game=~game.terminated(step.state),
        reset_before=step.reset_before,
        terminated_after=step.terminated_after,
        transition=_transition(game, step) if with_transitions else None,
        planned=step.probabilities[learning] if with_plans else None,
    )


def _transition(game: Game, step: Step) -> Transition:
    """Time is told by whoever is still there to see it."""
    time = steps_passed(jnp.max(step.observation.time), game.spec.horizon)
    return Transition(
        Situation(game.board(step.state), time, step.actions, game.terminated(step.state)),
        Outcome(game.board(step.after), step.rewards, step.terminated_after),
    )
