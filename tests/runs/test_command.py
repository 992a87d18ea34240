"""The command that a result says it came from is one that can be typed."""

from dataclasses import replace
from pathlib import Path

import pytest

from hopplus.cli.verbs.train import read
from hopplus.learning.config import ImaginationConfig, LearnerConfig
from hopplus.runs.agents import learner_of
from hopplus.runs.command import train_command
from hopplus.runs.config import RunConfig


def changed(learner: LearnerConfig) -> LearnerConfig:
    """Numbers, words, lists, and switches both ways."""
    others = replace(learner.opponents.others, marginal=True)
    return replace(
        learner,
        sharing="shared",
        network=replace(learner.network, hidden=(32, 16)),
        opponents=replace(learner.opponents, others=others),
        world_training=replace(learner.world_training, minibatches=3),
        imagination=ImaginationConfig(real_ratio=0.25, trust=False),
    )


@pytest.mark.parametrize("agent", ["ppo", "hop_plus"])
def test_the_command_gives_the_same_run(agent):
    learner = learner_of(agent)
    config = RunConfig(agent=agent, seeds=2, learner=changed(learner) if agent == "hop_plus" else learner)
    command = train_command(config, Path("somewhere"))
    program, verb, *arguments = command.split()
    typed = read(arguments)
    found = replace(typed.config, learner=replace(typed.config.learner, mesh=config.learner.mesh))
    assert (program, verb, typed.out) == ("hopplus", "train", Path("somewhere"))
    assert found == config
    if agent == "hop_plus":
        assert "--others.marginal --" in command and "--imagination.no-trust" in command
