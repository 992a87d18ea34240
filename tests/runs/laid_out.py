"""Runs of the same settings on several meshes, in a process with as many devices as the largest mesh.

python tests/runs/laid_out.py FOLDER AGENT SHARING SEEDSxENVS ...
"""

import sys
from dataclasses import replace
from pathlib import Path

from hopplus.core.devices import use_cores
from hopplus.core.mesh import MeshConfig
from hopplus.learning.config import (
    ImaginationConfig,
    LearnerConfig,
    ModellingConfig,
    PPOConfig,
    ReplayConfig,
    WorldTrainingConfig,
)
from hopplus.models.config import ActorCriticConfig, OthersConfig, WorldConfig
from hopplus.runs import RunConfig, train
from hopplus.runs.agents import learner_of

UPDATES, SEEDS, ENVS = 6, 8, 8


def small(agent: str, sharing: str, mesh: MeshConfig) -> RunConfig:
    learner = learner_of(agent, LearnerConfig(sharing=sharing, mesh=mesh, network=ActorCriticConfig(hidden=(8,))))
    learner = replace(learner, envs=ENVS, rollout_steps=10, ppo=PPOConfig(minibatch_size=32, epochs=2))
    if agent == "hop_plus":
        learner = replace(
            learner,
            opponents=replace(learner.opponents, others=OthersConfig(models="each", hidden=8, keys=4)),
            modelling=ModellingConfig(envs=4, minibatches=2, minibatch_size=8),
            world=WorldConfig(members=1, hidden=8, pooled=4),
            replay=ReplayConfig(size=256, envs=ENVS),
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
