"""PPO in the manner of CleanRL, in PyTorch, with a learner for each of three seats, and ten lines that record it.

    python ppo_torch.py recordings/ppo
    hopplus-doctor recording recordings/ppo

`--fault NAME` plants one of the mistakes that real code has had, to see what the doctor says.
"""

import argparse

import line_game
import numpy as np
import torch
from line_game import ACTIONS, NUMBERS, SEATS, LineGame
from torch import nn

from hopplus_doctor import Recorder

FAULTS = {
    "bootstrap_past_end": "ends: bootstrapping",
    "end_of_the_step_before": "ends: masks",
    "advantages_across_episodes": "ends: advantages across episodes",
    "time_limit_is_an_end": "ends: time limits",
    "rewards_of_the_first_seat": "rewards",
    "same_random_numbers": "random streams",
    "memory_reset_late": "memory: resets",
    "normalised_across_seats": "policy: normalisation",
    "clipped_across_seats": "policy: gradient clipping",
    "no_mask_in_the_loss": "policy: log-probabilities",
    "no_mask_in_play": "legal masks",
    "learns_after_leaving": "buffer: samples after leaving",
    "critic_never_updated": "critic",
    "no_discount": "targets: discount",
}
"""Each fault, and the part that has it."""
ENVS, STEPS, EPOCHS, DISCOUNT, LAMBDA, CLIP, MAX_NORM = 8, 32, 2, 0.95, 0.9, 0.2, 0.5


class Learner:
    """One seat: two networks, their optimiser, and a random generator of its own."""

    def __init__(self, seed: int):
        torch.manual_seed(seed)
        size = 2 * NUMBERS  # the observation, and the trace of earlier ones
        self.policy = nn.Sequential(nn.Linear(size, 32), nn.Tanh(), nn.Linear(32, ACTIONS))
        self.critic = nn.Sequential(nn.Linear(size, 32), nn.Tanh(), nn.Linear(32, 1))
        self.generator = torch.Generator().manual_seed(seed)

    def log_policy(self, seen, mask):
        return torch.log_softmax(self.policy(seen).masked_fill(~mask, -1e9), dim=-1)

    def value(self, seen):
        return self.critic(seen).squeeze(-1)


def numpy_of(module):
    """The parameters of a module as a list of arrays, for a checksum."""
    return [parameter.detach().numpy() for parameter in module.parameters()]


def rollout(game, learners, memory, begins, fault):
    """Play STEPS steps. Every array has the axes time, envs, seats."""
    names = "seen actions legal probabilities log_probabilities rewards env_rewards terminated truncated resets"
    kept = {name: [] for name in f"{names} memory_resets in_game values final_values".split()}
    late = np.zeros_like(begins)
    for _ in range(STEPS):
        observations, masks, there = game.view()
        cleared = late if fault == "memory_reset_late" else begins
        memory = np.where(cleared[:, None, None], 0.0, 0.5 * memory) + observations
        late = begins
        seen = torch.tensor(np.concatenate([observations, memory], -1), dtype=torch.float32)
        usable = torch.ones(masks.shape, dtype=torch.bool) if fault == "no_mask_in_play" else torch.tensor(masks)
        with torch.no_grad():
            logs = torch.stack([each.log_policy(seen[:, s], usable[:, s]) for s, each in enumerate(learners)], 1)
            values = torch.stack([each.value(seen[:, s]) for s, each in enumerate(learners)], 1)
        drawn = [torch.rand(ENVS, generator=each.generator) for each in learners]
        if fault == "same_random_numbers":
            drawn = [drawn[0]] * SEATS
        below = logs.exp().cumsum(-1)
        actions = (torch.stack(drawn, 1)[..., None] > below).sum(-1).clamp(max=ACTIONS - 1)
        rewards, terminated, truncated, last, over = game.step(np.where(there, actions.numpy(), line_game.STAY))
        faded = torch.tensor(np.concatenate([last, 0.5 * memory + last], -1), dtype=torch.float32)
        with torch.no_grad():
            final = torch.stack([each.value(faded[:, s]) for s, each in enumerate(learners)], 1)
        used = np.repeat(rewards[:, :1], SEATS, axis=1) if fault == "rewards_of_the_first_seat" else rewards
        row = (seen.numpy(), actions.numpy(), masks, logs.exp().numpy(), chosen(logs, actions).numpy(), used, rewards)
        row += (terminated, truncated, wide(begins), wide(cleared), there, values.numpy(), final.numpy())
        for name, array in zip(kept, row, strict=True):
            kept[name].append(array)
        begins = over
    observations, _, _ = game.view()
    memory_next = np.where(begins[:, None, None], 0.0, 0.5 * memory) + observations
    seen = torch.tensor(np.concatenate([observations, memory_next], -1), dtype=torch.float32)
    with torch.no_grad():
        last_values = torch.stack([each.value(seen[:, s]) for s, each in enumerate(learners)], 1).numpy()
    return {name: np.stack(rows) for name, rows in kept.items()} | {"last_values": last_values}, memory, begins


def wide(flags):
    return np.repeat(flags[:, None], SEATS, axis=1)


def chosen(logs, actions):
    return torch.gather(logs, -1, actions[..., None]).squeeze(-1)


def advantages_of(data, fault):
    """Generalised advantage estimation, over the axes time, envs, seats."""
    stops, cuts = data["terminated"], data["terminated"] | data["truncated"]
    if fault == "end_of_the_step_before":
        stops = cuts = np.concatenate([np.zeros_like(cuts[:1]), cuts[:-1]])
    if fault == "time_limit_is_an_end":
        stops = cuts
    if fault == "bootstrap_past_end":
        stops = cuts = np.zeros_like(cuts)
    discount = 1.0 if fault == "no_discount" else DISCOUNT
    advantage, next_value = np.zeros_like(data["last_values"]), data["last_values"]
    found = np.zeros_like(data["values"])
    for step in reversed(range(STEPS)):
        after = np.where(stops[step], 0.0, np.where(cuts[step], data["final_values"][step], next_value))
        surprise = data["rewards"][step] + discount * after - data["values"][step]
        carry = 1.0 if fault == "advantages_across_episodes" else 1.0 - cuts[step]
        if fault == "advantages_across_episodes":
            surprise = data["rewards"][step] + discount * np.where(stops[step], 0.0, next_value) - data["values"][step]
        advantage = surprise + discount * LAMBDA * carry * advantage
        found[step], next_value = advantage, data["values"][step]
    return found


def learn(learners, optimisers, data, fault):
    """PPO's epochs. Returns what the first minibatch saw, and the norms of the gradients."""
    everyone = np.ones_like(data["in_game"]) if fault == "learns_after_leaving" else data["in_game"]
    raw = data["advantages"]
    mean, deviation = raw[everyone].mean(), raw[everyone].std()
    first = {name: [] for name in ("log_probabilities", "new_log_probabilities", "advantages", "normalised_advantages")}
    norms = {"gradient_norms": [0.0] * SEATS, "clipped_gradient_norms": [0.0] * SEATS}
    for epoch in range(EPOCHS):
        for seat, learner in enumerate(learners):
            keep = everyone[..., seat]
            seen = torch.tensor(data["seen"][..., seat, :][keep], dtype=torch.float32)
            mask = torch.tensor(data["legal"][..., seat, :][keep])
            if fault in ("no_mask_in_the_loss", "no_mask_in_play"):
                mask = torch.ones_like(mask)
            actions = torch.tensor(data["actions"][..., seat][keep])
            old = torch.tensor(data["log_probabilities"][..., seat][keep])
            own = raw[..., seat][keep]
            scaled = (own - own.mean()) / (own.std() + 1e-8)
            if fault == "normalised_across_seats":
                scaled = (own - mean) / (deviation + 1e-8)
            gain = torch.tensor(scaled, dtype=torch.float32)
            new = chosen(learner.log_policy(seen, mask), actions)
            ratio = (new - old).exp()
            clipped = torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain)
            goal = torch.tensor(data["targets"][..., seat][keep], dtype=torch.float32)
            loss = -clipped.mean() + 0.5 * (learner.value(seen) - goal).square().mean()
            optimisers[seat].zero_grad()
            loss.backward()
            if epoch == 0:
                for name, values in zip(first, (old, new.detach(), own, scaled), strict=True):
                    first[name].append(np.asarray(values))
        clip(optimisers, norms if epoch == 0 else None, fault)
        for optimiser in optimisers:
            optimiser.step()
    short = min(len(values) for values in first["advantages"])
    return {name: np.stack([values[:short] for values in rows]) for name, rows in first.items()}, norms


def clip(optimisers, norms, fault):
    """Clip each seat's gradient by its own norm."""
    held = [[p for group in each.param_groups for p in group["params"] if p.grad is not None] for each in optimisers]
    sizes = [float(torch.stack([p.grad.square().sum() for p in parameters]).sum().sqrt()) for parameters in held]
    whole = float(np.sqrt(np.sum(np.square(sizes))))
    for seat, parameters in enumerate(held):
        factor = min(1.0, MAX_NORM / max(whole if fault == "clipped_across_seats" else sizes[seat], 1e-12))
        for parameter in parameters:
            parameter.grad.mul_(factor)
        if norms is not None:
            norms["gradient_norms"][seat], norms["clipped_gradient_norms"][seat] = sizes[seat], factor * sizes[seat]


def train(folder, *, seed=0, updates=10, fault=None, recorder_updates=8):
    """Train, and record. Returns the folder of the recording."""
    torch.set_num_threads(1)
    learners = [Learner(1000 * seed + seat) for seat in range(SEATS)]
    optimisers = []
    for seat, learner in enumerate(learners):
        parts = [learner.policy] if fault == "critic_never_updated" and seat == 1 else [learner.policy, learner.critic]
        optimisers.append(torch.optim.Adam([p for part in parts for p in part.parameters()], lr=3e-3))
    game, memory, begins = LineGame(ENVS, seed), np.zeros((ENVS, SEATS, NUMBERS)), np.ones(ENVS, bool)
    recorder = Recorder(
        folder,
        [f"player_{seat + 1}" for seat in range(SEATS)],
        axes="time envs seats",
        updates=recorder_updates,
        modules=["policy", "critic"],
        num_actions=ACTIONS,
        discount=DISCOUNT,
        gae_lambda=LAMBDA,
        clip=CLIP,
        normalise_advantages="seat",
        clip_gradients="seat",
        max_gradient_norm=MAX_NORM,
        shared_rewards=False,
        shared_parameters=False,
        symmetric=True,
    )
    for update in range(updates):
        data, memory, begins = rollout(game, learners, memory, begins, fault)
        data["advantages"] = advantages_of(data, fault)
        data["targets"] = data["values"] + data["advantages"]
        data["learned"] = np.ones_like(data["in_game"]) if fault == "learns_after_leaving" else data["in_game"]
        parts = {name: [numpy_of(getattr(each, name)) for each in learners] for name in ("policy", "critic")}
        recorder.checksums(update, "before", parts)
        first, norms = learn(learners, optimisers, data, fault)
        recorder.checksums(update, "after", parts)
        recorder.record(update, "real", **{name: array for name, array in data.items() if name != "seen"})
        recorder.record(update, "minibatch", **{name: rows[:, :32] for name, rows in first.items()})
        recorder.record(update, "updates", **norms)
    return recorder.save()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--fault", choices=FAULTS)
    asked = parser.parse_args()
    print(train(asked.folder, seed=asked.seed, updates=asked.updates, fault=asked.fault))


if __name__ == "__main__":
    main()
