"""Named faults that can be switched on for one run, to test whether the doctor finds them.

    with faults.switched_on("imagined_reward_x5"):
        train(config, folder)
        examine(folder)

A fault wraps a function or a game of hopplus while the block runs. The doctor examines the code that trains, so the
fault must be on during the examination too, as a real one would be.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32, Key

from hopplus.core.compiled import PROGRAMS
from hopplus.games.board import Board
from hopplus.games.stag_hunt import HUNT_HARE, StagHunt, StagHuntState
from hopplus.learning import imagination, learner
from hopplus.learning.config import LearnerConfig
from hopplus.learning.state import Experience, Learner, LearnerState, Task
from hopplus.models import world
from hopplus.models.learned_game import LearnedGame
from hopplus.models.world import Outcome, Situation, Transition

SEAT = 1
"""The seat (the second) that has the fault, if it is a fault of one seat."""


@dataclass(frozen=True)
class Fault:
    """A fault and the part that the doctor must blame for it."""

    about: str
    module: str
    """The part that the doctor must blame."""
    agent: str = "hop_plus"
    """The simplest agent that has the part."""
    game: str | None = None
    """The game with broken rules, if the fault is in the rules."""
    wrap: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = ()
    """(module or class, name, wrapper): the wrapper takes the original and returns its replacement."""


@contextmanager
def switched_on(name: str) -> Iterator[Fault]:
    """Switch a fault on while the block runs. JAX's caches are cleared, so that programs compile with the fault.

    Kept training programs are known by their settings, which do not name the fault: none is read or kept meanwhile.
    """
    if name not in FAULTS:
        raise ValueError(f"there is no fault {name!r}; the faults are {', '.join(FAULTS)}")
    fault = FAULTS[name]
    jax.clear_caches()
    patches = [patch.object(where, what, wrap(getattr(where, what))) for where, what, wrap in fault.wrap]
    programs = os.environ.pop(PROGRAMS, None)
    for each in patches:
        each.start()
    try:
        yield fault
    finally:
        for each in patches:
            each.stop()
        if programs is not None:
            os.environ[PROGRAMS] = programs
        jax.clear_caches()


class TieToTheLowestSeat(StagHunt):
    """A hare that several hunt goes to the lowest seat; the others leave with nothing."""

    def step(self, state: StagHuntState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]):
        after, rewards = super().step(state, actions, key=key)
        shared = (rewards > 0) & (rewards < self.hare_reward) & (actions == HUNT_HARE)
        tied = shared[:, None] & shared[None, :] & (state.position[:, None] == state.position[None, :])
        first = shared & (jnp.argmax(tied, axis=1) == jnp.arange(self.num_players))
        return after, jnp.where(first, self.hare_reward, jnp.where(shared, 0.0, rewards))


class SpawnBias(StagHunt):
    """Seat 1 begins on a hare."""

    def reset(self, *, key: Key[Array, ""]) -> StagHuntState:
        state = super().reset(key=key)
        return replace(state, position=state.position.at[0].set(state.prey_position[-1]))


def tie_to_the_lowest_seat() -> StagHunt:
    """The 4x4 stag hunt with that fault."""
    return TieToTheLowestSeat(grid=Board(4, 4))


def spawn_bias() -> StagHunt:
    """The 4x4 stag hunt with that fault."""
    return SpawnBias(grid=Board(4, 4))


def _seat_zero_pays_all(make_batch):
    def wrapped(config, steps, last_values):
        first = jnp.broadcast_to(steps.rewards[..., :1], steps.rewards.shape)
        return make_batch(config, replace(steps, rewards=first), last_values)

    return wrapped


def _starve(play):
    def wrapped(config: LearnerConfig, task: Task, state: LearnerState) -> Experience:
        experience = play(config, task, state)
        few = jnp.arange(experience.batch.active.shape[1]) < config.envs // 8
        active = experience.batch.active.at[SEAT].set(experience.batch.active[SEAT] & few[:, None])
        return replace(experience, batch=replace(experience.batch, active=active))

    return wrapped


def _forget_goals(play):
    def wrapped(config: LearnerConfig, task: Task, state: LearnerState) -> Experience:
        experience = play(config, task, state)
        return replace(experience, batch=replace(experience.batch, goals=experience.batch.goals.at[SEAT].set(0.0)))

    return wrapped


def _one_stream(collect):
    def wrapped(*arguments, seat_keys, **options):
        words = jax.random.key_data(seat_keys)
        equal = jax.random.wrap_key_data(jnp.broadcast_to(words[:1], words.shape))
        return collect(*arguments, seat_keys=equal, **options)

    return wrapped


def _learners_after(change: Callable[[LearnerState, Learner], Learner]):
    """Wrap `learn_all` so that `change` alters the updated learners."""

    def wrap(learn_all):
        def wrapped(config: LearnerConfig, task: Task, state: LearnerState, experience: Experience):
            after, metrics = learn_all(config, task, state, experience)
            return change(state, after), metrics

        return wrapped

    return wrap


def _only_first(before: LearnerState, after: Learner) -> Learner:
    params = jax.tree.map(
        lambda old, new: old.at[0].set(new[0]), before.learners.opponents.params, after.opponents.params
    )
    return replace(after, opponents=replace(after.opponents, params=params))


def _faster(before: LearnerState, after: Learner) -> Learner:
    def further(old: Array, new: Array) -> Array:
        return new.at[SEAT].set(old[SEAT] + 3 * (new[SEAT] - old[SEAT]))

    params = jax.tree.map(further, before.learners.policy.params, after.policy.params)
    return replace(after, policy=replace(after.policy, params=params))


def _clip_together(before: LearnerState, after: Learner) -> Learner:
    old = before.learners.policy.params
    steps = jax.tree.map(jnp.subtract, after.policy.params, old)
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(steps)))
    share = jnp.minimum(1.0, 0.1 / jnp.maximum(norm, 1e-12))
    params = jax.tree.map(lambda old, step: old + share * step, old, steps)
    return replace(after, policy=replace(after.policy, params=params))


def _pad(opponent_data):
    def wrapped(config, game, models, envs, steps):
        data = opponent_data(config, game, models, envs, steps)
        return replace(data, valid=jnp.ones_like(data.valid))

    return wrapped


def _no_goals(act):
    def wrapped(self, observations, legal, policy_state):
        probabilities, (output, co_players) = act(self, observations, legal, policy_state)
        beliefs = replace(output.beliefs, goals=jnp.zeros_like(output.beliefs.goals))
        return probabilities, (replace(output, beliefs=beliefs), co_players)

    return wrapped


def _five_times(step):
    def wrapped(self, state, actions, *, key):
        after, rewards = step(self, state, actions, key=key)
        return after, 5 * rewards

    return wrapped


def _all_legal(legal):
    def wrapped(self, state) -> Bool[Array, "agents actions"]:
        return jnp.ones_like(legal(self, state))

    return wrapped


def _no_ends(draw):
    def wrapped(spec, now, predicted, *, key) -> Outcome:
        return replace(draw(spec, now, predicted, key=key), ended=now.ended)

    return wrapped


def _actions_left_behind(seen_by):
    def wrapped(spec, transition: Transition, order) -> Transition:
        turned = seen_by(spec, transition, order)
        now = turned.now
        return Transition(Situation(now.board, now.time, transition.now.actions, now.ended), turned.after)

    return wrapped


FAULTS = {
    "tie_to_the_lowest_seat": Fault(
        "a hare that several hunt goes to the lowest seat",
        "game: rules",
        "ppo",
        game="hopplus.doctor.faults:tie_to_the_lowest_seat",
    ),
    "spawn_bias": Fault(
        "the first seat begins on a hare", "game: spawns", "ppo", game="hopplus.doctor.faults:spawn_bias"
    ),
    "reward_of_seat_0_for_all": Fault(
        "every seat learns from the first seat's reward",
        "rewards",
        "ppo",
        wrap=((learner, "make_batch", _seat_zero_pays_all),),
    ),
    "others_updated_for_one_seat": Fault(
        "only the first seat's opponent models are updated",
        "others",
        wrap=((learner, "learn_all", _learners_after(_only_first)),),
    ),
    "learning_rate_of_one_seat": Fault(
        "one seat's policy has three times the learning rate",
        "policy",
        "ppo",
        wrap=((learner, "learn_all", _learners_after(_faster)),),
    ),
    "buffer_starved": Fault(
        "one seat learns from an eighth of its samples", "buffer", "ppo", wrap=((learner, "play", _starve),)
    ),
    "goals_logged_as_zero": Fault(
        "one seat's goals are zero in the record", "goals", wrap=((learner, "play", _forget_goals),)
    ),
    "imagined_goals_zero": Fault(
        "imagined rollouts have no goals",
        "imagined goals",
        wrap=((imagination.ImaginedPlayers, "__call__", _no_goals),),
    ),
    "imagined_reward_x5": Fault(
        "imagined rewards are five times too large", "imagined rewards", wrap=((LearnedGame, "step", _five_times),)
    ),
    "padded_after_leaving": Fault(
        "opponent models learn from steps after a player left",
        "others: data",
        wrap=((learner, "opponent_data", _pad),),
    ),
    "imagined_all_legal": Fault(
        "every action is legal in imagined rollouts",
        "imagined legal actions",
        wrap=((LearnedGame, "legal", _all_legal),),
    ),
    "no_termination": Fault("the world never terminates a seat", "world: ends", wrap=((world, "draw", _no_ends),)),
    "planes_and_actions_misaligned": Fault(
        "the world's data has planes in the seat's own order, and actions in another",
        "world: data",
        wrap=((world, "seen_by", _actions_left_behind),),
    ),
    "one_random_stream": Fault(
        "all seats sample their actions with one random stream",
        "random streams",
        "ppo",
        wrap=((learner, "collect", _one_stream),),
    ),
    "clipping_across_seats": Fault(
        "the updates of all seats are clipped by their common norm",
        "gradient clipping",
        "ppo",
        wrap=((learner, "learn_all", _learners_after(_clip_together)),),
    ),
}
"""The faults that can be switched on, by name."""
