"""Independent PPO on JaxMARL's games in plain JAX and optax: what `hopplus train ppo --game jaxmarl:NAME` is held to.

In the manner of JaxMARL's feed-forward IPPO baseline: one network for all agents, whose samples are rows of one batch,
and a whole run is one compiled program. The network, the losses and the optimiser are those of `hopplus`, so that the
same settings mean the same thing: a tanh trunk with one head for logits and value, GAE, clipped ratios and values,
losses of the critic in units of the largest reward, Adam with epsilon 1e-5, gradients clipped by their norm. Two things
are as in JaxMARL: a minibatch mixes rows of all agents, and advantages are normalised over the minibatch. `hopplus`
takes the same joint steps for each seat, and normalises within a seat.

An episode that reaches its time limit has terminated, as these games say. Seeds take turns.

    python benchmarks/bare_ippo.py            3 seeds of every game
    python benchmarks/bare_ippo.py --quick    1 seed, a twentieth of the steps
"""

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from measure import print_json, print_table
from peers import quietly

Parameters = dict[str, Array]


@dataclass(frozen=True)
class Settings:
    """How one game is learned. Names are those of `hopplus`, where it has the setting."""

    steps: int
    """Environment steps of a run: one step of all agents of one environment is one."""
    envs: int
    rollout_steps: int
    """Of each environment between two updates."""
    minibatches: int
    """Of one epoch."""
    epochs: int = 4
    hidden: tuple[int, ...] = (128, 128)
    """Widths of the tanh layers that policy and critic share."""
    learning_rate: float = 5e-4
    max_gradient_norm: float = 0.5
    discount: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    value_clip: float = 0.2
    """How far a value may move in one update, in units of `value_scale`."""
    value_scale: float = 1.0
    """The largest reward of the game."""
    value_coefficient: float = 0.5
    entropy_coefficient: float = 0.01
    """At the start of a run; it changes linearly."""
    final_entropy_coefficient: float = 0.01
    shaping: float = 0.0
    """Weight of the game's shaped reward at the start of a run; it changes linearly."""
    final_shaping: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the game, for `jaxmarl.make`."""

    @property
    def steps_per_update(self) -> int:
        return self.envs * self.rollout_steps

    @property
    def num_updates(self) -> int:
        return self.steps // self.steps_per_update

    @property
    def minibatch_size(self) -> int:
        """Samples of each agent in one gradient step."""
        return self.steps_per_update // self.minibatches


SETTINGS = {
    "coin_game": Settings(
        steps=800_000,
        envs=128,
        rollout_steps=100,
        minibatches=8,
        learning_rate=1e-3,
        options={"shared_rewards": True},
    ),
    "MPE_simple_spread_v3": Settings(steps=1_000_000, envs=128, rollout_steps=52, minibatches=8, learning_rate=1e-3),
    "overcooked": Settings(steps=500_000, envs=64, rollout_steps=100, minibatches=8, shaping=1.0, final_shaping=1.0),
}
"""By the name that JaxMARL gives the game.

The coin game pays both agents the sum; paid apart, returns rose and fell again within a run (one seed).
Without the shaped reward overcooked is not learned in so few steps. `value_scale` is 1, as in `hopplus` for games that
do not declare their rewards.
"""


@dataclass(frozen=True)
class Result:
    """What a run measured."""

    returns: np.ndarray
    """[seeds, updates]: the game's own rewards, the mean over agents and over episodes that ended; NaN if none did."""
    paid_returns: np.ndarray
    """The same with the shaped rewards that the agents learned from."""
    seconds: float
    """Of all seeds together, without compilation."""
    compile_seconds: float


class Game:
    """A game of JaxMARL with agents as an axis instead of keys of a dict."""

    def __init__(self, name: str, options: Mapping[str, Any]):
        with quietly():
            import jaxmarl

            warnings.filterwarnings("ignore", "OvercookedV2 is now released", DeprecationWarning)
            self.env = jaxmarl.make(name, **options)
        self.agents = self.env.agents
        self.num_actions = int(self.env.action_space(self.agents[0]).n)  # pyright: ignore[reportAttributeAccessIssue]

    def reset(self, key: Array) -> tuple[Any, Array]:
        """The state and what each agent sees, [agents, features]."""
        seen, state = self.env.reset(key)
        return state, self.stack(seen)

    def step(self, state: Any, actions: Array, key: Array) -> tuple[Any, Array, Array, Array, Array]:
        """State, views, rewards [agents], shaped rewards [agents], and whether the episode is over; a reset follows."""
        joint = {agent: actions[index] for index, agent in enumerate(self.agents)}
        seen, state, rewards, dones, info = self.env.step(key, state, joint)
        own = self.stack(rewards)[:, 0].astype(jnp.float32)
        shaped = self.stack(info["shaped_reward"])[:, 0] if "shaped_reward" in info else jnp.zeros_like(own)
        return state, self.stack(seen), own, shaped, dones["__all__"]

    def stack(self, by_agent: Mapping[str, Any]) -> Array:
        return jnp.stack([jnp.reshape(by_agent[agent], -1) for agent in self.agents])


class State(NamedTuple):
    parameters: Parameters
    optimizer: optax.OptState
    envs: Any
    views: Array  # [envs, agents, features], in the game's own dtype
    returns: Array  # [envs, 2]: own and paid, so far in this episode, the mean over agents


class Batch(NamedTuple):
    """Leading axes: [time, envs, agents], later [rows]."""

    views: Array
    actions: Array
    log_probs: Array
    values: Array
    advantages: Array


def train(env_name: str, settings: Settings, num_seeds: int = 1, seed: int = 0) -> Result:
    """Train so many seeds from scratch, one after the other."""
    keys = jax.random.split(jax.random.key(seed), num_seeds)
    started = time.perf_counter()
    run = jax.jit(make_run(Game(env_name, settings.options), settings)).lower(keys[0]).compile()
    compiled = time.perf_counter()
    curves = np.stack([np.asarray(run(key)) for key in keys])
    return Result(curves[..., 0], curves[..., 1], time.perf_counter() - compiled, compiled - started)


def random_return(env_name: str, settings: Settings, num_updates: int = 20, seed: int = 0) -> float:
    """The mean return of agents that draw every action alike."""
    game = Game(env_name, settings.options)

    @jax.jit
    def play(key: Array) -> Array:
        first_key, play_key = jax.random.split(key)
        state = first_state(game, settings, first_key)
        state = state._replace(parameters=jax.tree.map(jnp.zeros_like, state.parameters))

        def one_rollout(state: State, key: Array) -> tuple[State, Array]:
            state, _, mean_returns = rollout(game, settings, state, jnp.float32(1.0), key)
            return state, mean_returns[0]

        return jax.lax.scan(one_rollout, state, jax.random.split(play_key, num_updates))[1]

    return float(np.nanmean(play(jax.random.key(seed))))


def final_returns(returns: np.ndarray, share: float = 0.1) -> np.ndarray:
    """The mean return of each seed, [seeds], over the last share of the updates in which episodes ended."""
    ended = returns[:, ~np.isnan(returns).any(axis=0)]
    return ended[:, -max(round(ended.shape[1] * share), 1) :].mean(axis=1)


def make_run(game: Game, settings: Settings) -> Callable[[Array], Array]:
    """`run(key) -> mean returns [updates, 2]`: a whole run of one seed."""

    def run(key: Array) -> Array:
        first_key, run_key = jax.random.split(key)
        state = first_state(game, settings, first_key)

        def update(state: State, number: Array) -> tuple[State, Array]:
            rollout_key, shuffle_key = jax.random.split(jax.random.fold_in(run_key, number))
            remaining = 1.0 - number / settings.num_updates
            state, batch, mean_returns = rollout(game, settings, state, remaining, rollout_key)
            return learn(settings, state, batch, remaining, shuffle_key), mean_returns

        return jax.lax.scan(update, state, jnp.arange(settings.num_updates))[1]

    return run


def first_state(game: Game, settings: Settings, key: Array) -> State:
    network_key, env_key = jax.random.split(key)
    envs, views = jax.vmap(game.reset)(jax.random.split(env_key, settings.envs))
    parameters = init_network(views.shape[-1], settings.hidden, game.num_actions, network_key)
    return State(parameters, optimizer(settings).init(parameters), envs, views, jnp.zeros((settings.envs, 2)))


def optimizer(settings: Settings) -> optax.GradientTransformation:
    return optax.chain(
        optax.clip_by_global_norm(settings.max_gradient_norm), optax.adam(settings.learning_rate, eps=1e-5)
    )


def rollout(game: Game, settings: Settings, state: State, remaining: Array, key: Array) -> tuple[State, Batch, Array]:
    """The state after the steps, what was recorded, and the mean own and paid return of the episodes that ended."""
    weight = changing(settings.shaping, settings.final_shaping, remaining)

    def one_step(carry: tuple[Any, Array, Array], key: Array) -> tuple[tuple[Any, Array, Array], tuple]:
        envs, views, returns = carry
        act_key, step_key = jax.random.split(key)
        log_probs, values = apply(state.parameters, views)
        actions = draw(log_probs, jax.random.uniform(act_key, log_probs.shape[:-1]))
        step_keys = jax.random.split(step_key, settings.envs)
        envs, after, own, shaped, over = jax.vmap(game.step)(envs, actions, step_keys)
        paid = own + weight * shaped
        returns += jnp.stack([jnp.mean(own, axis=-1), jnp.mean(paid, axis=-1)], axis=-1)
        ended = jnp.sum(jnp.where(over[:, None], returns, 0.0), axis=0), jnp.sum(over)
        sample = views, actions, chosen(log_probs, actions), values
        return (envs, after, jnp.where(over[:, None], 0.0, returns)), (sample, paid, over, ended)

    keys = jax.random.split(key, settings.rollout_steps)
    carry, recorded = jax.lax.scan(one_step, (state.envs, state.views, state.returns), keys)
    (views, actions, log_probs, values), paid, over, (totals, episodes) = recorded
    envs, last_views, returns = carry
    last_values = apply(state.parameters, last_views)[1]
    advantages = estimate_advantages(settings, paid, values, last_values, over[..., None])
    batch = Batch(views, actions, log_probs, values, advantages)
    mean_returns = jnp.sum(totals, axis=0) / jnp.sum(episodes)
    return State(state.parameters, state.optimizer, envs, last_views, returns), batch, mean_returns


def estimate_advantages(settings: Settings, rewards: Array, values: Array, last: Array, over: Array) -> Array:
    def backwards(carry: tuple[Array, Array], step: tuple[Array, ...]) -> tuple[tuple[Array, Array], Array]:
        next_values, later = carry
        rewards, values, over = step
        discounts = jnp.where(over, 0.0, settings.discount)
        advantages = rewards + discounts * (next_values + settings.gae_lambda * later) - values
        return (values, advantages), advantages

    return jax.lax.scan(backwards, (last, jnp.zeros_like(last)), (rewards, values, over), reverse=True)[1]


def learn(settings: Settings, state: State, batch: Batch, remaining: Array, key: Array) -> State:
    """All epochs over the rows of all agents."""
    rows = jax.tree.map(lambda leaf: leaf.reshape(batch.actions.size, *leaf.shape[3:]), batch)
    per_epoch = settings.minibatches * (batch.actions.size // settings.minibatches)
    orders = jax.vmap(lambda key: jax.random.permutation(key, batch.actions.size)[:per_epoch])
    minibatches = orders(jax.random.split(key, settings.epochs)).reshape(settings.epochs * settings.minibatches, -1)
    entropy_coefficient = changing(settings.entropy_coefficient, settings.final_entropy_coefficient, remaining)

    def one_minibatch(carry: tuple[Parameters, optax.OptState], indices: Array) -> tuple[tuple, None]:
        parameters, optimizer_state = carry
        minibatch = jax.tree.map(lambda leaf: leaf[indices], rows)
        gradient = jax.grad(loss)(parameters, minibatch, settings, entropy_coefficient)
        updates, optimizer_state = optimizer(settings).update(gradient, optimizer_state)
        return (optax.apply_updates(parameters, updates), optimizer_state), None

    (parameters, optimizer_state), _ = jax.lax.scan(one_minibatch, (state.parameters, state.optimizer), minibatches)
    return state._replace(parameters=parameters, optimizer=optimizer_state)


def loss(parameters: Parameters, batch: Batch, settings: Settings, entropy_coefficient: Array) -> Array:
    log_probs, values = apply(parameters, batch.views)
    ratios = jnp.exp(chosen(log_probs, batch.actions) - batch.log_probs)
    centred = batch.advantages - jnp.mean(batch.advantages)
    scaled = centred / jnp.sqrt(jnp.mean(centred**2) + 1e-8)
    surrogate = jnp.minimum(ratios * scaled, jnp.clip(ratios, 1 - settings.clip, 1 + settings.clip) * scaled)
    targets, reach = batch.values + batch.advantages, settings.value_clip * settings.value_scale
    near = batch.values + jnp.clip(values - batch.values, -reach, reach)
    squares = jnp.maximum((values - targets) ** 2, (near - targets) ** 2) / settings.value_scale**2
    entropy = -jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1)
    return jnp.mean(0.5 * settings.value_coefficient * squares - surrogate - entropy_coefficient * entropy)


def changing(first: float, last: float, remaining: Array) -> Array:
    return last + (first - last) * remaining


def init_network(inputs: int, hidden: Sequence[int], num_actions: int, key: Array) -> Parameters:
    """Weights of a layer are [inputs, outputs], those of the head [outputs, inputs]: its gradient is then faster."""
    *keys, head_key = jax.random.split(key, len(hidden) + 1)
    normal = jax.nn.initializers.variance_scaling(2.0, "fan_in", "truncated_normal")
    sizes, parameters = (inputs, *hidden), {}
    for index, size in enumerate(hidden):
        parameters |= {f"weight_{index}": normal(keys[index], (sizes[index], size)), f"bias_{index}": jnp.zeros(size)}
    gains = jnp.array([0.01] * num_actions + [1.0]) / hidden[-1] ** 0.5
    head = gains[:, None] * jax.random.normal(head_key, (num_actions + 1, hidden[-1]))
    return parameters | {"head": head, "head_bias": jnp.zeros(num_actions + 1)}


def apply(parameters: Parameters, views: Array) -> tuple[Array, Array]:
    """Log-probabilities [..., actions] and values [...]"""
    hidden = views.astype(jnp.float32)
    for index in range(len(parameters) // 2 - 1):
        hidden = jnp.tanh(hidden @ parameters[f"weight_{index}"] + parameters[f"bias_{index}"])
    outputs = jnp.einsum("...h,oh->...o", hidden, parameters["head"]) + parameters["head_bias"]
    return jax.nn.log_softmax(outputs[..., :-1]), outputs[..., -1]


def chosen(log_probs: Array, actions: Array) -> Array:
    """By a sum, since the gradient of a gather is a scatter, which is slow on a CPU."""
    return jnp.sum(jnp.where(actions[..., None] == np.arange(log_probs.shape[-1]), log_probs, 0.0), axis=-1)


def draw(log_probs: Array, uniforms: Array) -> Array:
    """The first action whose cumulated probability is above the number."""
    cumulated = jnp.cumsum(jnp.exp(log_probs), axis=-1)
    passed = cumulated[..., :-1] <= (uniforms * cumulated[..., -1])[..., None]
    return jnp.sum(passed, axis=-1, dtype=jnp.int32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1 seed, a twentieth of the steps")
    parser.add_argument("--games", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    given = parser.parse_args()
    num_seeds, figures, rows = 1 if given.quick else 3, {}, []
    for name in given.games:
        settings = SETTINGS[name]
        if given.quick:
            settings = replace(settings, steps=max(settings.steps // 20, 5 * settings.steps_per_update))
        random, result = random_return(name, settings), train(name, settings, num_seeds)
        final, seconds = final_returns(result.returns), result.seconds / num_seeds
        figures[name] = {"random": random, "final": final.tolist(), "seconds_per_seed": seconds}
        figures[name] |= {"compile_seconds": result.compile_seconds, "settings": asdict(settings)}
        per_seed = " ".join(f"{value:.2f}" for value in final)
        steps = settings.num_updates * settings.steps_per_update
        rows.append((name, f"{steps:,}", f"{random:.2f}", per_seed, f"{seconds:.1f}", f"{result.compile_seconds:.1f}"))
    heads = ("game", "env steps", "random return", "final return, seed by seed", "seconds a seed", "compilation")
    print_table("bare IPPO", heads, rows)
    print_json({"seeds": num_seeds, "games": figures}, ["jax", "jaxmarl", "optax"])


if __name__ == "__main__":
    main()
