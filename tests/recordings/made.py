"""A right recording, in NumPy alone: random values and rewards, with advantages that follow."""

import numpy as np

from hopplus_doctor import Recorder

UPDATES, SEATS, ENVS, TIME, ACTIONS = 3, 3, 4, 30, 4
DISCOUNT, LAMBDA = 0.95, 0.9
NAMES = ("red", "blue", "green")


def arrays(seed: int) -> dict[str, np.ndarray]:
    """One update's steps, with the axes seats, envs, time. Episodes end at any time, some by a time limit."""
    random = np.random.default_rng(seed)
    shape = (SEATS, ENVS, TIME)
    over = np.broadcast_to(random.random((ENVS, TIME)) < 0.15, shape)
    truncated = over & np.broadcast_to(random.random((ENVS, TIME)) < 0.4, shape)
    terminated = over & ~truncated
    resets = np.concatenate([np.zeros((SEATS, ENVS, 1), bool), over[..., :-1]], -1)
    legal = random.random((*shape, ACTIONS)) < 0.7
    legal[..., 1] = True
    chances = np.where(legal, random.random((*shape, ACTIONS)) + 0.1, 0.0)
    chances /= chances.sum(-1, keepdims=True)
    actions = (random.random(shape)[..., None] > chances.cumsum(-1)).sum(-1).clip(max=ACTIONS - 1)
    rewards, values, final = random.normal(size=(3, *shape))
    last_values = random.normal(size=shape[:2])
    advantages = advantages_of(rewards, values, terminated, truncated, final, last_values)
    return {
        "actions": actions,
        "legal": legal,
        "probabilities": chances,
        "rewards": rewards,
        "env_rewards": rewards,
        "log_probabilities": np.log(np.take_along_axis(chances, actions[..., None], -1)[..., 0]),
        "terminated": terminated,
        "truncated": truncated,
        "resets": resets,
        "memory_resets": resets,
        "in_game": np.ones(shape, bool),
        "learned": np.ones(shape, bool),
        "values": values,
        "final_values": final,
        "last_values": last_values,
        "advantages": advantages,
        "targets": advantages + values,
        "goals": random.normal(size=(*shape, 2)),
    }


def advantages_of(rewards, values, terminated, truncated, final, last_values):
    """Each advantage as the sum of all later surprises of its episode, term by term."""
    found = np.zeros_like(rewards)
    for place in np.ndindex(*rewards.shape[:2]):
        for start in range(TIME):
            weight = 1.0
            for step in range(start, TIME):
                after = values[place][step + 1] if step + 1 < TIME else last_values[place]
                after = final[place][step] if truncated[place][step] else after
                after = 0.0 if terminated[place][step] else after
                found[place][start] += weight * (rewards[place][step] + DISCOUNT * after - values[place][step])
                weight *= DISCOUNT * LAMBDA
                if terminated[place][step] or truncated[place][step]:
                    break
    return found


def write(folder, change=lambda data: data, seed=0, **settings):
    """Write a recording whose updates are changed by a function."""
    about = {"discount": DISCOUNT, "gae_lambda": LAMBDA, "shared_rewards": False, "num_actions": ACTIONS}
    recorder = Recorder(folder, NAMES, **(about | settings))
    for update in range(UPDATES):
        recorder.record(update, **change(arrays(10 * seed + update)))
    return recorder.save()
