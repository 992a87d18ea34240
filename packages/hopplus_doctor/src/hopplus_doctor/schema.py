"""The arrays of a recording: the files, their axes and their meaning.

A recording is a folder with `recording.json` and folders of plain .npy files. Every array is optional. The first two
axes are always updates and seats (modules come before seats). What is missing leaves questions without an answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

FORMAT = 1
"""The number of the format that this version writes and reads."""
DESCRIPTION = "recording.json"
MOST_BYTES, MOST_TOGETHER = 1 << 28, 1 << 30
"""The largest array that is read, and the most bytes of all arrays together."""
MOST_TEXT = 1 << 20
"""The largest description that is read, in bytes."""
Scope = Literal["all", "seat", "none"]
SCOPES: tuple[Scope, ...] = ("all", "seat", "none")
"""Over what advantages are normalised, or gradients clipped: over all seats, over each seat alone, or not at all."""


@dataclass(frozen=True)
class Field:
    """One array: its axes, the kind of its numbers, and its meaning."""

    axes: str
    kind: Literal["number", "whole", "flag"]
    says: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.axes.split())


STEP = "updates seats envs time"
STEPS: Mapping[str, Field] = {
    "observations": Field(f"{STEP} numbers", "number", "what the seat sees before it acts, flattened"),
    "actions": Field(STEP, "whole", "the action, counted from 0"),
    "legal": Field(f"{STEP} actions", "flag", "the actions that are legal"),
    "probabilities": Field(f"{STEP} actions", "number", "the policy that sampled the action"),
    "log_probabilities": Field(STEP, "number", "the log-probability of the action when it was sampled"),
    "rewards": Field(STEP, "number", "the reward of the step, as the learner uses it"),
    "env_rewards": Field(STEP, "number", "the reward of the step, as the environment returned it"),
    "terminated": Field(STEP, "flag", "the seat's episode ends after this step, and nothing is bootstrapped"),
    "truncated": Field(STEP, "flag", "the episode is cut off after this step, by a time limit"),
    "resets": Field(STEP, "flag", "a new episode begins with this step"),
    "memory_resets": Field(STEP, "flag", "the recurrent state was reset before this step"),
    "in_game": Field(STEP, "flag", "the seat acts in this step: it has not left"),
    "learned": Field(STEP, "flag", "the policy's or the critic's loss counts this step"),
    "values": Field(STEP, "number", "the critic's value when the action was sampled"),
    "final_values": Field(STEP, "number", "where an episode was cut off: the value of its last observation"),
    "last_values": Field("updates seats envs", "number", "the value after the last step of the rollout"),
    "advantages": Field(STEP, "number", "the advantage, before it is normalised"),
    "targets": Field(STEP, "number", "what the critic is trained towards"),
    "action_values": Field(f"{STEP} actions", "number", "the value of each action, of a learner of action values"),
    "best_actions": Field(STEP, "whole", "the action that this learner takes for the best, if another network says so"),
    "places": Field(STEP, "whole", "the cell on which the seat stands, counted from 0"),
    "players_seen": Field(STEP, "whole", "of an observation of the whole board: how many players it shows"),
    "goals": Field(f"{STEP} goals", "number", "the goals that the policy reads, flattened"),
    "true_rewards": Field(STEP, "number", "of imagined steps: the reward that the true rules pay"),
    "true_terminated": Field(STEP, "flag", "of imagined steps: whether the true rules end the episode here"),
}
PREDICTED = f"{STEP} others"
OTHERS: Mapping[str, Field] = {
    "probabilities": Field(f"{PREDICTED} actions", "number", "the predicted actions of each co-player"),
    "actions": Field(PREDICTED, "whole", "the action that the co-player took, as the opponent model is trained on it"),
    "learned": Field(PREDICTED, "flag", "the opponent model is trained on this example"),
    "in_game": Field(PREDICTED, "flag", "the co-player has not left"),
}
AHEAD = "updates seats envs ahead"
WORLD: Mapping[str, Field] = {
    "predicted_observations": Field(f"{AHEAD} numbers", "number", "the predicted observation 1, 2, ... steps ahead"),
    "observations": Field(f"{AHEAD} numbers", "number", "the observation that came"),
    "predicted_rewards": Field(AHEAD, "number", "the predicted reward"),
    "rewards": Field(AHEAD, "number", "the reward that came"),
    "predicted_ends": Field(AHEAD, "number", "the predicted probability that the episode ends"),
    "ends": Field(AHEAD, "flag", "whether it ended"),
    "valid": Field(AHEAD, "flag", "the episode had not ended before this step"),
}
SAMPLE = "updates seats samples"
MINIBATCH: Mapping[str, Field] = {
    "log_probabilities": Field(SAMPLE, "number", "log-probabilities when the actions were sampled"),
    "new_log_probabilities": Field(SAMPLE, "number", "the same, as the first loss computes them, before any step"),
    "advantages": Field(SAMPLE, "number", "advantages before they are normalised"),
    "normalised_advantages": Field(SAMPLE, "number", "advantages as the loss uses them"),
}
UPDATES: Mapping[str, Field] = {
    "returns": Field("updates seats", "number", "the mean return of the episodes that ended in the update"),
    "value_loss_real": Field("updates seats", "number", "the value loss on real data"),
    "value_loss_imagined": Field("updates seats", "number", "the value loss on imagined data"),
    "gradient_norms": Field("updates seats", "number", "the norm of the seat's gradient before clipping"),
    "clipped_gradient_norms": Field("updates seats", "number", "the same after clipping"),
    "stream_ids": Field("updates seats", "whole", "a number of the random stream that samples the seat's actions"),
    "checksums_before": Field("updates modules seats", "whole", "checksums of parameters before the update"),
    "checksums_after": Field("updates modules seats", "whole", "checksums of parameters after the update"),
}
GROUPS: Mapping[str, Mapping[str, Field]] = {
    "real": STEPS,
    "imagined": STEPS,
    "others": OTHERS,
    "world": WORLD,
    "minibatch": MINIBATCH,
    "updates": UPDATES,
}


@dataclass(frozen=True)
class Settings:
    """What the trainer is meant to do. None stands for unknown."""

    discount: float | None = None
    gae_lambda: float | None = None
    """Lambda of generalised advantage estimation; 1 is the plain return."""
    clip: float | None = None
    """The clip range of PPO's ratio."""
    normalise_advantages: Scope | None = None
    clip_gradients: Scope | None = None
    max_gradient_norm: float | None = None
    shared_rewards: bool | None = None
    """Whether every seat is meant to get the same reward."""
    shared_parameters: bool | Sequence[Sequence[str]] | None = None
    """Whether all seats are meant to have the same parameters; or the groups of seats that share theirs, by name."""
    symmetric: bool | None = None
    """Whether all seats have the same role, so that their returns can be compared."""
    others_order: Literal["ego", "seats"] | None = None
    """The order of co-players: the seats after one's own, and then those before it (ego), or by number (seats)."""
    shared_observations: bool | None = None
    """Whether every seat is meant to see the same."""
    one_per_cell: bool | None = None
    """Whether a cell holds one player at most."""
    swaps: bool | None = None
    """Whether two players may exchange their cells in one step."""


GROUPS_WORDS = 'true, false, or groups of seats, as in [["wolf_1", "wolf_2"], ["sheep_1", "sheep_2"]]'


def names_groups(value: Any, seats: Sequence[str]) -> bool:
    """Whether a value is a list of lists of seats, with each seat in one of them at most."""
    if not isinstance(value, list | tuple) or not all(isinstance(group, list | tuple) for group in value):
        return False
    names = [name for group in value for name in group]
    return all(isinstance(name, str) and name in seats for name in names) and len(set(names)) == len(names)


def fields() -> Iterator[tuple[str, str, Field]]:
    """Group, name and field of every array."""
    for group, names in GROUPS.items():
        for name, field in names.items():
            yield group, name, field
