"""Dense networks as plain pytrees: every leaf is an array, so jit, grad, vmap and optax need no filters."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Key


class Dense(eqx.Module):
    """y = x W + b."""

    weight: Float32[Array, "*stack inputs outputs"]
    bias: Float32[Array, "*stack outputs"]

    def __call__(self, inputs: Float32[Array, " inputs"]) -> Float32[Array, " outputs"]:
        return inputs @ self.weight + self.bias


class MLP(eqx.Module):
    """Dense layers with tanh after each."""

    layers: tuple[Dense, ...]

    @property
    def num_inputs(self) -> int:
        return self.layers[0].weight.shape[0]

    def __call__(self, inputs: Float32[Array, " inputs"]) -> Float32[Array, " outputs"]:
        for layer in self.layers:
            inputs = jnp.tanh(layer(inputs))
        return inputs


class GRU(eqx.Module):
    """A gated recurrent unit (Cho et al., 2014)."""

    inputs: Dense
    """Onto reset, update and new state."""
    hidden: Dense

    @property
    def size(self) -> int:
        return self.hidden.weight.shape[-2]

    def __call__(
        self, hidden: Float32[Array, " hidden"], inputs: Float32[Array, " inputs"]
    ) -> Float32[Array, " hidden"]:
        """The next state."""
        of_inputs, of_hidden = (jnp.split(each, 3) for each in (self.inputs(inputs), self.hidden(hidden)))
        reset, update = (jax.nn.sigmoid(of_inputs[gate] + of_hidden[gate]) for gate in (0, 1))
        new = jnp.tanh(of_inputs[2] + reset * of_hidden[2])
        return (1 - update) * new + update * hidden


class Heads(eqx.Module):
    """A narrow dense layer, its weights stored by output: on a CPU their gradient is then several times faster."""

    weight: Float32[Array, "*stack outputs inputs"]
    bias: Float32[Array, "*stack outputs"]

    def __call__(self, inputs: Float32[Array, " inputs"]) -> Float32[Array, " outputs"]:
        return self.weight @ inputs + self.bias


def init_heads(num_inputs: int, gains: Sequence[float], *, key: Key[Array, ""]) -> Heads:
    """An output for each gain: normal weights, no bias."""
    spread = jnp.asarray(gains, jnp.float32) / num_inputs**0.5
    return Heads(spread[:, None] * jax.random.normal(key, (len(gains), num_inputs)), jnp.zeros(len(gains), jnp.float32))


def init_dense(num_inputs: int, num_outputs: int, gain: float, *, key: Key[Array, ""]) -> Dense:
    """Normal weights of that gain, no bias. Not orthogonal ones: their QR, mapped over seeds, can hang on a CPU."""
    initializer = jax.nn.initializers.variance_scaling(gain**2, "fan_in", "truncated_normal")
    return Dense(initializer(key, (num_inputs, num_outputs), jnp.float32), jnp.zeros(num_outputs, jnp.float32))


def init_mlp(num_inputs: int, hidden: Sequence[int], *, key: Key[Array, ""]) -> MLP:
    keys = jax.random.split(key, len(hidden))
    sizes = (num_inputs, *hidden)
    return MLP(tuple(init_dense(sizes[i], size, 2**0.5, key=keys[i]) for i, size in enumerate(hidden)))


def init_gru(num_inputs: int, size: int, *, key: Key[Array, ""]) -> GRU:
    inputs_key, hidden_key = jax.random.split(key)
    return GRU(
        inputs=init_dense(num_inputs, 3 * size, 1.0, key=inputs_key),
        hidden=init_dense(size, 3 * size, 1.0, key=hidden_key),
    )
