"""A world without any knowledge of boards: it reads and predicts the fields of an observation, whatever they are.

A network with two layers and skips reads all fields, the joint action, who has left and the time. "Unchanged" is where
it starts from, for every entry x of a field:

    bit         planes of a board              logit of being on   (2x - 1) (3 + f)
    category    integers                       logits              f, and 3 more for x
    number      floats, images                 changes at all?     logit  f - 3
                                               if so: x + m        m normal, with a predicted spread
    reward      the game's reward support      logits              for each seat
                if it declares none            logits of `BINS`    even on a symlog scale, two-hot
    end         for each seat, for ever        logit

**The state of such a world.** If all seats see one board, it is the board, and the views of all seats follow from it,
as in every world of boards. All other fields are kept as the viewer sees them: from its own view and the joint action
to its own next view. A co-player's view is then the viewer's, rotated where the game declares how (`layout`), and the
viewer's own where the game does not tell what others see. The time counts on from the state that a rollout starts at.

Entries are drawn independently of each other, so a board can show a player twice or nowhere; `evaluate --world` counts
that. Who is in no cell has left the game, unless the game says that players return.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Key

from hopplus.core.numerics import flag_cross_entropy
from hopplus.games.fields import Field, Observation, features
from hopplus.games.game import GameSpec
from hopplus.models import world_rewards
from hopplus.models.config import WorldConfig
from hopplus.models.networks import Dense, Heads, init_dense, init_heads
from hopplus.models.world import (
    UNCHANGED,
    Outcome,
    Situation,
    WorldModel,
    WorldPrediction,
    has_shared_board,
    on_board,
    shows_who_left,
    viewed_fields,
)
from hopplus.models.world_rewards import num_rewards, symlog

LEAST_SPREAD, GREATEST_SPREAD = np.exp(-5.0), np.exp(5.0)
"""Of the change of a number."""
LARGE = 10.0
"""Numbers beyond it are read on a symlog scale only."""


class Change(eqx.Module):
    """How the numbers of a field change."""

    changes: Float32[Array, "*shape"]
    """The logit of changing at all."""
    mean: Float32[Array, "*shape"]
    log_spread: Float32[Array, "*shape"]

    def loss(self, before: Array, after: Array) -> Float32[Array, ""]:
        """Cross-entropy of changing, and the likelihood of the change, in units of the predicted spread.

        Without that unit (Seitzer et al., 2022) entries that are known to the last digit would drown all others.
        """
        before, after = (each.astype(jnp.float32) for each in (before, after))
        changed = (after != before).astype(jnp.float32)
        spread = jnp.exp(self.log_spread)
        surprise = 0.5 * jnp.square((after - before - self.mean) / spread) + self.log_spread
        of_size = jax.lax.stop_gradient(spread) * surprise * changed
        return jnp.sum(flag_cross_entropy(self.changes, changed) + of_size)

    def draw(self, before: Array, key: Key[Array, ""] | None) -> Array:
        """The next numbers; integers stay integers."""
        changes, change = self.changes > 0, self.mean
        if key is not None:
            flag_key, size_key = jax.random.split(key)
            changes = jax.random.bernoulli(flag_key, jax.nn.sigmoid(self.changes))
            change = change + jnp.exp(self.log_spread) * jax.random.normal(size_key, change.shape)
        after = before.astype(jnp.float32) + jnp.where(changes, change, 0.0)
        if jnp.issubdtype(before.dtype, jnp.floating):
            return after.astype(before.dtype)
        if before.dtype == bool:
            return after > 0.5
        bounds = jnp.iinfo(before.dtype)
        return jnp.clip(jnp.round(after), float(bounds.min), float(bounds.max)).astype(before.dtype)


Predicted = Change | Float32[Array, "..."]
"""Of a field: changes of numbers; logits of bits, *shape; logits of categories and none, [*shape, below + 1]."""


class FieldsPrediction(WorldPrediction):
    """Independent distributions of all entries."""

    fields: dict[str, Predicted]
    rewards: Float32[Array, "agents places"]
    """Logits of the reward support, or of `BINS`."""
    ended: Float32[Array, " agents"]

    def draw(self, spec, now, *, key):
        before = fields_of(spec, now)
        reward_key, end_key, fields_key = (None,) * 3 if key is None else jax.random.split(key, 3)
        after = {
            field.name: _draw(field, self.fields[field.name], before[field.name], _folded(fields_key, place))
            for place, field in enumerate(predicted_fields(spec))
        }
        ended = now.ended | _bits(self.ended, end_key)
        board = next((after.pop(field.name) for field in _board_fields(spec)), now.board)
        if shows_who_left(spec):
            ended |= ~on_board(board[..., : spec.num_walkers])
        rewards = _draw_rewards(spec, self.rewards, reward_key)
        return Outcome(board, jnp.where(now.ended, 0.0, rewards), ended, after or None)

    def expected_board(self, spec, now):
        board = next((self.fields[field.name] for field in _board_fields(spec)), None)
        return now.board.astype(jnp.float32) if not isinstance(board, jax.Array) else jax.nn.sigmoid(board)

    def expected_view(self, spec, now):
        view = now.view or {}
        expected = {field.name: _expected(field, self.fields[field.name], view) for field in viewed_fields(spec)}
        return expected or None

    def losses(self, spec, transition):
        """Negative log-likelihoods; rewards and ends of the seats that are in the game."""
        now, after = transition.now, transition.after
        before, then = fields_of(spec, now), fields_of(spec, after)
        names = {field.name: field for field in predicted_fields(spec)}
        of_fields = [_loss(field, self.fields[name], before[name], then[name]) for name, field in names.items()]
        playing, ended = (flags.astype(jnp.float32) for flags in (~now.ended, after.ended))
        return {
            "fields": sum(of_fields, jnp.float32(0)),
            "reward": jnp.sum(world_rewards.surprise(spec, self.rewards, after.rewards) * playing),
            "ended": jnp.sum(flag_cross_entropy(self.ended, ended) * playing),
        }


class FieldsWorld(WorldModel):
    """The parameters."""

    parts: ClassVar[tuple[str, ...]] = ("fields", "reward", "ended")
    learning_rate: ClassVar[float] = 1e-3
    weight_decay: ClassVar[float | None] = 1e-2

    first: Dense
    second: Dense
    heads: Heads
    """Of the second layer and all inputs: fields in the order of the spec, rewards, ends."""

    def __call__(self, spec: GameSpec, now: Situation) -> FieldsPrediction:
        inputs = _inputs(spec, now)
        hidden = jax.nn.relu(self.first(inputs))
        hidden = hidden + jax.nn.relu(self.second(hidden))
        outputs = self.heads(jnp.concatenate([hidden, inputs]))
        fields = predicted_fields(spec)
        sizes = [_num_outputs(field) for field in fields]
        *by_field, others = jnp.split(outputs, np.cumsum(sizes))
        before = fields_of(spec, now)
        rewards, ended = jnp.split(others, [spec.num_agents * num_rewards(spec)])
        return FieldsPrediction(
            fields={
                field.name: _from_unchanged(field, before[field.name], numbers)
                for field, numbers in zip(fields, by_field, strict=True)
            },
            rewards=rewards.reshape(spec.num_agents, -1),
            ended=ended,
        )


def init(config: WorldConfig, spec: GameSpec, *, key: Key[Array, ""]) -> FieldsWorld:
    """A world of fields that starts by predicting almost no change."""
    first_key, second_key, heads_key = jax.random.split(key, 3)
    num_inputs, hidden = num_features(spec), config.hidden
    num_outputs = sum(_num_outputs(field) for field in predicted_fields(spec))
    num_outputs += spec.num_agents * (num_rewards(spec) + 1)
    return FieldsWorld(
        first=init_dense(num_inputs, hidden, 2**0.5, key=first_key),
        second=init_dense(hidden, hidden, 2**0.5, key=second_key),
        heads=init_heads(hidden + num_inputs, [0.01] * num_outputs, key=heads_key),
    )


def predicted_fields(spec: GameSpec) -> tuple[Field, ...]:
    """The shared board if there is one, and the viewed fields."""
    return (*_board_fields(spec), *viewed_fields(spec))


def fields_of(spec: GameSpec, moment: Situation | Outcome) -> Observation:
    """The predicted fields by name, before or after a step."""
    return {field.name: moment.board for field in _board_fields(spec)} | (moment.view or {})


def num_features(spec: GameSpec) -> int:
    """How many numbers the network reads."""
    numbers = sum(field.num_features * (2 if _kind(field) == "number" else 1) for field in predicted_fields(spec))
    return numbers + spec.num_agents * (spec.num_actions + 1) + 2


def _inputs(spec: GameSpec, now: Situation) -> Float32[Array, " features"]:
    before, parts = fields_of(spec, now), []
    for field in predicted_fields(spec):
        numbers = features([field], before)
        is_number = _kind(field) == "number"
        parts += [jnp.clip(numbers, -LARGE, LARGE), symlog(numbers)] if is_number else [numbers]
    did = jax.nn.one_hot(now.actions, spec.num_actions).reshape(-1)
    time = jnp.stack([now.time / spec.horizon, now.time + 1 >= spec.horizon]).astype(jnp.float32)
    return jnp.concatenate([*parts, did, now.ended.astype(jnp.float32), time])


def _board_fields(spec: GameSpec) -> tuple[Field, ...]:
    return tuple(field for field in spec.observation if field.planes and has_shared_board(spec))


def _kind(field: Field) -> str:
    """bit, category or number."""
    return "bit" if field.planes else "category" if field.kind == "categories" else "number"


def _num_outputs(field: Field) -> int:
    entries = int(np.prod(field.shape))
    return entries * {"bit": 1, "category": field.below + 1, "number": 3}[_kind(field)]


def _from_unchanged(field: Field, before: Array, numbers: Float32[Array, " outputs"]) -> Predicted:
    """What the outputs of the network say about a field."""
    if _kind(field) == "bit":
        return (2 * before.astype(jnp.float32) - 1) * (UNCHANGED + numbers.reshape(field.shape))
    if _kind(field) == "category":
        return numbers.reshape(*field.shape, -1) + UNCHANGED * jax.nn.one_hot(_place(field, before), field.below + 1)
    changes, mean, log_spread = numbers.reshape(3, *field.shape)
    bounds = np.log(LEAST_SPREAD), np.log(GREATEST_SPREAD)
    return Change(changes - UNCHANGED, mean, jnp.clip(log_spread, *bounds))


def _place(field: Field, categories: Array) -> Array:
    """Categories as places of the logits: none is the last."""
    return jnp.where(categories < 0, field.below, categories)


def _loss(field: Field, predicted: Predicted, before: Array, after: Array) -> Float32[Array, ""]:
    if isinstance(predicted, Change):
        return predicted.loss(before, after)
    if _kind(field) == "bit":
        return jnp.sum(flag_cross_entropy(predicted, after.astype(jnp.float32)))
    is_chosen = jax.nn.one_hot(_place(field, after), field.below + 1)
    return -jnp.sum(is_chosen * jax.nn.log_softmax(predicted))


def _draw(field: Field, predicted: Predicted, before: Array, key: Key[Array, ""] | None) -> Array:
    if isinstance(predicted, Change):
        return predicted.draw(before, key)
    if _kind(field) == "bit":
        return _bits(predicted, key).astype(before.dtype)
    place = jnp.argmax(predicted, axis=-1) if key is None else jax.random.categorical(key, predicted)
    return jnp.where(place == field.below, -1, place).astype(before.dtype)


def _expected(field: Field, predicted: Predicted, before: Observation) -> Float32[Array, "..."]:
    """The expected features of a field; of categories their probabilities."""
    if isinstance(predicted, Change):
        return before[field.name].astype(jnp.float32) + jax.nn.sigmoid(predicted.changes) * predicted.mean
    return jax.nn.sigmoid(predicted) if _kind(field) == "bit" else jax.nn.softmax(predicted)[..., :-1]


def _draw_rewards(
    spec: GameSpec, logits: Float32[Array, "agents places"], key: Key[Array, ""] | None
) -> Float32[Array, " agents"]:
    if key is None:
        return world_rewards.likeliest(spec, logits)
    return world_rewards.reward_at(spec, jax.random.categorical(key, logits))


def _bits(logits: Float32[Array, "*shape"], key: Key[Array, ""] | None) -> Bool[Array, "*shape"]:
    return logits > 0 if key is None else jax.random.bernoulli(key, jax.nn.sigmoid(logits))


def _folded(key: Key[Array, ""] | None, number: int) -> Key[Array, ""] | None:
    return None if key is None else jax.random.fold_in(key, number)
