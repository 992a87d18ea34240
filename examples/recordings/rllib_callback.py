"""Record what RLlib samples, by a callback: PPO with a policy for each of three agents, on a small game in NumPy.

    pip install "ray[rllib]" torch pettingzoo
    python rllib_callback.py recordings/rllib
    hopplus-doctor recording recordings/rllib/runner_0

RLlib computes values and advantages in its learners, where callbacks do not reach. So the recording has what was
sampled: observations, actions, policies, rewards and ends.
"""

import argparse
from pathlib import Path

import numpy as np
from gymnasium import spaces
from line_game import ACTIONS, HORIZON, NUMBERS, SEATS, LineGame
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from hopplus_doctor import Recorder

AGENTS = [f"player_{seat}" for seat in range(SEATS)]
SAMPLED = 192
"""Steps that are recorded at once, of whole episodes in a row."""


class LineEnv(MultiAgentEnv):
    """The game of line_game.py. Everyone stays until the episode is over; who has left waits."""

    def __init__(self, config=None):
        super().__init__()
        self.possible_agents = self.agents = list(AGENTS)
        seen, chosen = spaces.Box(0.0, 1.0, (NUMBERS,), np.float32), spaces.Discrete(ACTIONS)
        self.observation_spaces = dict.fromkeys(AGENTS, seen)  # pyright: ignore[reportAttributeAccessIssue]
        self.action_spaces = dict.fromkeys(AGENTS, chosen)  # pyright: ignore[reportAttributeAccessIssue]
        self.seeds = np.random.default_rng((config or {}).get("seed", 0))

    def reset(self, *, seed=None, options=None):  # pyright: ignore[reportIncompatibleMethodOverride]
        self.game = LineGame(1, int(self.seeds.integers(2**31)) if seed is None else seed)
        return self._views(), {}

    def step(self, actions):  # pyright: ignore[reportIncompatibleMethodOverride]
        chosen = np.array([[actions[agent] for agent in AGENTS]])
        _, masks, _ = self.game.view()
        legal = np.take_along_axis(masks, chosen[..., None], -1)[..., 0]
        rewards, _, _, last, over = self.game.step(np.where(legal, chosen, 1))
        is_cut = bool(over[0]) and self.steps + 1 >= HORIZON
        self.steps += 1
        views = dict(zip(AGENTS, last[0], strict=True)) if over[0] else self._views(first=False)
        flags = {"__all__": bool(over[0]) and not is_cut}, {"__all__": is_cut}
        return views, dict(zip(AGENTS, rewards[0].tolist(), strict=True)), *flags, {}

    def _views(self, first=True):
        self.steps = 0 if first else self.steps
        return dict(zip(AGENTS, self.game.view()[0][0], strict=True))


def recording_callback(folder, agents, **settings):
    """A callback class that records whole episodes, in a folder for each runner of environments."""

    class Recording(RLlibCallback):
        recorder = None

        def on_sample_end(self, *, env_runner=None, samples=(), **_):
            if self.recorder is None:
                runner = getattr(env_runner, "worker_index", 0)
                self.recorder = Recorder(Path(folder) / f"runner_{runner}", agents, axes="seats envs time", **settings)
                self.rows, self.update = [], 0
            self.rows += [episode_rows(episode, agents) for episode in samples if episode.is_done]
            if sum(len(row["rewards"][0]) for row in self.rows) < SAMPLED:
                return  # a sample may be a single episode
            names = self.rows[0]
            joined = {name: np.concatenate([row[name] for row in self.rows], 1)[:, None, :SAMPLED] for name in names}
            self.recorder.record(self.update, "real", **joined)
            self.recorder.save()
            self.rows, self.update = [], self.update + 1

    return Recording


def episode_rows(episode, agents):
    """The steps of one whole episode; every array has the axes seats, time."""
    rows = {}
    for agent in agents:
        of = episode.agent_episodes[agent]
        logits = np.asarray(of.get_extra_model_outputs(Columns.ACTION_DIST_INPUTS), np.float64)
        chances = np.exp(logits - logits.max(-1, keepdims=True))
        rewards = np.asarray(of.get_rewards(), np.float64)
        at = np.arange(len(rewards))
        row = {
            "observations": np.asarray(of.get_observations())[: len(rewards)],
            "actions": np.asarray(of.get_actions(), np.int64),
            "probabilities": chances / chances.sum(-1, keepdims=True),
            "log_probabilities": np.asarray(of.get_extra_model_outputs(Columns.ACTION_LOGP), np.float64),
            "env_rewards": rewards,
            "rewards": rewards,
            "resets": at == 0,
            "terminated": (at == len(at) - 1) & bool(episode.is_terminated),
            "truncated": (at == len(at) - 1) & bool(episode.is_truncated),
        }
        for name, array in row.items():
            rows.setdefault(name, []).append(array)
    return {name: np.stack(arrays) for name, arrays in rows.items()}


def train(folder, *, updates=3, seed=0):
    """Train PPO, and record. Returns the folder of the recording."""
    config = (
        PPOConfig()
        .environment(LineEnv, env_config={"seed": seed})
        .env_runners(num_env_runners=0, batch_mode="complete_episodes")
        .multi_agent(policies=set(AGENTS), policy_mapping_fn=lambda agent, *_, **__: str(agent))
        .training(train_batch_size=512, minibatch_size=128, num_epochs=1)
        .callbacks(recording_callback(folder, AGENTS, shared_rewards=False, num_actions=ACTIONS))
        .debugging(seed=seed, log_level="ERROR")
    )
    algorithm = config.build_algo()
    try:
        for _ in range(updates):
            algorithm.train()
    finally:
        algorithm.stop()
    return Path(folder) / "runner_0"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--updates", type=int, default=3)
    asked = parser.parse_args()
    print(train(asked.folder, updates=asked.updates))


if __name__ == "__main__":
    main()
