"""PPO in the manner of PureJaxRL: a whole update is one compiled function, with both seats side by side by `vmap`.

    python ppo_jax.py recordings/jax
    hopplus-doctor recording recordings/jax

The game is a repeated stag hunt for two. The compiled update returns what the recorder keeps, so recording costs a copy
of a few arrays. Without hopplus, and without a library of networks or optimisers.
"""

import argparse
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from hopplus_doctor import Recorder

PAYOFFS = jnp.array([[4.0, 0.0], [3.0, 3.0]])
"""Of the row player: hunt the stag, or the hare."""
SEATS, ACTIONS, ENVS, STEPS, HORIZON, HIDDEN = 2, 2, 8, 32, 10, 16
DISCOUNT, LAMBDA, CLIP, RATE, EPOCHS = 0.9, 0.9, 0.2, 0.05, 2
NUMBERS = 2 * ACTIONS + 1


def init(key):
    """The parameters of one seat: a shared layer, and heads for policy and value."""
    first, policy, value = jax.random.split(key, 3)
    return {
        "first": jax.random.normal(first, (NUMBERS, HIDDEN)) / jnp.sqrt(NUMBERS),
        "policy": 0.1 * jax.random.normal(policy, (HIDDEN, ACTIONS)),
        "value": 0.1 * jax.random.normal(value, (HIDDEN,)),
    }


def apply(params, seen):
    """Log-probabilities and the value for observations [..., numbers]."""
    hidden = jnp.tanh(seen @ params["first"])
    return jax.nn.log_softmax(hidden @ params["policy"]), hidden @ params["value"]


def observe(last, time):
    """[seats, envs, numbers]: the last actions, one's own first, and the time. At first there is no action."""
    known = jax.nn.one_hot(last, ACTIONS) * (time > 0)[None, :, None]
    clock = jnp.broadcast_to(time[None, :, None] / HORIZON, (SEATS, ENVS, 1))
    return jnp.concatenate([known, known[::-1], clock], -1)


def play_step(params, carry, keys):
    """One step of all environments; `keys` has one for each seat."""
    last, time = carry
    seen = observe(last, time)
    logs, values = jax.vmap(apply)(params, seen)
    actions = jax.vmap(jax.random.categorical)(keys, logs)
    rewards = jnp.stack([PAYOFFS[actions[0], actions[1]], PAYOFFS[actions[1], actions[0]]])
    ended = jnp.broadcast_to(time + 1 >= HORIZON, (SEATS, ENVS))
    step = {
        "observations": seen,
        "actions": actions,
        "probabilities": jnp.exp(logs),
        "rewards": rewards,
        "log_probabilities": jnp.take_along_axis(logs, actions[..., None], -1)[..., 0],
        "values": values,
        "terminated": ended,
        "resets": jnp.broadcast_to(time == 0, (SEATS, ENVS)),
    }
    return (actions, jnp.where(time + 1 >= HORIZON, 0, time + 1)), step


def advantages_of(steps, last_values):
    """Generalised advantage estimation over the leading axis, time."""

    def back(carry, step):
        advantage, next_value = carry
        goes_on = 1.0 - step["terminated"]
        surprise = step["rewards"] + DISCOUNT * goes_on * next_value - step["values"]
        advantage = surprise + DISCOUNT * LAMBDA * goes_on * advantage
        return (advantage, step["values"]), advantage

    return jax.lax.scan(back, (jnp.zeros_like(last_values), last_values), steps, reverse=True)[1]


def loss(params, seen, actions, old, gain, targets):
    """PPO's loss of one seat, and the new log-probabilities."""
    logs, values = apply(params, seen)
    new = jnp.take_along_axis(logs, actions[..., None], -1)[..., 0]
    ratio = jnp.exp(new - old)
    clipped = jnp.minimum(ratio * gain, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * gain)
    return -clipped.mean() + 0.5 * jnp.square(values - targets).mean(), new


@jax.jit
def update_step(params, carry, key):
    """One update of both seats. Returns what is to be recorded too."""
    keys = jax.random.split(key, (STEPS, SEATS))
    carry, steps = jax.lax.scan(partial(play_step, params), carry, keys)
    last_values = jax.vmap(apply)(params, observe(*carry))[1]
    advantages = advantages_of(steps, last_values)
    scale = advantages.std((0, 2), keepdims=True) + 1e-8
    gain = (advantages - advantages.mean((0, 2), keepdims=True)) / scale
    targets = advantages + steps["values"]

    def seat_first(array):
        return jnp.swapaxes(array, 0, 1)

    data = [seat_first(x) for x in (steps["observations"], steps["actions"], steps["log_probabilities"], gain, targets)]
    first = None
    for _ in range(EPOCHS):
        gradients, new = jax.vmap(jax.grad(loss, has_aux=True))(params, *data)
        first = new if first is None else first
        params = jax.tree.map(lambda leaf, slope: leaf - RATE * slope, params, gradients)
    minibatch = {
        "log_probabilities": data[2],
        "new_log_probabilities": first,
        "advantages": seat_first(advantages),
        "normalised_advantages": data[3],
    }
    kept = steps | {"advantages": advantages, "targets": targets}
    return params, carry, kept, last_values, {name: rows.reshape(SEATS, -1) for name, rows in minibatch.items()}


def train(folder, *, seed=0, updates=6):
    """Train, and record. Returns the folder of the recording."""
    start, key = jax.random.split(jax.random.key(seed))
    params = jax.vmap(init)(jax.random.split(start, SEATS))
    carry = jnp.zeros((SEATS, ENVS), jnp.int32), jnp.zeros(ENVS, jnp.int32)
    recorder = Recorder(
        folder,
        ["player_1", "player_2"],
        axes="time seats envs",
        modules=["network"],
        num_actions=ACTIONS,
        discount=DISCOUNT,
        gae_lambda=LAMBDA,
        clip=CLIP,
        normalise_advantages="seat",
        shared_rewards=False,
        shared_parameters=False,
        symmetric=True,
    )
    for update in range(updates):
        before = by_seat(params)
        params, carry, steps, last_values, minibatch = update_step(params, carry, jax.random.fold_in(key, update))
        if recorder.wants(update):
            recorder.checksums(update, "before", {"network": before})
            recorder.checksums(update, "after", {"network": by_seat(params)})
            recorder.record(update, "real", **steps, env_rewards=steps["rewards"], last_values=last_values)
            recorder.record(update, "minibatch", **minibatch)
    return recorder.save()


def by_seat(params):
    """Each seat's parameters, as a list of arrays."""
    return [[np.asarray(leaf[seat]) for leaf in jax.tree.leaves(params)] for seat in range(SEATS)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=6)
    asked = parser.parse_args()
    print(train(asked.folder, seed=asked.seed, updates=asked.updates))


if __name__ == "__main__":
    main()
