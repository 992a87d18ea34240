"""Runs of the same settings on several meshes, in a process that shows JAX so many devices.

python tests/runs/laid_out.py FOLDER AGENT SHARING SEEDSxENVS ...
"""

import sys
from dataclasses import replace
from pathlib import Path

from hopplus.learning.devices import MeshConfig, use_cores
from hopplus.learning.imagination import ImaginationConfig
from hopplus.learning.learner import LearnerConfig
from hopplus.learning.modelling_config import ModellingConfig
from hopplus.learning.ppo import PPOConfig
from hopplus.learning.replay import ReplayConfig
from hopplus.learning.worlds import WorldTrainingConfig
from hopplus.models.actor_critic import ActorCriticConfig
from hopplus.models.others import OthersConfig
from hopplus.models.world import WorldConfig
from hopplus.runs import RunConfig, train
from hopplus.runs.agents import learner_of

UPDATES, SEEDS, ENVS = 6, 8, 8


def small(agent: str, sharing: str, mesh: MeshConfig) -> RunConfig:
    learner = learner_of(agent, LearnerConfig(sharing=sharing, mesh=mesh, network=ActorCriticConfig(hidden=(8,))))
    learner = replace(learner, envs=ENVS, rollout_steps=10, ppo=PPOConfig(minibatch_size=32, epochs=2))
    if agent == "hop_plus":
        learner = replace(
            learner,
            mind=replace(learner.mind, others=OthersConfig(models="each", hidden=8, keys=4)),
            modelling=ModellingConfig(tables=4, minibatches=2, minibatch_size=8),
            world=WorldConfig(members=1, hidden=8, pooled=4),
            replay=ReplayConfig(size=256, tables=ENVS),
            world_training=WorldTrainingConfig(minibatches=2, minibatch_size=16),
            imagination=ImaginationConfig(real_ratio=0.5, length=4),
        )
    game = "stag-hunt-4x4" if agent == "hop_plus" else "matrix-stag-hunt"
    steps = UPDATES * learner.steps_per_update
    return RunConfig(agent=agent, game=game, seeds=SEEDS, steps=steps, checkpoint_every=2, learner=learner)


if __name__ == "__main__":
    out, agent, sharing, *meshes = sys.argv[1:]
    sizes = [tuple(map(int, name.split("x"))) for name in meshes]
    use_cores(max(seeds * envs for seeds, envs in sizes))
    for name, (seeds, envs) in zip(meshes, sizes, strict=True):
        train(small(agent, sharing, MeshConfig(seeds, envs)), Path(out) / name)
