"""A loop with models, in PyTorch: real and imagined buffers, opponent models, goals, and a world that is a regression.

Each of three seats learns alone. It infers a goal vector of each co-player, predicts the co-player's action from the
co-player's view and goal, and predicts its own next view, reward and end. From real states it imagines three steps, and
trains policy and critic on real and imagined data.

    python notes_torch.py recordings/notes
    hopplus-doctor recording recordings/notes

`--fault NAME` plants one of the mistakes that real code has had.
"""

import argparse

import numpy as np
import torch
from line_game import ACTIONS, CELLS, HORIZON, NUMBERS, SEATS, STAY, LineGame, legal, rules
from torch import nn

from hopplus_doctor import Recorder

FAULTS = {
    "imagined_rewards_times_5": "imagined rewards",
    "imagined_rewards_zero": "imagined rewards",
    "imagined_goals_zero": "goals",
    "real_goals_zero": "goals",
    "padded_opponent_data": "others: data",
    "opponent_labels_late": "others: data",
    "opponent_order_reversed": "others: data",
    "opponent_collapsed": "others",
    "opponent_never_updated": "others",
    "world_never_ends": "world: ends",
    "world_unscaled": "world: observations",
    "world_rewards_of_another_seat": "world: rewards",
    "imagined_bootstrap_missing": "targets",
    "rewards_of_the_first_seat": "rewards",
    "bootstrap_past_end": "ends: bootstrapping",
    "same_random_numbers": "random streams",
    "learns_after_leaving": "buffer: samples after leaving",
}
"""Each fault, and the part that has it."""
ENVS, STEPS, AHEAD, GOALS, DISCOUNT, LAMBDA, CLIP = 8, 24, 3, 2, 0.95, 0.9, 0.2
OTHERS = SEATS - 1
STARTS = np.array([0, 7, 14])
"""The steps of a rollout from which is imagined, in every env."""
MODULES = ("policy", "critic", "others", "world")
RATES = {"policy": 3e-3, "critic": 3e-3, "others": 1e-2, "world": 8e-3}


def network(inputs, outputs, hidden=48):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


def tensor(array):
    return torch.tensor(np.asarray(array), dtype=torch.float32)


class Agent:
    """One seat: policy, critic, opponent model and world, an optimiser for each, and random numbers of its own."""

    def __init__(self, seat, seed):
        torch.manual_seed(1000 * seed + seat)
        self.seat, self.random = seat, np.random.default_rng((seed, seat))
        self.policy, self.critic = (network(NUMBERS + OTHERS * GOALS, outputs) for outputs in (ACTIONS, 1))
        self.others = network(NUMBERS + GOALS, ACTIONS)
        self.world = network(NUMBERS + SEATS * ACTIONS, NUMBERS + 2, 96)
        self.optimisers = {name: torch.optim.Adam(getattr(self, name).parameters(), RATES[name]) for name in MODULES}

    def descend(self, name, loss):
        self.optimisers[name].zero_grad()
        loss.backward()
        self.optimisers[name].step()

    def logs(self, inputs, masks):
        return torch.log_softmax(self.policy(tensor(inputs)).masked_fill(~torch.tensor(masks), -1e9), -1)

    def value(self, inputs):
        return self.critic(tensor(inputs)).squeeze(-1)

    def act(self, inputs, masks):
        with torch.no_grad():
            return self.logs(inputs, masks).exp().numpy(), self.value(inputs).numpy()

    def predict_others(self, views, goals, fault):
        """The predicted actions of each co-player [..., others, actions]."""
        if fault == "opponent_collapsed":
            return np.broadcast_to(np.eye(ACTIONS)[STAY] * 0.96 + 0.01, (*views.shape[:-1], OTHERS, ACTIONS))
        with torch.no_grad():
            return torch.softmax(self.others(tensor(others_inputs(views, goals))), -1).numpy()

    def predict_world(self, views, joint, fault):
        """The next view, the reward and the probability of an end."""
        with torch.no_grad():
            change = self.world(tensor(world_inputs(views, joint)))
        factor = 25.0 if fault == "world_unscaled" else 1.0
        after = views + factor * change[..., :NUMBERS].numpy()
        return after, change[..., NUMBERS].numpy(), torch.sigmoid(change[..., NUMBERS + 1]).numpy()


def policy_inputs(views, goals):
    return np.concatenate([views, goals.reshape(*views.shape[:-1], -1)], -1)


def others_inputs(views, goals):
    """What each co-player sees, made from one's own view, and its goal."""
    cells, clock = views[..., :-1].reshape(*views.shape[:-1], SEATS, CELLS), views[..., -1:]
    seen = [np.roll(cells, -ahead, axis=-2).reshape(*views.shape[:-1], -1) for ahead in range(1, SEATS)]
    return np.stack([np.concatenate([v, clock, goals[..., j, :]], -1) for j, v in enumerate(seen)], -2)


def world_inputs(views, joint):
    return np.concatenate([views, np.eye(ACTIONS)[joint].reshape(*views.shape[:-1], -1)], -1)


def ego(array, axis=-1):
    """[..., seats] -> [..., seats, seats]: for each seat all seats, itself first."""
    return np.stack([np.roll(array, -seat, axis=axis) for seat in range(SEATS)], axis=axis - 1 if axis < 0 else axis)


def pick(chances, uniforms):
    return (uniforms[..., None] > chances.cumsum(-1)).sum(-1).clip(max=ACTIONS - 1)


def goals_of(places, there, heading):
    """What each co-player seems to be after [envs, seats, others, goals]: where it is, and where it was heading."""
    known = np.stack([places / (CELLS - 1), heading], -1) * there[..., None]
    return np.stack([np.roll(known, -seat, axis=1)[:, 1:] for seat in range(SEATS)], axis=1).astype(np.float32)


def play(game, agents, heading, begins, fault, steps=STEPS):
    """Play the game. Every array has the axes time, envs, seats."""
    rows = []
    for _ in range(steps):
        views, masks, there = game.view()
        places, heading = game.places, np.where(begins[:, None], 0.0, heading)
        goals = goals_of(places, there, heading)
        acted = [agent.act(policy_inputs(views[:, s], goals[:, s]), masks[:, s]) for s, agent in enumerate(agents)]
        uniforms = [agent.random.random(len(views)) for agent in agents]
        if fault == "same_random_numbers":
            uniforms = [uniforms[0]] * SEATS
        chances = np.stack([chance for chance, _ in acted], 1)
        actions = np.where(there, pick(chances, np.stack(uniforms, 1)), STAY)
        rewards, terminated, truncated, last, over = game.step(actions)
        heading = 0.5 * heading + np.where(over[:, None], 0.0, game.places - places)
        final = [agent.act(policy_inputs(last[:, s], goals[:, s]), masks[:, s])[1] for s, agent in enumerate(agents)]
        rows.append(
            {
                "observations": views,
                "legal": masks,
                "in_game": there,
                "goals": goals,
                "actions": actions,
                "probabilities": chances,
                "env_rewards": rewards,
                "terminated": terminated,
                "truncated": truncated,
                "values": np.stack([value for _, value in acted], 1),
                "final_values": np.stack(final, 1),
                "resets": np.repeat(begins[:, None], SEATS, 1),
                "next": last,
            }
        )
        begins = over
    data = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    data["log_probabilities"] = np.log(take(data["probabilities"], data["actions"]) + 1e-30)
    data["rewards"] = data["env_rewards"]
    if fault == "rewards_of_the_first_seat":
        data["rewards"] = np.repeat(data["env_rewards"][..., :1], SEATS, -1)
    views, masks, there = game.view()
    goals = goals_of(game.places, there, np.where(begins[:, None], 0.0, heading))
    ends = [agent.act(policy_inputs(views[:, s], goals[:, s]), masks[:, s])[1] for s, agent in enumerate(agents)]
    return data | {"last_values": np.stack(ends, 1)}, heading, begins


def take(chances, actions):
    return np.take_along_axis(chances, actions[..., None], -1)[..., 0]


def fit_models(agents, data, steps, fault):
    """Train the opponent models and the worlds. Returns the labels and the mask of the opponent data."""
    joint, there = ego(data["actions"]), ego(data["in_game"])
    labels = joint[..., 1:]
    if fault == "opponent_labels_late":
        labels = np.concatenate([labels[:1], labels[:-1]])
    if fault == "opponent_order_reversed":
        labels = labels[..., ::-1]
    learned = np.ones_like(there[..., 1:]) if fault == "padded_opponent_data" else there[..., 1:]
    for s, agent in enumerate(agents):
        views, mine = data["observations"][..., s, :], data["in_game"][..., s]
        pairs = others_inputs(views, data["goals"][..., s, :, :])[learned[..., s, :]]
        paid = data["env_rewards"][..., (s + 1) % SEATS if fault == "world_rewards_of_another_seat" else s][mine]
        ends = np.zeros_like(mine) if fault == "world_never_ends" else data["terminated"][..., s]
        before, after = views[mine], data["next"][..., s, :][mine]
        inputs, ends = world_inputs(before, joint[..., s, :][mine]), tensor(ends[mine])
        wanted = labels[..., s, :][learned[..., s, :]]
        for _ in range(steps):
            if fault != "opponent_never_updated" or s != 1:
                rows = agent.random.integers(len(pairs), size=256)
                guess = agent.others(tensor(pairs[rows]))
                agent.descend("others", nn.functional.cross_entropy(guess, torch.tensor(wanted[rows])))
            rows = agent.random.integers(len(inputs), size=256)
            out = agent.world(tensor(inputs[rows]))
            loss = (out[:, :NUMBERS] - tensor(after[rows] - before[rows])).square().sum(-1).mean()
            loss = loss + 10 * (out[:, NUMBERS] - tensor(paid[rows])).square().mean()  # rewards are rare
            loss = loss + nn.functional.binary_cross_entropy_with_logits(out[:, NUMBERS + 1], ends[rows])
            agent.descend("world", loss)
    return labels, learned


def look_ahead(agents, data, fault):
    """What the worlds predict along real actions, and what came. Every array has the axes time, starts, seats."""
    joint, rows = ego(data["actions"]), []
    views = data["observations"][STARTS].reshape(-1, SEATS, NUMBERS)
    valid = data["in_game"][STARTS].reshape(-1, SEATS)
    for ahead in range(AHEAD):
        at = STARTS + ahead
        acted = joint[at].reshape(-1, SEATS, SEATS)
        made = [agent.predict_world(views[:, s], acted[:, s], fault) for s, agent in enumerate(agents)]
        views, rewards, ends = (np.stack(parts, 1) for parts in zip(*made, strict=True))
        row = {"predicted_observations": views, "predicted_rewards": rewards, "predicted_ends": ends, "valid": valid}
        came = {"observations": "next", "rewards": "env_rewards", "ends": "terminated"}
        rows.append(
            row | {name: data[source][at].reshape(-1, *data[source].shape[2:]) for name, source in came.items()}
        )
        over = (data["terminated"] | data["truncated"])[at].reshape(-1, SEATS)
        valid = valid & ~over
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def imagine(agents, data, fault):
    """Imagine AHEAD steps from real states. Every array has the axes time, starts, seats."""
    made = [imagine_seat(agent, data, fault) for agent in agents]
    imagined = {name: np.stack([each[name] for each in made], 2) for name in made[0] if name != "last_values"}
    return imagined | {"last_values": np.stack([each["last_values"] for each in made], 1)}


def imagine_seat(agent, data, fault):
    """One seat's imagined steps: actions from the policy and the opponent model, the rest from the world."""
    s, rows = agent.seat, []
    views = data["observations"][STARTS][..., s, :].reshape(-1, NUMBERS)
    goals = data["goals"][STARTS][..., s, :, :].reshape(-1, OTHERS, GOALS)
    goals = np.zeros_like(goals) if fault == "imagined_goals_zero" else goals
    there = data["in_game"][STARTS][..., s].reshape(-1) & (views[:, -1] * HORIZON < HORIZON - AHEAD - 0.5)
    for _ in range(AHEAD):
        cells = views[:, :-1].reshape(-1, SEATS, CELLS)
        places, present = cells.argmax(-1), cells.max(-1) > 0.5
        present[:, 0] = there
        masks = legal(places, present)
        chances, values = agent.act(policy_inputs(views, goals), masks[:, 0])
        own = pick(chances, agent.random.random(len(views)))
        theirs = pick(agent.predict_others(views, goals, fault), agent.random.random((len(views), OTHERS)))
        theirs = np.where(take(masks[:, 1:].astype(float), theirs) > 0, theirs, STAY)
        joint = np.concatenate([own[:, None], theirs], -1)
        after, rewards, ends = agent.predict_world(views, joint, fault)
        _, left, paid = rules(places, present, joint)
        rewards = rewards * {"imagined_rewards_times_5": 5.0, "imagined_rewards_zero": 0.0}.get(fault, 1.0)
        rows.append(
            {
                "observations": views,
                "legal": masks[:, 0],
                "goals": goals,
                "actions": own,
                "values": values,
                "rewards": rewards,
                "terminated": ends > 0.5,
                "in_game": there,
                "learned": there,
                "log_probabilities": np.log(take(chances, own) + 1e-30),
                "true_rewards": paid[:, 0],
                "true_terminated": present[:, 0] & ~left[:, 0],
            }
        )
        there = there & ~(ends > 0.5)
        views = after if fault == "world_unscaled" else after.clip(0.0, 1.0)
    data = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    masks = np.ones((len(views), ACTIONS), bool)
    return data | {"last_values": agent.act(policy_inputs(views, goals), masks)[1]}


def advantages_of(data, fault, source):
    """Generalised advantage estimation, over the axes time, envs, seats."""
    truncated = data.get("truncated", np.zeros_like(data["terminated"]))
    stops, cuts = data["terminated"], data["terminated"] | truncated
    final, next_value = data.get("final_values", data["values"]), data["last_values"]
    if fault == "bootstrap_past_end" and source == "real":
        stops = cuts = np.zeros_like(cuts)
    if fault == "imagined_bootstrap_missing" and source == "imagined":
        next_value = np.zeros_like(next_value)
    advantage, found = np.zeros_like(next_value), np.zeros_like(data["values"])
    for step in reversed(range(len(found))):
        after = np.where(stops[step], 0.0, np.where(cuts[step], final[step], next_value))
        surprise = data["rewards"][step] + DISCOUNT * after - data["values"][step]
        advantage = surprise + DISCOUNT * LAMBDA * np.where(cuts[step], 0.0, advantage)
        found[step], next_value = advantage, data["values"][step]
    return found


def learn(agents, sources):
    """One step of PPO and of the critic on real and imagined data. Returns losses, and what the first loss saw."""
    losses = {f"value_loss_{name}": [] for name in sources}
    first = {name: [] for name in ("log_probabilities", "new_log_probabilities", "advantages", "normalised_advantages")}
    for s, agent in enumerate(agents):
        parts = []
        for data in sources.values():
            keep, inputs = data["learned"][..., s], policy_inputs(data["observations"], data["goals"])[..., s, :]
            names = ("legal", "actions", "log_probabilities", "advantages", "targets")
            parts.append([inputs[keep], *(data[name][:, :, s][keep] for name in names)])
        for name, part in zip(sources, parts, strict=True):
            with torch.no_grad():
                losses[f"value_loss_{name}"].append(float((agent.value(part[0]) - tensor(part[5])).square().mean()))
        inputs, masks, actions, old, raw, targets = (np.concatenate(each) for each in zip(*parts, strict=True))
        scaled = (raw - raw.mean()) / (raw.std() + 1e-8)
        for epoch in range(2):
            new = torch.gather(agent.logs(inputs, masks), -1, torch.tensor(actions)[:, None])[:, 0]
            if epoch == 0:
                for name, values in zip(first, (old, new.detach().numpy(), raw, scaled), strict=True):
                    first[name].append(values[:32])
            ratio, gain = (new - tensor(old)).exp(), tensor(scaled)
            agent.descend("policy", -torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean())
            agent.descend("critic", (agent.value(inputs) - tensor(targets)).square().mean())
    return losses, {name: np.stack(rows) for name, rows in first.items()}


def numpy_of(module):
    return [parameter.detach().numpy() for parameter in module.parameters()]


def new_recorder(folder, updates):
    return Recorder(
        folder,
        [f"player_{seat + 1}" for seat in range(SEATS)],
        axes="time envs seats",
        envs=24,
        updates=updates,
        modules=MODULES,
        num_actions=ACTIONS,
        discount=DISCOUNT,
        gae_lambda=LAMBDA,
        clip=CLIP,
        normalise_advantages="seat",
        shared_rewards=False,
        shared_parameters=False,
        symmetric=True,
        others_order="ego",
    )


def train(folder, *, seed=0, updates=6, fault=None):
    """Train, and record. Returns the folder of the recording."""
    torch.set_num_threads(1)
    agents = [Agent(seat, seed) for seat in range(SEATS)]
    many = LineGame(64, seed + 10_000)
    warm, _, _ = play(many, agents, np.zeros((64, SEATS)), np.ones(64, bool), fault, 36)
    fit_models(agents, warm, 250, fault)
    game, heading, begins = LineGame(ENVS, seed), np.zeros((ENVS, SEATS)), np.ones(ENVS, bool)
    recorder = new_recorder(folder, updates)
    for update in range(updates):
        data, heading, begins = play(game, agents, heading, begins, fault)
        parts = {name: [numpy_of(getattr(agent, name)) for agent in agents] for name in MODULES}
        recorder.checksums(update, "before", parts)
        chances = [
            agent.predict_others(data["observations"][:, :, s], data["goals"][:, :, s], fault)
            for s, agent in enumerate(agents)
        ]
        ahead, imagined = look_ahead(agents, data, fault), imagine(agents, data, fault)
        labels, learned = fit_models(agents, data, 10, fault)
        everyone = np.ones_like(data["in_game"])
        data["learned"] = everyone if fault == "learns_after_leaving" else data["in_game"]
        if fault == "real_goals_zero":
            data["goals"] = np.zeros_like(data["goals"])
        for name, source in (("real", data), ("imagined", imagined)):
            source["advantages"] = advantages_of(source, fault, name)
            source["targets"] = source["values"] + source["advantages"]
        losses, first = learn(agents, {"real": data, "imagined": imagined})
        recorder.checksums(update, "after", parts)
        recorder.record(update, "real", **{name: array for name, array in data.items() if name != "next"})
        recorder.record(update, "imagined", **imagined)
        predicted = {"probabilities": np.stack(chances, 2), "actions": labels, "learned": learned}
        recorder.record(update, "others", **predicted, in_game=ego(data["in_game"])[..., 1:])
        recorder.record(update, "world", **ahead)
        recorder.record(update, "minibatch", **first)
        recorder.record(update, "updates", **losses)
    return recorder.save()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--fault", choices=FAULTS)
    asked = parser.parse_args()
    print(train(asked.folder, seed=asked.seed, updates=asked.updates, fault=asked.fault))


if __name__ == "__main__":
    main()
