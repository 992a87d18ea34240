"""What a run writes down, when it stops, and what can be done with its policies."""

import json
import logging
import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents.named import NAMES
from hopplus.cli.main import main
from hopplus.games.bridges.pettingzoo import ego_view, parallel_env
from hopplus.games.coplayers import Lineup
from hopplus.games.lineups import read_policies
from hopplus.games.rollout import play_episode
from hopplus.learning.config import LearnerConfig, PPOConfig
from hopplus.models.config import WorldConfig
from hopplus.runs import RunConfig, load, train, training
from hopplus.runs.agents import learner_of
from hopplus.runs.folder import open_folder
from runs.tiny import assert_same_run, compile_rarely, config, events, read_lines, train_line

HUNT = "--game stag-hunt-4x4 --envs 4 --rollout-steps 8 --steps 256 --checkpoint-every 4"


@pytest.fixture(scope="module")
def hunt(tmp_path_factory):
    """Eight updates of eight steps; episodes are longer, so that none ends in the first update."""
    out = tmp_path_factory.mktemp("hunt") / "run"
    assert main(train_line(out, HUNT)) == 0
    return out


class Watching:
    """How many programs had been compiled when each block was done."""

    def __init__(self, messages):
        self.messages, self.done, self.compiled = messages, [], []

    def compiling(self, config, done):
        pass

    def block(self, row, updates_done, steps_per_second):
        self.done.append(updates_done)
        self.compiled.append(sum("Finished XLA compilation" in record.getMessage() for record in self.messages))


def test_the_training_program_is_compiled_once_for_blocks_of_every_length(tmp_path, monkeypatch, caplog):
    traces = []

    def counted(*arguments):
        traces.append(1)
        return train_block(*arguments)

    train_block = training.train_block
    monkeypatch.setattr(training, "train_block", counted)
    monkeypatch.setattr(training, "BLOCK_SECONDS", 1e9)  # on a slow machine, too, a block ends at a checkpoint only
    watching = Watching(caplog.records)
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        train(config(updates=16, checkpoint_every=5), tmp_path / "run", watcher=watching)
    lengths = set(np.diff([0, *watching.done]).tolist())
    assert traces == [1] and {1, 4, 5} <= lengths
    after_a_checkpoint = watching.compiled[watching.done.index(5) :]
    assert after_a_checkpoint[0] > 0 and len(set(after_a_checkpoint)) == 1 < len(after_a_checkpoint)


def test_metrics_have_the_tags_of_every_seat_and_one_number_per_seed(hunt):
    lines = read_lines(hunt / "metrics.jsonl")
    assert [line["update"] for line in lines] == list(range(1, 9))
    assert [line["env_steps"] for line in lines] == [32 * update for update in range(1, 9)]
    seats = [f"/player_{seat}" for seat in (1, 2, 3, 4)]
    wanted = [f"charts/episodic_return{seat}" for seat in ("/mean", *seats)] + ["charts/episodes"]
    wanted += [f"{tag}{seat}" for tag in ("charts/stag_rate", "count/samples/policy") for seat in ("", *seats)]
    losses = ("value_loss", "policy_loss", "entropy", "approx_kl", "clip_fraction", "explained_variance")
    wanted += [f"policy/{name}{seat}" for name in (*losses, "value_loss_real") for seat in ("", *seats)]
    spreads = [f"real/{what}_{how}" for what in ("reward", "return") for how in ("mean", "std", "min", "max")]
    wanted += [f"{tag}{seat}" for tag in spreads for seat in ("", *seats)]
    wanted += [f"buffer/{tag}{seat}" for tag in ("size/policy", "episode_length") for seat in ("", *seats)]
    for line in lines:
        assert set(wanted) <= line.keys()
        assert all(len(values) == 2 for tag, values in line.items() if "/" in tag)
        by_seat = [line[f"policy/entropy{seat}"] for seat in seats]
        np.testing.assert_allclose(line["policy/entropy"], np.mean(by_seat, axis=0), rtol=1e-4)


def test_means_over_no_episodes_are_null(hunt):
    first, *_, last = read_lines(hunt / "metrics.jsonl")
    ended = (
        "charts/episodic_return/mean",
        "charts/episodic_return/player_3",
        "charts/stag_rate",
        "buffer/episode_length",
    )
    assert first["charts/episodes"] == [0.0, 0.0] and last["charts/episodes"] != [0.0, 0.0]
    assert all(first[tag] == [None, None] for tag in ended)
    assert all(any(math.isfinite(value) for value in last[tag] if value is not None) for tag in ended)
    assert "NaN" not in (hunt / "metrics.jsonl").read_text()


def test_timing_has_a_line_for_every_block(hunt):
    lines = read_lines(hunt / "timing.jsonl")
    updates = [line["update"] for line in lines]
    assert updates == sorted(set(updates)) and updates[-1] == 8
    for line, length in zip(lines, np.diff([0, *updates]), strict=True):
        assert line["env_steps"] == 32 * line["update"] and line["seconds"] > 0
        np.testing.assert_allclose(line["charts/steps_per_second"], length * 32 * 2 / line["seconds"])


def test_tensorboard_shows_the_metrics_of_each_seed(hunt):
    lines = read_lines(hunt / "metrics.jsonl")
    for seed in (0, 1):
        shown = events(hunt / "tensorboard" / f"seed_{seed}")
        assert {"charts/stag_rate", "policy/entropy/player_4", "charts/steps_per_second"} <= shown.keys()
        for tag in ("charts/episodic_return/mean", "policy/value_loss", "real/reward_max/player_2"):
            known = [(line["env_steps"], line[tag][seed]) for line in lines if line[tag][seed] is not None]
            assert [step for step, _ in shown[tag]] == [step for step, _ in known]
            np.testing.assert_allclose([got for _, got in shown[tag]], [value for _, value in known], rtol=1e-5)


class Stop:
    def compiling(self, config, done):
        pass

    def block(self, row, updates_done, steps_per_second):
        if updates_done >= 5:
            raise InterruptedError


@pytest.mark.parametrize("every", [3, 100])
def test_tensorboard_shows_each_update_once_after_a_restart(tmp_path, monkeypatch, every):
    """Killed between two checkpoints, and before the first: nothing is doubled, and nothing before is hidden."""
    monkeypatch.setattr(training, "BLOCK_SECONDS", 0.0)
    compile_rarely(monkeypatch)
    with pytest.raises(InterruptedError):
        train(config(updates=8, checkpoint_every=every), tmp_path, watcher=Stop())
    train(config(updates=8, checkpoint_every=every), tmp_path)
    for tag in ("policy/entropy", "charts/steps_per_second"):
        assert [step for step, _ in events(tmp_path / "tensorboard" / "seed_1")[tag]] == [80 * n for n in range(1, 9)]


def test_a_trained_policy_plays_in_pettingzoo(hunt):
    run = load(hunt)
    env = parallel_env(run.game)
    players = {agent: run.policy(seed=1, seat=seat) for seat, agent in enumerate(env.possible_agents)}
    views, _ = env.reset(seed=0)
    random, returns = np.random.default_rng(0), dict.fromkeys(env.agents, 0.0)
    while env.agents:
        actions = {}
        for agent in env.agents:
            seen, legal = views[agent], jnp.asarray(views[agent]["action_mask"] > 0)
            observation = ego_view(seen, run.game.spec)[0]
            probabilities = np.asarray(players[agent](observation, legal, players[agent].init())[0], float)
            assert not probabilities[~np.asarray(legal)].any()
            actions[agent] = random.choice(len(probabilities), p=probabilities / probabilities.sum())
        views, rewards, *_ = env.step(actions)
        returns = {agent: returns[agent] + rewards.get(agent, 0.0) for agent in returns}
    assert len(returns) == 4 and all(0 <= value <= 20 for value in returns.values())


def test_a_trained_policy_is_a_pure_function_in_any_seat_of_a_lineup(hunt):
    run = load(hunt)
    scripts = read_policies("nearest_stag,random,nearest_hare", run.game)
    play = jax.jit(lambda lineup, key: play_episode(run.game, lineup, key=key))
    for seat in range(4):
        policies = [*scripts[:seat], run.policy(seat=2, greedy=True), *scripts[seat:]]
        episodes = [play(Lineup(tuple(policies)), jax.random.key(seat)) for _ in range(2)]
        np.testing.assert_array_equal(*(episode.actions for episode in episodes))


def test_a_seed_or_seat_that_was_not_trained_is_named(hunt):
    run = load(str(hunt))
    with pytest.raises(ValueError, match=r"has no seed 2; its seeds are 0 to 1"):
        run.policy(seed=2)
    with pytest.raises(ValueError, match=r"trained no seat 4; its seats are 0 to 3"):
        run.policy(seat=4)


GAME = """
from pathlib import Path
import equinox as eqx
import jax.numpy as jnp
from hopplus.games import MatrixGame
class Pays(MatrixGame):
    worth: float = eqx.field(static=True, default=1.0)
    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        return after, rewards * self.worth
def game():
    return Pays(worth=float("inf") if Path("broken").exists() else 1.0)
"""
LEVEL = "--ppo.entropy-coefficient 0.01 --ppo.final-entropy-coefficient 0.01"


def test_a_run_that_turns_non_finite_stops_and_keeps_what_was_good(tmp_path, monkeypatch, capsys):
    (tmp_path / "a_game_that_breaks.py").write_text(GAME)
    monkeypatch.chdir(tmp_path)
    flags = f"--game a_game_that_breaks:game {LEVEL}"
    assert main(train_line(tmp_path / "run", flags, updates=3)) == 0
    good = load("run")
    (tmp_path / "broken").touch()
    assert main(train_line(tmp_path / "run", flags, updates=6)) == 1
    complaint = capsys.readouterr().err.strip().split("\n")[-1]
    assert complaint.startswith("hopplus: the parameters of learner 1 in seed 0 are not finite after update 4; ")
    assert "the checkpoint of update 3 is kept" in complaint and "Try a lower --ppo.learning-rate" in complaint
    kept = load("run")
    assert kept.num_updates == 3 and len(read_lines(tmp_path / "run" / "metrics.jsonl")) == 3
    for one, other in zip(jax.tree.leaves(good.params), jax.tree.leaves(kept.params), strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.isfinite(one).all()
    (tmp_path / "broken").unlink()
    assert main(train_line(tmp_path / "run", flags, updates=6)) == 0
    assert load("run").num_updates == 6


def test_a_learning_rate_that_is_far_too_high_is_noticed_at_once(tmp_path, capsys):
    assert main(train_line(tmp_path / "run", "--ppo.learning-rate 1e30")) == 1
    assert "there was no checkpoint yet" in capsys.readouterr().err


def test_more_steps_go_on_with_a_finished_run_as_if_it_had_been_longer_from_the_start(tmp_path, capsys):
    assert main(train_line(tmp_path / "short", f"{LEVEL} --checkpoint-every 4", updates=6)) == 0
    assert main(train_line(tmp_path / "short", f"{LEVEL} --checkpoint-every 3", updates=9)) == 0
    assert "resumed from update 6" in capsys.readouterr().err
    assert main(train_line(tmp_path / "long", LEVEL, updates=9)) == 0
    assert_same_run(tmp_path / "short", tmp_path / "long")
    assert json.loads((tmp_path / "short" / "config.json").read_text())["steps"] == 720


def test_a_run_whose_entropy_bonus_falls_cannot_become_longer(tmp_path, capsys):
    assert main(train_line(tmp_path / "run", updates=2)) == 0
    before = (tmp_path / "run" / "config.json").read_bytes()
    assert main(train_line(tmp_path / "run", updates=3)) == 2
    complaint = capsys.readouterr().err.strip().split("\n")[-1]
    assert "the entropy bonus falls" in complaint and "give --steps 160" in complaint
    assert (tmp_path / "run" / "config.json").read_bytes() == before


def test_a_run_whose_world_learns_more_slowly_cannot_become_longer(tmp_path):
    usual = LearnerConfig(
        world=WorldConfig(members=1), ppo=PPOConfig(entropy_coefficient=0.01, final_entropy_coefficient=0.01)
    )
    open_folder(tmp_path, RunConfig(steps=100_000, learner=usual))
    with pytest.raises(ValueError, match="the learning rate of the world falls"):
        open_folder(tmp_path, RunConfig(steps=200_000, learner=usual))


@pytest.mark.parametrize("agent", NAMES)
def test_an_agent_named_in_python_is_that_agent(agent):
    """`RunConfig(agent="hop")` once trained plain PPO under the name of hop."""
    usual = learner_of(agent, game="stag-hunt-4x4")
    assert RunConfig(agent=agent).learner == usual == RunConfig.for_agent(agent).learner
    few = RunConfig.for_agent(agent, game="stag-hunt-8x8", seeds=3, learner={"envs": 7})
    assert (few.agent, few.game, few.seeds, few.learner) == (
        agent,
        "stag-hunt-8x8",
        3,
        replace(learner_of(agent, game="stag-hunt-8x8"), envs=7),
    )
    if agent not in ("ppo", "mappo", "liam", "fcp"):
        with pytest.raises(ValueError, match=f"the agent is {agent}, which has opponent models"):
            RunConfig(agent=agent, learner=LearnerConfig())


def test_an_agent_that_does_not_exist_is_named():
    with pytest.raises(ValueError, match="there is no agent called 'hopp'; the agents are ppo, mappo"):
        RunConfig.for_agent("hopp")


def test_weights_and_biases_get_numbers_that_they_can_draw(tmp_path, monkeypatch):
    began, logged = [], []
    run = SimpleNamespace(log=lambda row, step: logged.append((step, row)), finish=lambda: logged.append("finished"))
    fake = SimpleNamespace(init=lambda **options: began.append(options) or run)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    compile_rarely(monkeypatch)
    for name in ("a/run", "b/run"):
        train(config(updates=2, wandb="hunters"), tmp_path / name)
    assert began[0]["project"] == "hunters" and began[0]["name"] == "run" and began[0]["config"]["game_version"] == 1
    assert began[0]["id"] != began[1]["id"] and began[0]["resume"] == "allow"
    assert logged[2] == "finished" and [step for step, _ in logged[:2]] == [1, 2]
    (line, *_), (_, row) = read_lines(tmp_path / "a/run/metrics.jsonl"), logged[0]
    assert row["env_steps"] == 80 and row["seed_1/policy/entropy"] == line["policy/entropy"][1]
    np.testing.assert_allclose(row["policy/entropy"], np.mean(line["policy/entropy"]))
    assert all(isinstance(value, float | int) for value in row.values())


def test_without_the_package_weights_and_biases_are_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ValueError, match="pip install wandb, or leave --wandb out"):
        train(config(updates=1, wandb="hunters"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
