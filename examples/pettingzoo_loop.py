"""Play a game of hopplus through PettingZoo, with a scripted policy or a trained one in every seat.

python examples/pettingzoo_loop.py [RUN]        # needs: pip install "hopplus[pettingzoo]"
"""

import sys

import jax
import numpy as np

import hopplus
from hopplus.games import Game, Policy
from hopplus.games.bridges.pettingzoo import ego_view, parallel_env


def seats(run: str | None) -> tuple[Game, list[Policy]]:
    """A game and a policy for each seat: those of a run folder, or scripts."""
    if run is None:
        game = hopplus.make("stag-hunt-4x4")
        return game, list(hopplus.lineup("nearest_stag,nearest_stag,nearest_hare,random", game).policies)
    trained = hopplus.load(run)
    policies = [trained.policy(seed=0, seat=seat) for seat in range(trained.num_learning)]
    return trained.game, [*policies, *trained.config.task.co_players.policies]


def main(run: str | None, episodes: int = 3) -> None:
    """Print the returns of each seat in each episode."""
    game, policies = seats(run)
    env = parallel_env(game)
    act = [jax.jit(policy.__call__) for policy in policies]
    random = np.random.default_rng(0)
    for episode in range(episodes):
        observations, _ = env.reset(seed=episode)
        states = [policy.init() for policy in policies]
        returns = dict.fromkeys(env.possible_agents, 0.0)
        while env.agents:
            actions = {}
            for seat, agent in enumerate(env.possible_agents):
                if agent not in env.agents:
                    continue
                view, legal = ego_view(observations[agent], game.spec)
                probabilities, states[seat] = act[seat](view, legal, states[seat])
                probabilities = np.asarray(probabilities, np.float64)
                actions[agent] = random.choice(len(probabilities), p=probabilities / probabilities.sum())
            observations, rewards, *_ = env.step(actions)
            for agent, reward in rewards.items():
                returns[agent] += reward
        print(f"episode {episode}: {returns}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
