"""PPO in PyTorch on a stag hunt in NumPy, in the style of CleanRL: what `hopplus` training is compared with.

All environments step in one array operation each, Adam is fused, and the rollout's views are written into their place
in the buffer once. There are two of it: `Modules`, a module for each seat as CleanRL's scripts would have it, and
`Stacked`, tuned further: the four networks are one stack of weights for batched matrix products. Settings and batch
shapes are those of the other programs. Needs torch:

    python benchmarks/torch_ppo.py --side 4 --updates 200    the curve of mean returns and the speed
"""

import argparse
import math
import os
import time
from typing import NamedTuple

import numpy as np

# To be set before torch is loaded. By default its threads spin while they wait for each other, and on two cores any
# other busy process then makes it ten times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch  # pyright: ignore[reportMissingImports]
from torch import Tensor  # pyright: ignore[reportMissingImports]

from settings import Settings

PLAYERS, PREY, HORIZON = 4, 5, 35
STAG_REWARD, HARE_REWARD = 10.0, 1.0
UP, DOWN, LEFT, RIGHT, STAY, HUNT_STAG, HUNT_HARE = range(7)
ACTIONS, PLANES = 7, PLAYERS + 3
STAG_PLANE, HARE_PLANE = PLAYERS + 1, PLAYERS + 2
ILLEGAL_LOGIT = -1e9

HUNTS = np.array([HUNT_STAG] + [HUNT_HARE] * (PREY - 1))
HUNTERS_NEEDED = np.array([2] + [1] * (PREY - 1))
PREY_PLANES = np.array([STAG_PLANE] + [HARE_PLANE] * (PREY - 1))
PLACE_IN_VIEW = (np.arange(PLAYERS) - np.arange(PLAYERS)[:, None]) % PLAYERS
"""[viewer, player]: own seat first, then the seats after it."""


class StagHunt:
    """Many tables at once; one that is over is laid anew. Arrays are [envs, players] or [envs, prey]."""

    def __init__(self, side: int, num_envs: int, seed: int) -> None:
        self.side, self.num_envs = side, num_envs
        self.inputs = side * side * PLANES + 1 + PLAYERS * ACTIONS
        self.generator = np.random.default_rng(seed)
        self.position = np.zeros((num_envs, PLAYERS), np.int64)
        self.present = np.ones((num_envs, PLAYERS), bool)
        self.last_actions = np.full((num_envs, PLAYERS), -1)
        self.prey_position = np.zeros((num_envs, PREY), np.int64)
        self.prey_alive = np.ones((num_envs, PREY), bool)
        self.time = np.zeros(num_envs, np.int64)
        self.moved_by = np.array([-side, side, -1, 1, 0, 0, 0])
        self.reset(np.arange(num_envs))

    def reset(self, envs: np.ndarray) -> None:
        draws = self.generator.random((len(envs), self.side**2))
        cells = np.argsort(draws, axis=1)[:, : PLAYERS + PREY]
        self.position[envs], self.prey_position[envs] = cells[:, :PLAYERS], cells[:, PLAYERS:]
        self.present[envs], self.prey_alive[envs] = True, True
        self.last_actions[envs], self.time[envs] = -1, 0

    def on_prey(self) -> np.ndarray:
        """[envs, players, prey]"""
        return (self.position[:, :, None] == self.prey_position[:, None, :]) & self.prey_alive[:, None, :]

    def legal(self) -> np.ndarray:
        """[players, envs, actions]"""
        row, column = np.divmod(self.position, self.side)
        on_prey = self.on_prey()
        allowed = np.empty((PLAYERS, self.num_envs, ACTIONS), bool)
        allowed[..., UP], allowed[..., DOWN] = (row > 0).T, (row < self.side - 1).T
        allowed[..., LEFT], allowed[..., RIGHT] = (column > 0).T, (column < self.side - 1).T
        allowed[..., HUNT_STAG], allowed[..., HUNT_HARE] = on_prey[:, :, 0].T, on_prey[:, :, 1:].any(axis=2).T
        allowed &= self.present.T[:, :, None]
        allowed[..., STAY] = True
        return allowed

    def observe(self, out: np.ndarray) -> None:
        """Write every seat's view into out [players, envs, inputs], contiguous; who has left sees zeros."""
        out[...] = 0
        flat, cells = out.reshape(-1), self.side**2
        start = (np.arange(PLAYERS)[:, None] * self.num_envs + np.arange(self.num_envs)) * self.inputs
        sees = self.present.T[:, :, None]
        players = start[:, :, None] + self.position * PLANES + PLACE_IN_VIEW[:, None, :]
        prey = start[:, :, None] + self.prey_position * PLANES + PREY_PLANES
        played = start[:, :, None] + cells * PLANES + 1 + PLACE_IN_VIEW[:, None, :] * ACTIONS + self.last_actions
        flat[players[sees & self.present]] = 1
        flat[prey[sees & self.prey_alive]] = 1
        flat[played[sees & (self.last_actions >= 0)]] = 1
        out[..., cells * PLANES] = (self.time / HORIZON) * self.present.T

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rewards and terminations [envs, players], and which episodes are over [envs]; actions must be legal."""
        hunts = self.on_prey() & (actions[:, :, None] == HUNTS) & self.present[:, :, None]
        hunters = hunts.sum(axis=1)
        caught = hunters >= HUNTERS_NEEDED
        sharing = (hunts * (hunters * caught)[:, None, :]).sum(axis=2)
        worth = np.where(actions == HUNT_STAG, STAG_REWARD, HARE_REWARD)
        rewards = np.where(sharing > 0, worth / np.maximum(sharing, 1), 0.0)
        self.position += np.where(self.present, self.moved_by[actions], 0)
        self.last_actions = np.where(self.present, actions, -1)
        self.present &= sharing == 0
        self.prey_alive &= ~caught
        self.time += 1
        terminated = ~self.present | (self.time >= HORIZON)[:, None]
        over = terminated.all(axis=1)
        self.reset(np.flatnonzero(over))
        return rewards, terminated, over


class Modules(torch.nn.Module):
    """Four independent MLPs, a module each."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.trunks = torch.nn.ModuleList(
            torch.nn.Sequential(
                layer(inputs, hidden, math.sqrt(2)),
                torch.nn.Tanh(),
                layer(hidden, hidden, math.sqrt(2)),
                torch.nn.Tanh(),
            )
            for _ in range(PLAYERS)
        )
        self.actors = torch.nn.ModuleList(layer(hidden, ACTIONS, 0.01) for _ in range(PLAYERS))
        self.critics = torch.nn.ModuleList(layer(hidden, 1, 1.0) for _ in range(PLAYERS))

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        """[players, samples, inputs] to logits [players, samples, actions] and values [players, samples]"""
        hidden = [trunk(seen) for trunk, seen in zip(self.trunks, views, strict=True)]
        logits = [actor(one) for actor, one in zip(self.actors, hidden, strict=True)]
        values = [critic(one).squeeze(-1) for critic, one in zip(self.critics, hidden, strict=True)]
        return torch.stack(logits), torch.stack(values)

    def clip_gradients(self, max_norm: float) -> None:
        for modules in zip(self.trunks, self.actors, self.critics, strict=True):
            torch.nn.utils.clip_grad_norm_([p for module in modules for p in module.parameters()], max_norm)


def layer(inputs: int, outputs: int, gain: float) -> torch.nn.Linear:
    linear = torch.nn.Linear(inputs, outputs)
    torch.nn.init.orthogonal_(linear.weight, gain)
    torch.nn.init.zeros_(linear.bias)
    return linear


class Stacked(torch.nn.Module):
    """Four independent MLPs as stacked weights; the last layer holds the logits and the value."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.first, self.first_bias = stacked_layer(inputs, (hidden, math.sqrt(2)))
        self.second, self.second_bias = stacked_layer(hidden, (hidden, math.sqrt(2)))
        self.heads, self.heads_bias = stacked_layer(hidden, (ACTIONS, 0.01), (1, 1.0))

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        """[players, samples, inputs] to logits [players, samples, actions] and values [players, samples]"""
        hidden = torch.tanh(torch.baddbmm(self.first_bias, views, self.first))
        hidden = torch.tanh(torch.baddbmm(self.second_bias, hidden, self.second))
        heads = torch.baddbmm(self.heads_bias, hidden, self.heads)
        return heads[..., :ACTIONS], heads[..., ACTIONS]

    def clip_gradients(self, max_norm: float) -> None:
        """One norm over all seats would let the one with the largest gradient slow the others."""
        gradients = [parameter.grad for parameter in self.parameters() if parameter.grad is not None]
        squares = [torch.linalg.vector_norm(gradient, dim=(1, 2)) ** 2 for gradient in gradients]
        norms = torch.stack(squares).sum(dim=0).sqrt()
        scales = (max_norm / (norms + 1e-6)).clamp(max=1.0)[:, None, None]
        torch._foreach_mul_(gradients, [scales] * len(gradients))  # pyright: ignore[reportPrivateImportUsage]


def stacked_layer(inputs: int, *parts: tuple[int, float]) -> tuple[torch.nn.Parameter, torch.nn.Parameter]:
    """Weights [players, inputs, outputs] and biases of parts side by side, each orthogonal with its own gain."""

    def orthogonal(outputs: int, gain: float) -> Tensor:
        return torch.nn.init.orthogonal_(torch.empty(inputs, outputs), gain)

    weights = [torch.cat([orthogonal(*part) for part in parts], dim=1) for _ in range(PLAYERS)]
    biases = torch.zeros(PLAYERS, 1, sum(outputs for outputs, _ in parts))
    return torch.nn.Parameter(torch.stack(weights)), torch.nn.Parameter(biases)


class Batch(NamedTuple):
    """Samples of all seats: [players, samples, ...]."""

    views: Tensor
    legal: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    advantages: Tensor
    present: Tensor


class TorchPPO:
    """Self-play of four seats; `update` does one rollout and the PPO update on it."""

    def __init__(self, side: int, settings: Settings, seed: int, networks: type[Modules | Stacked] = Modules) -> None:
        torch.manual_seed(seed)
        self.settings = settings
        self.game = StagHunt(side, settings.num_envs, seed)
        self.networks = networks(self.game.inputs, settings.hidden_size)
        self.optimizer = torch.optim.Adam(
            self.networks.parameters(), lr=settings.learning_rate, eps=settings.adam_epsilon, fused=True
        )
        self.episode_returns = np.zeros(settings.num_envs)
        shape = PLAYERS, settings.num_steps, settings.num_envs
        self.views, self.legal = torch.zeros(*shape, self.game.inputs), torch.zeros(*shape, ACTIONS, dtype=torch.bool)
        self.actions, self.present = torch.zeros(shape, dtype=torch.long), torch.zeros(shape)
        self.log_probs, self.values, self.rewards, self.going_on = (torch.zeros(shape) for _ in range(4))
        self.last_views = torch.zeros(PLAYERS, settings.num_envs, self.game.inputs)

    @property
    def env_steps_per_update(self) -> int:
        return self.settings.env_steps_per_update

    def update(self) -> dict[str, float]:
        finished = self.rollout()
        samples = self.env_steps_per_update
        fields = self.views, self.legal, self.actions, self.log_probs, self.values, self.advantages(), self.present
        batch = Batch(*(field.reshape(PLAYERS, samples, *field.shape[3:]) for field in fields))
        for _ in range(self.settings.num_epochs):
            for indices in torch.randperm(samples).split(self.settings.minibatch_size):
                self.learn(Batch(*(field.index_select(1, indices) for field in batch)))
        return {"mean_return": float(np.mean(finished)) if len(finished) else float("nan"), "episodes": len(finished)}

    @torch.no_grad()
    def rollout(self) -> np.ndarray:
        """Fill the buffers; the returns of the episodes that ended, each the mean over its seats."""
        finished = []
        for step in range(self.settings.num_steps):
            self.game.observe(self.last_views.numpy())
            self.views[:, step] = self.last_views
            self.legal[:, step] = torch.from_numpy(self.game.legal())
            self.present[:, step] = torch.from_numpy(self.game.present.T)
            logits, self.values[:, step] = self.networks(self.last_views)
            log_probs = log_probabilities(logits, self.legal[:, step])
            noise = torch.empty_like(log_probs).exponential_()
            actions = torch.argmax(log_probs.exp() / noise, dim=-1)
            self.actions[:, step] = actions
            self.log_probs[:, step] = chosen(log_probs, actions)
            rewards, terminated, over = self.game.step(actions.numpy().T)
            self.rewards[:, step] = torch.from_numpy(rewards.T)
            self.going_on[:, step] = torch.from_numpy(~terminated.T)
            self.episode_returns += rewards.mean(axis=1)
            finished.append(self.episode_returns[over])
            self.episode_returns[over] = 0.0
        return np.concatenate(finished)

    @torch.no_grad()
    def advantages(self) -> Tensor:
        """GAE; past the end of a seat's game there is nothing."""
        self.game.observe(self.last_views.numpy())
        next_values = self.networks(self.last_views)[1]
        discounts = self.settings.discount * self.going_on
        advantages = torch.zeros_like(self.rewards)
        advantage = torch.zeros_like(next_values)
        for step in reversed(range(self.settings.num_steps)):
            errors = self.rewards[:, step] + discounts[:, step] * next_values - self.values[:, step]
            advantage = errors + discounts[:, step] * self.settings.gae_lambda * advantage
            advantages[:, step], next_values = advantage, self.values[:, step]
        return advantages

    def learn(self, batch: Batch) -> None:
        self.optimizer.zero_grad()
        self.loss(batch).backward()
        self.networks.clip_gradients(self.settings.max_gradient_norm)
        self.optimizer.step()

    def loss(self, batch: Batch) -> Tensor:
        """The sum over seats, whose parameters are apart."""
        clip = self.settings.clip
        weights = batch.present / batch.present.sum(dim=1, keepdim=True).clamp(min=1.0)
        logits, values = self.networks(batch.views)
        log_probs = log_probabilities(logits, batch.legal)
        advantages = normalised(batch.advantages, weights)
        ratios = torch.exp(chosen(log_probs, batch.actions) - batch.log_probs)
        surrogate = torch.minimum(ratios * advantages, ratios.clamp(1 - clip, 1 + clip) * advantages)
        targets = batch.advantages + batch.values
        clipped_values = batch.values + (values - batch.values).clamp(-clip, clip)
        value_loss = 0.5 * torch.maximum((values - targets) ** 2, (clipped_values - targets) ** 2)
        entropy = -(log_probs.exp() * log_probs).sum(dim=-1)
        losses = self.settings.value_coefficient * value_loss - surrogate - self.settings.entropy_coefficient * entropy
        return (weights * losses).sum()


def log_probabilities(logits: Tensor, legal: Tensor) -> Tensor:
    return torch.log_softmax(torch.where(legal, logits, ILLEGAL_LOGIT), dim=-1)


def chosen(log_probs: Tensor, actions: Tensor) -> Tensor:
    return log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def normalised(advantages: Tensor, weights: Tensor) -> Tensor:
    """Per seat; the weights are zero where the seat has left, and sum to one."""
    centred = advantages - (weights * advantages).sum(dim=1, keepdim=True)
    deviation = (weights * centred**2).sum(dim=1, keepdim=True).sqrt()
    return centred / (deviation + 1e-8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=4)
    parser.add_argument("--updates", type=int, default=200)
    options = parser.parse_args()
    learner = TorchPPO(options.side, Settings(), seed=0)
    started = time.perf_counter()
    for update in range(1, options.updates + 1):
        figures = learner.update()
        if update % 10 == 0:
            env_steps = update * learner.env_steps_per_update
            rate = env_steps / (time.perf_counter() - started)
            print(
                f"{env_steps:>9,} env steps  return {figures['mean_return']:.2f}  {rate:,.0f} env steps/s", flush=True
            )


if __name__ == "__main__":
    main()
