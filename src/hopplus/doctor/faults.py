"""Faults with names, to be switched on for one run: does the doctor find them?

    with faults.switched_on("imagined_reward_x5"):
        train(config, folder)
        examine(folder)

A fault is a wrapper round a function or a game of the product while the block runs; the product itself knows nothing of
it. The doctor examines the code that trains, so a fault must be on when it looks, as it would be with a real one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32, Key

from hopplus.games.board import Board
from hopplus.games.stag_hunt import HUNT_HARE, StagHunt, StagHuntState
from hopplus.learning import imagination, learner
from hopplus.learning.learner import Experience, Learner, LearnerConfig, LearnerState, Task
from hopplus.models import world
from hopplus.models.world import LearnedGame, Outcome, Situation, Transition

SEAT = 1
"""The seat that a fault of one seat is in: the second."""


@dataclass(frozen=True)
class Fault:
    """Something that is wrong."""

    about: str
    module: str
    """What the doctor must blame."""
    agent: str = "hop_plus"
    """The simplest agent that has what it breaks."""
    game: str | None = None
    """A game of its own, where the rules are what is broken."""
    wrap: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = ()
    """(where, name, what to put instead, given what is there)."""


@contextmanager
def switched_on(name: str) -> Iterator[Fault]:
    """While the block runs, the fault is there. Programs that were compiled before are not touched."""
    if name not in FAULTS:
        raise ValueError(f"there is no fault {name!r}; the faults are {', '.join(FAULTS)}")
    fault = FAULTS[name]
    jax.clear_caches()
    patches = [patch.object(where, what, wrap(getattr(where, what))) for where, what, wrap in fault.wrap]
    for each in patches:
        each.start()
    try:
        yield fault
    finally:
        for each in patches:
            each.stop()
        jax.clear_caches()


class TieToTheLowestSeat(StagHunt):
    """A hare that several hunt goes to the lowest seat; the others leave with nothing."""

    def step(self, state: StagHuntState, actions: Int32[Array, " agents"], *, key: Key[Array, ""]):
        after, rewards = super().step(state, actions, key=key)
        shared = (rewards > 0) & (rewards < self.hare_reward) & (actions == HUNT_HARE)
        same = shared[:, None] & shared[None, :] & (state.position[:, None] == state.position[None, :])
        first = shared & (jnp.argmax(same, axis=1) == jnp.arange(self.num_players))
        return after, jnp.where(first, self.hare_reward, jnp.where(shared, 0.0, rewards))


class SpawnBias(StagHunt):
    """Seat 1 begins on a hare."""

    def reset(self, *, key: Key[Array, ""]) -> StagHuntState:
        state = super().reset(key=key)
        return replace(state, position=state.position.at[0].set(state.prey_position[-1]))


def tie_to_the_lowest_seat() -> StagHunt:
    return TieToTheLowestSeat(grid=Board(4, 4))


def spawn_bias() -> StagHunt:
    return SpawnBias(grid=Board(4, 4))


def _seat_zero_pays_all(look_back):
    def wrapped(config, steps, last_values):
        first = jnp.broadcast_to(steps.rewards[..., :1], steps.rewards.shape)
        return look_back(config, replace(steps, rewards=first), last_values)

    return wrapped


def _starve(play):
    def wrapped(config: LearnerConfig, task: Task, state: LearnerState) -> Experience:
        lived = play(config, task, state)
        few = jnp.arange(lived.batch.active.shape[1]) < config.envs // 8
        active = lived.batch.active.at[SEAT].set(lived.batch.active[SEAT] & few[:, None])
        return replace(lived, batch=replace(lived.batch, active=active))

    return wrapped


def _forget_goals(play):
    def wrapped(config: LearnerConfig, task: Task, state: LearnerState) -> Experience:
        lived = play(config, task, state)
        return replace(lived, batch=replace(lived.batch, goals=lived.batch.goals.at[SEAT].set(0.0)))

    return wrapped


def _one_stream(collect):
    def wrapped(*arguments, seat_keys, **options):
        words = jax.random.key_data(seat_keys)
        same = jax.random.wrap_key_data(jnp.broadcast_to(words[:1], words.shape))
        return collect(*arguments, seat_keys=same, **options)

    return wrapped


def _learners_after(change: Callable[[LearnerState, Learner], Learner]):
    """A fault of what learners are after an update."""

    def wrap(learn_from):
        def wrapped(config: LearnerConfig, task: Task, state: LearnerState, lived: Experience):
            after, metrics = learn_from(config, task, state, lived)
            return change(state, after), metrics

        return wrapped

    return wrap


def _only_first(before: LearnerState, after: Learner) -> Learner:
    keep = lambda old, new: old.at[0].set(new[0])  # noqa: E731
    return replace(after, mind=jax.tree.map(keep, before.minds, after.mind))


def _faster(before: LearnerState, after: Learner) -> Learner:
    further = lambda old, new: new.at[SEAT].set(old[SEAT] + 3 * (new[SEAT] - old[SEAT]))  # noqa: E731
    return replace(after, params=jax.tree.map(further, before.params, after.params))


def _clip_together(before: LearnerState, after: Learner) -> Learner:
    steps = jax.tree.map(jnp.subtract, after.params, before.params)
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(steps)))
    share = jnp.minimum(1.0, 0.1 / jnp.maximum(norm, 1e-12))
    return replace(after, params=jax.tree.map(lambda old, step: old + share * step, before.params, steps))


def _pad(original):
    def wrapped(config, game, mind, tables, steps):
        seen = original(config, game, mind, tables, steps)
        return replace(seen, valid=jnp.ones_like(seen.valid))

    return wrapped


def _no_goals(perceive_and_act):
    def wrapped(self, observations, legal, memory):
        probabilities, (thought, company) = perceive_and_act(self, observations, legal, memory)
        impression = replace(thought.impression, goals=jnp.zeros_like(thought.impression.goals))
        return probabilities, (replace(thought, impression=impression), company)

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
    def wrapped(spec, happened: Transition, order) -> Transition:
        turned = seen_by(spec, happened, order)
        now = turned.now
        return Transition(Situation(now.board, now.time, happened.now.actions, now.ended), turned.after)

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
        wrap=((learner, "look_back", _seat_zero_pays_all),),
    ),
    "others_updated_for_one_seat": Fault(
        "only the first seat's models of the others are updated",
        "others",
        wrap=((learner, "learn_from", _learners_after(_only_first)),),
    ),
    "learning_rate_of_one_seat": Fault(
        "one seat's policy has three times the learning rate",
        "policy",
        "ppo",
        wrap=((learner, "learn_from", _learners_after(_faster)),),
    ),
    "buffer_starved": Fault(
        "one seat learns from an eighth of its samples", "buffer", "ppo", wrap=((learner, "play", _starve),)
    ),
    "goals_logged_as_zero": Fault(
        "one seat's goals are zero in the record", "goals", wrap=((learner, "play", _forget_goals),)
    ),
    "imagined_goals_zero": Fault(
        "imagined play records no goals",
        "imagined goals",
        wrap=((imagination.Imagined, "__call__", _no_goals),),
    ),
    "imagined_reward_x5": Fault(
        "imagined play pays five times as much", "imagined rewards", wrap=((LearnedGame, "step", _five_times),)
    ),
    "padded_after_leaving": Fault(
        "models of the others learn from steps after a player left",
        "others: data",
        wrap=((learner, "study", _pad),),
    ),
    "imagined_all_legal": Fault(
        "every action is legal in imagined play",
        "imagined legal actions",
        wrap=((LearnedGame, "legal", _all_legal),),
    ),
    "no_termination": Fault("the world never ends anything", "world: ends", wrap=((world, "draw", _no_ends),)),
    "planes_and_actions_misaligned": Fault(
        "the world's data has planes in the seat's own order, and actions in another",
        "world: data",
        wrap=((world, "seen_by", _actions_left_behind),),
    ),
    "one_random_stream": Fault(
        "all seats draw their actions with one random stream",
        "random streams",
        "ppo",
        wrap=((learner, "collect", _one_stream),),
    ),
    "clipping_across_seats": Fault(
        "the steps of all seats are clipped by their common norm",
        "gradient clipping",
        "ppo",
        wrap=((learner, "learn_from", _learners_after(_clip_together)),),
    ),
}
