"""Train a small run, load it, evaluate it, and play one of its policies with scripts.

python examples/train_and_load.py [FOLDER]
"""

import sys
import tempfile

import jax

import hopplus
from hopplus.games import Lineup, play_episode


def main(folder: str) -> None:
    """Print the returns of training, evaluation and one episode."""
    for name, about in hopplus.agents.ABOUT.items():
        print(f"{name:10} {about}")

    config = hopplus.RunConfig.for_agent(
        "ppo", game="matrix-stag-hunt", seeds=2, steps=20_000, learner={"envs": 32, "rollout_steps": 10}
    )
    hopplus.train(config, folder)  # the same call resumes a run that was stopped

    run = hopplus.load(folder)
    result = hopplus.evaluate(run, episodes=200)
    print(f"self-play: {result.mean.estimate:.2f} per seat, seed by seed {result.by_seed.round(2).tolist()}")
    result = hopplus.evaluate(run, episodes=200, co_players="random")
    for name, interval in zip(result.names, result.per_seat(), strict=True):
        print(f"{name}: {interval.estimate:.2f} ({interval.low:.2f} to {interval.high:.2f})")

    policy = run.policy(seed=0, seat=0)  # probabilities, state = policy(observation, legal, policy.init())
    script = hopplus.lineup("random,random", run.game).policies[1]
    episode = play_episode(run.game, Lineup((policy, script)), key=jax.random.key(0))
    print(f"one episode: {episode.returns.tolist()}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
