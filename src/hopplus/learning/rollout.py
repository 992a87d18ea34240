"""Rollouts as a learner needs them: what each seat saw, did and estimated, and whether it was in the game."""

from dataclasses import replace
from functools import partial
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, UInt32

from hopplus.agents.config import OpponentsConfig, PlanningConfig
from hopplus.agents.goals import BeliefState, GoalModel, goal_model, num_policy_inputs, policy_inputs
from hopplus.agents.opponents import OpponentModels
from hopplus.agents.planner import Planner
from hopplus.agents.player import Player
from hopplus.core.devices import over_devices
from hopplus.core.numerics import LEAST
from hopplus.games.board import random_words
from hopplus.games.coplayers import Lineup, PolicyState
from hopplus.games.fields import TIME, Observation, num_features
from hopplus.games.game import Game, GameSpec, ego_order, steps_passed
from hopplus.games.rollout import EnvState, JointPolicy, Step, rollout, uniforms_from_words
from hopplus.models.actor_critic import PolicyNetwork
from hopplus.models.central_critic import views_of_the_others
from hopplus.models.learned_game import LearnedGame, from_view
from hopplus.models.world import Outcome, Situation, Transition, WorldModel, board_of, views_of_world
from hopplus.planning.beliefs import uniform


class PolicyOutput(eqx.Module):
    """What the learning seats computed in the last state; it is recorded with the step."""

    values: Float32[Array, "*batch seats"]
    beliefs: BeliefState
    hidden: Float32[Array, "*batch seats hidden"] | None = None
    """The recurrent state that the seats acted from; None without memory."""
    kinds: Int32[Array, "*batch seats"] | None = None
    """What each seat is after (`learning.utilities`); None where all are after the game's reward."""
    next_kinds: Int32[Array, "*batch seats"] | None = None
    """The same, from the next episode on."""
    inputs: Float32[Array, "*batch seats others inputs"] | None = None
    """What the policies read about their co-players; None: the goals."""


class Seats(eqx.Module):
    """All players of an environment: the learning seats first, each with its parameters, then the fixed co-players."""

    params: PolicyNetwork
    """One set for each learning seat, stacked."""
    opponents: OpponentModels
    """Those of each learning seat, stacked."""
    game: Game
    config: OpponentsConfig = eqx.field(static=True)
    co_players: Lineup
    num_learning: int = eqx.field(static=True)
    planning: PlanningConfig = eqx.field(static=True, default=PlanningConfig())
    """How the learning seats plan in training, if they do."""
    discount: float = eqx.field(static=True, default=0.99)
    has_kinds: bool = eqx.field(static=True, default=False)
    """Whether seats may be after something else than the game's reward."""
    plan_keys: UInt32[Array, "seats words"] | None = None
    """What each seat's plans draw with in this update, as plain numbers; without it the same views draw the same."""
    worlds: WorldModel | None = None
    """The learned world that each seat plans in, stacked; None: they plan in the true game."""

    @property
    def goals(self) -> GoalModel:
        """How the learning seats infer goals."""
        return goal_model(self.config, self.game)

    def init(self) -> PolicyState:
        first = replace(self.goals.start(), hidden=self.params.start())
        by_seat = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.num_learning, *leaf.shape)), first)
        kinds = jnp.zeros(self.num_learning, jnp.int32) if self.has_kinds else None
        values = jnp.zeros(self.num_learning, jnp.float32)
        inputs = no_inputs(self.config, self.game, self.num_learning)
        if self.params.reads_all_views:
            spec = self.game.spec
            inputs = jnp.zeros((self.num_learning, spec.num_agents - 1, num_features(spec.observation)), jnp.float32)
        output = PolicyOutput(values, by_seat, by_seat.hidden, kinds, kinds, inputs)
        return output, self.co_players.init()

    def next_episode(self, state: PolicyState) -> PolicyState:
        output, others_state = state
        beliefs = jax.vmap(self.goals.next_episode, axis_size=self.num_learning)(output.beliefs)
        first, _ = self.init()
        if output.kinds is not None:
            met = jnp.all(output.kinds == output.next_kinds)
            beliefs = jax.tree.map(lambda known, fresh: jnp.where(met, known, fresh), beliefs, first.beliefs)
        beliefs = replace(beliefs, hidden=first.hidden)
        kinds = output.next_kinds
        output = PolicyOutput(jnp.zeros_like(output.values), beliefs, first.hidden, kinds, kinds, first.inputs)
        return output, self.co_players.next_episode(others_state)

    def __call__(
        self, observations: Observation, legal: Bool[Array, "agents actions"], state: PolicyState
    ) -> tuple[Float32[Array, "agents actions"], PolicyState]:
        learning, others = slice(None, self.num_learning), slice(self.num_learning, None)
        output, others_state = state
        everything = None
        if self.params.reads_all_views:
            order = ego_order(self.game.spec.num_agents)[: self.num_learning]
            everything = views_of_the_others(self.game.spec.observation, observations, order)
        probabilities, values, beliefs, inputs = jax.vmap(self._one_seat)(
            self.params,
            self.opponents,
            jax.tree.map(lambda leaf: leaf[learning], observations),
            legal[learning],
            output.beliefs,
            output.kinds,
            self.plan_keys,
            self.worlds,
            everything,
        )
        inputs = inputs if self.config.others.as_input or everything is not None else None
        output = replace(output, values=values, beliefs=beliefs, hidden=output.beliefs.hidden, inputs=inputs)
        if not self.co_players.policies:
            return probabilities, (output, others_state)
        seen = jax.tree.map(lambda leaf: leaf[others], observations)
        scripted, others_state = self.co_players(seen, legal[others], others_state)
        return jnp.concatenate([probabilities, scripted]), (output, others_state)

    def _one_seat(self, params, opponents, observation, legal, beliefs, kind, plan_key, world, everything):
        """Action probabilities, value, beliefs and what the policy read of one learning seat."""
        hidden, beliefs = beliefs.hidden, self.goals.update(opponents, observation, beliefs)
        inputs = policy_inputs(self.config, self.game, opponents, observation, beliefs.goals)
        if everything is not None:
            inputs = jnp.concatenate([inputs, everything], axis=-1)
        read = inputs
        if kind is not None:
            legal = legal_for(self.game.spec, legal, kind)
            read = jnp.concatenate([inputs, own_goal(kind, inputs.shape[-1])[None]])
        log_probabilities, value, hidden = params.step(hidden, observation, legal, read)
        beliefs = replace(beliefs, hidden=hidden)
        if kind is not None:
            by_chance = jnp.log(jnp.maximum(uniform(legal), LEAST))
            log_probabilities = jnp.where(acts_at_random(self.game.spec, kind), by_chance, log_probabilities)
        if not self.planning.is_used:
            return jnp.exp(log_probabilities), value, beliefs, inputs
        player = Player(params, opponents, self.game, self.config)
        game = self.game
        if world is not None:
            game = LearnedGame(world, game, jax.tree.map(lambda leaf: leaf[None], from_view(game.spec, observation)))
        planner = Planner(player, game, self.planning, self.discount)
        plan = planner.plan(observation, beliefs, None if plan_key is None else jax.random.wrap_key_data(plan_key))
        return planner.explore(plan, log_probabilities), value, beliefs, inputs


def no_inputs(config: OpponentsConfig, game: Game, num_seats: int) -> Float32[Array, "seats others inputs"] | None:
    """The inputs of policies that have not acted yet, if they are more than goals."""
    if not config.others.as_input:
        return None
    return jnp.zeros((num_seats, game.spec.num_agents - 1, num_policy_inputs(config, game)), jnp.float32)


def own_goal(kind: Int32[Array, "*batch"], size: int) -> Float32[Array, "*batch goal"]:
    """What a policy reads about its own seat: zeros for the game's reward, otherwise the kind, one-hot."""
    return jax.nn.one_hot(kind - 1, size)


def acts_at_random(spec: GameSpec, kinds: Int32[Array, "*batch"]) -> Bool[Array, "*batch"]:
    """Which seats act at random."""
    return kinds > len(spec.events)


def legal_for(
    spec: GameSpec, legal: Bool[Array, "*batch actions"], kind: Int32[Array, "*batch"]
) -> Bool[Array, "*batch actions"]:
    """The legal actions without those of events that the seat is not after: it would end its search by them."""
    numbers, of_event = np.arange(1, len(spec.events) + 1), np.asarray(spec.event_actions)[:, None]
    has_no_event = (kind == 0) | acts_at_random(spec, kind)
    is_after = (kind[..., None] == numbers) | has_no_event[..., None]
    unwanted = jnp.any(~is_after[..., None] & (of_event == np.arange(spec.num_actions)), axis=-2)
    return legal & ~unwanted


class Trajectory(eqx.Module):
    """Steps of the learning seats; leading axes: environments, time."""

    observation: Observation
    legal: Bool[Array, "*batch seats actions"]
    actions: Int32[Array, "*batch agents"]
    """Of all seats: opponent models learn from the co-players' actions."""
    log_probabilities: Float32[Array, "*batch seats"]
    best: Float32[Array, "*batch agents"]
    """The probability of each seat's most likely action: the ceiling of any prediction."""
    values: Float32[Array, "*batch seats"]
    goals: Float32[Array, "*batch seats others goal"]
    """The co-players' goals as each learning seat inferred them."""
    inputs: Float32[Array, "*batch seats others inputs"] | None
    """What the policies read about their co-players; None: the goals."""
    rewards: Float32[Array, "*batch agents"]
    """Of all seats, for episode statistics; a seat learns from its own."""
    events: Bool[Array, "*batch events agents"]
    """Which of the game's events happened to each seat."""
    in_game: Bool[Array, "*batch agents"]
    """Before the step."""
    reset_before: Bool[Array, "*batch"]
    terminated_after: Bool[Array, "*batch agents"]
    transition: Transition | None
    """The step in seat order, as training data of a world."""
    hidden: Float32[Array, "*batch seats hidden"] | None
    """The recurrent states that the seats acted from; None without memory."""
    planned: Float32[Array, "*batch seats actions"] | None
    """The seats' planned action probabilities, as targets of their policies."""
    kinds: Int32[Array, "*batch seats"] | None = None
    """What each learning seat was after; None where all were after the game's reward."""

    @property
    def all_kinds(self) -> Int32[Array, "*batch agents"] | None:
        """What each seat was after: those that do not learn, after the game's reward."""
        if self.kinds is None:
            return None
        return jnp.pad(
            self.kinds, [(0, 0)] * (self.kinds.ndim - 1) + [(0, self.rewards.shape[-1] - self.kinds.shape[-1])]
        )


class Players(JointPolicy, Protocol):
    """All seats of an environment, of which the first `num_learning` learn; their state starts with a PolicyOutput."""

    @property
    def num_learning(self) -> int: ...


def collect(
    game: Game,
    seats: Players,
    envs: EnvState,
    num_steps: int,
    *,
    seat_keys: Key[Array, " agents"],
    env_key: Key[Array, ""],
    num_devices: int = 1,
    with_transitions: bool = False,
    with_plans: bool = False,
) -> tuple[EnvState, Trajectory, Float32[Array, "envs seats"]]:
    """Step every environment, each device its share; also the values of the states that the rollout stopped at."""
    num_envs = envs.reset_before.shape[0]
    draws = jax.vmap(lambda key: random_words(num_envs * num_steps, key=key))(seat_keys)
    uniforms = uniforms_from_words(draws).reshape(-1, num_envs, num_steps)
    record = partial(_record, game, seats.num_learning, with_transitions, with_plans)

    def one_env(seats: Players, env: EnvState, uniforms: Float32[Array, "time agents"], key: Key[Array, ""]):
        env, steps = rollout(game, seats, env, num_steps, key=key, uniforms=uniforms, record=record)
        _, (output, _) = seats(game.observe(env.state), game.legal(env.state), env.policy_state)
        return env, steps, output.values

    def some_envs(seats: Players, parts: tuple[EnvState, Array, Array]):
        return jax.vmap(one_env, in_axes=(None, 0, 0, 0))(seats, *parts)

    parts = (envs, jnp.moveaxis(uniforms, 0, -1), jax.random.split(env_key, num_envs))
    return over_devices(some_envs, num_devices, num_envs)(seats, parts)


def _record(game: Game, num_learning: int, with_transitions: bool, with_plans: bool, step: Step) -> Trajectory:
    learning = slice(None, num_learning)
    output, _ = step.policy_state
    chosen = jnp.arange(step.legal.shape[-1]) == step.actions[:, None]
    probability = jnp.sum(jnp.where(chosen, step.probabilities, 0.0), axis=-1)
    return Trajectory(
        observation=jax.tree.map(lambda leaf: leaf[learning], step.observation),
        legal=step.legal[learning],
        actions=step.actions,
        log_probabilities=jnp.log(probability[learning]),
        best=jnp.max(step.probabilities, axis=-1),
        values=output.values,
        goals=output.beliefs.goals,
        inputs=output.inputs,
        rewards=step.rewards,
        events=game.events(step.state, step.actions, step.after, step.rewards),
        in_game=~game.terminated(step.state),
        reset_before=step.reset_before,
        terminated_after=step.terminated_after,
        transition=_transition(game, step) if with_transitions else None,
        hidden=output.hidden,
        planned=step.probabilities[learning] if with_plans else None,
        kinds=output.kinds,
    )


def _transition(game: Game, step: Step) -> Transition:
    """The step in seat order; the time is read from the view of a seat that is still in the game.

    Where no view shows it, `with_times` fills it in.
    """
    time = jnp.int32(0)
    if game.spec.has_field(TIME.name):
        time = steps_passed(jnp.max(step.observation[TIME.name]), game.spec.horizon)
    before, after = views_of_world(game.spec, step.observation), None
    if before is not None:
        after = views_of_world(game.spec, game.observe(step.after))
    return Transition(
        Situation(board_of(game, step.state), time, step.actions, game.terminated(step.state), before),
        Outcome(board_of(game, step.after), step.rewards, step.terminated_after, after),
    )


def with_times(spec: GameSpec, steps: Trajectory, played: Float32[Array, "envs agents"]) -> Trajectory:
    """The steps with the time in their transitions; `played` are the steps of the running episodes before.

    Steps of a game whose views show the time have it already.
    """
    if steps.transition is None or spec.has_field(TIME.name):
        return steps
    num_steps = steps.reset_before.shape[1]
    numbers = jnp.arange(num_steps, dtype=jnp.int32)
    last_reset = jax.lax.cummax(jnp.where(steps.reset_before, numbers, -1), axis=1)
    before = jnp.max(played, axis=-1).astype(jnp.int32)[:, None]
    times = jnp.where(last_reset < 0, before + numbers, numbers - last_reset)
    now = replace(steps.transition.now, time=times)
    return replace(steps, transition=replace(steps.transition, now=now))
