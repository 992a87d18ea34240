"""Fictitious co-play: the population is trained, kept frozen, drawn from evenly, and counted."""

import json
import shutil
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.agents.config import OpponentsConfig
from hopplus.agents.population import FromPopulation, Population, filled
from hopplus.cli.main import main
from hopplus.games.coplayers import Lineup
from hopplus.games.presets import make
from hopplus.games.rollout import init_env, rollout
from hopplus.learning.config import PopulationConfig
from hopplus.learning.initial import init
from hopplus.models import actor_critic
from hopplus.models.config import ActorCriticConfig
from hopplus.runs import load, population, train, training
from hopplus.runs.checkpoints import by_name
from hopplus.runs.config import RunConfig
from hopplus.runs.oracles import what_it_saw
from runs.test_resume import StopAfter
from runs.tiny import STEPS_PER_UPDATE, assert_same_run, compile_rarely, last_state
from runs.tiny import config as tiny

MEMBERS, UPDATES = 3, 6


def config(*, updates=UPDATES, run=None, **settings) -> RunConfig:
    one = tiny(updates=updates)
    of_members = PopulationConfig(MEMBERS, 5 * STEPS_PER_UPDATE + 7, run)
    settings = {"checkpoint_every": 3, "game": one.game} | settings
    learner = replace(one.learner, population=of_members)
    return RunConfig(agent="fcp", seeds=2, steps=one.steps, learner=learner, **settings)


@pytest.fixture(scope="module", autouse=True)
def _quick():
    with pytest.MonkeyPatch.context() as monkeypatch:
        compile_rarely(monkeypatch)
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("fcp") / "run"
    train(config(), out)
    return out


def stored(folder):
    with np.load(folder / "population" / "population.npz") as arrays:
        return {name: arrays[name] for name in arrays.files}


def test_the_population_is_self_play_at_its_start_halfway_and_at_its_end(trained):
    members = load(trained / "population")
    assert members.config.agent == "ppo" and members.config.learner.sharing == "shared"
    assert members.config.seeds == MEMBERS and members.num_updates == 5 and members.num_learning == 2
    policies, final = stored(trained), by_name(members.params)
    about = json.loads((trained / "population" / "population.json").read_text())["members"]
    assert [list(one) for one in about] == [["start", "half", "end"]] * MEMBERS
    assert all((one["start"]["update"], one["end"]["update"]) == (0, 5) for one in about)
    states = jax.vmap(lambda key: init(members.config.learner, members.config.task, key=key))
    first = by_name(states(training.seed_keys(members.config)).learners.policy.params)
    for name, leaf in final.items():
        kept = policies[f"params.{name}"]
        assert len(kept) == 3 * MEMBERS
        np.testing.assert_allclose(kept[0::3], np.asarray(first[name])[:, 0], rtol=1e-5, atol=1e-7)
        np.testing.assert_array_equal(kept[2::3], np.asarray(leaf)[:, 0])
    assert not (trained / "population" / "snapshots").exists()


def test_no_member_starts_from_the_parameters_of_the_best_response(trained):
    untrained = init(config().learner, config().task, key=training.seed_keys(config())[0]).learners.policy.params
    own, members = (by_name(untrained), stored(trained))
    name = max(own, key=lambda name: own[name].size)
    assert not any(np.array_equal(own[name][0], one) for one in members[f"params.{name}"])


def test_the_population_is_frozen_and_the_learner_is_not(trained):
    state, policies = last_state(trained), stored(trained)
    for name, leaf in by_name(state.population).items():
        for of_seed in np.asarray(leaf):
            assert np.array_equal(of_seed, policies[name].reshape(of_seed.shape)), name
    untrained = jax.vmap(lambda key: init(config().learner, config().task, key=key))(training.seed_keys(config()))
    moved = zip(*(jax.tree.leaves(one.learners.policy.params) for one in (state, untrained)), strict=True)
    assert any(not np.array_equal(new, old) for new, old in moved)


def test_returns_halfway_choose_a_checkpoint():
    assert population.choose(np.array([1.0, 1.2, 1.9, 2.6, 3.0])) == (0, 2, 4)
    assert population.choose(np.array([3.0, 2.9, 2.1, 1.0])) == (0, 2, 3)
    assert population.choose(np.array([0.0, 5.0])) == (0, 0, 1)
    returns = np.array([[0.0], [np.nan], [np.nan], [3.0], [5.0], [7.0]])
    around = population.returns_around(returns, np.array([0, 2, 4, 6]), every=2)
    np.testing.assert_array_equal(around[:, 0], [0.0, 0.0, 4.0, 7.0])


NUM_POLICIES, ENVS, STEPS = 12, 128, 400


@pytest.fixture(scope="module")
def drawn():
    """Numbers of the policies of three co-players, [envs, steps, co-players], and where episodes begin."""
    game = make("stag-hunt-4x4")
    network = ActorCriticConfig(hidden=(4,))
    keys = jax.random.split(jax.random.key(1), NUM_POLICIES)
    params = jax.vmap(lambda key: actor_critic.init(network, game.spec, 0, 3, key=key))(keys)
    learner = replace(tiny().learner, network=network, population=PopulationConfig(NUM_POLICIES // 3))
    run = RunConfig(agent="fcp", learner=learner)
    untrained = init(learner, run.task, key=jax.random.key(0)).population
    assert untrained is not None
    lineup = filled(run.task.co_players, Population(params, untrained.opponents), game, OpponentsConfig())
    lineup = Lineup((lineup.policies[0], *lineup.policies))

    def record(step):
        numbers = jnp.stack([state.chance.below(NUM_POLICIES)[0] for state in step.policy_state])
        return numbers, step.reset_before, step.probabilities

    def one(key):
        first, play = jax.random.split(key)
        return rollout(game, lineup, init_env(game, lineup, key=first), STEPS, key=play, record=record)[1]

    return jax.device_get(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(2), ENVS)))


def test_a_co_player_is_drawn_for_a_whole_episode(drawn):
    numbers, begins, _ = drawn
    changed = np.any(numbers[:, 1:] != numbers[:, :-1], axis=-1)
    assert not np.any(changed & ~begins[:, 1:])
    assert changed[begins[:, 1:]].mean() > 0.99  # (1 / 12) ** 4 draws are the same for all four


def test_every_member_and_checkpoint_is_drawn_equally_often_in_every_seat(drawn):
    """Chi-squared over policies in each seat, and over pairs of seats: they are drawn independently."""
    numbers, begins, _ = drawn
    numbers = numbers[begins]
    seats = numbers.shape[-1]
    assert len(numbers) > 1000
    for seat in range(seats):
        counts = np.bincount(numbers[:, seat], minlength=NUM_POLICIES)
        expected = len(numbers) / NUM_POLICIES
        assert np.sum((counts - expected) ** 2 / expected) < 31.3, (seat, counts)  # 11 degrees, 0.1%
        for other in range(seat):
            same = np.mean(numbers[:, seat] == numbers[:, other])
            assert abs(same - 1 / NUM_POLICIES) < 4 * np.sqrt(1 / NUM_POLICIES / len(numbers))


def test_seats_are_alike():
    """A drawn co-player plays as that policy alone, the same in every seat."""
    game = make("stag-hunt-4x4")
    learner = replace(tiny().learner, network=ActorCriticConfig(hidden=(4,)), population=PopulationConfig(2))
    run = RunConfig(agent="fcp", learner=learner)
    policies = init(learner, run.task, key=jax.random.key(0)).population
    assert policies is not None
    lineup = filled(run.task.co_players, policies, game, learner.opponents)
    state = game.reset(key=jax.random.key(3))
    views, legal = game.observe(state), game.legal(state)
    for seat, co_player in enumerate(lineup.policies, 1):
        assert isinstance(co_player, FromPopulation)
        start = co_player.init()
        for number in range(6):
            words = jnp.array([number, 0], jnp.uint32)
            begun = eqx.tree_at(lambda state: state.chance.words, start, words)
            view = jax.tree.map(lambda leaf, seat=seat: leaf[seat], views)
            answer, _ = co_player(view, legal[seat], begun)
            alone = jax.tree.map(lambda leaf, number=number: leaf[number], co_player.players)
            np.testing.assert_allclose(answer, alone(view, legal[seat], alone.init())[0], rtol=1e-6)


@pytest.mark.parametrize("stops", [(2, None), (4, 2), (None, 4)], ids=["population", "both", "best response"])
def test_a_run_that_goes_on_is_the_same_as_one_at_one_go(trained, tmp_path, monkeypatch, stops):
    monkeypatch.setattr(training, "BLOCK_SECONDS", 0.0)
    out = tmp_path / "run"

    class Stop(StopAfter):
        def compiling(self, config, done):
            self.update = stops[config.agent == "fcp"] or 10**6

    for stop in stops:
        if stop is not None:
            with pytest.raises(InterruptedError):
                train(config(), out, watcher=Stop(0))
            stops = stops if stop is stops[1] else (None, stops[1])
    train(config(), out)
    assert_same_run(out / "population", trained / "population")
    assert_same_run(out, trained)
    for name, leaf in stored(out).items():
        np.testing.assert_array_equal(leaf, stored(trained)[name])


def test_a_population_is_used_again(trained, tmp_path):
    given = tmp_path / "given"
    shutil.copytree(trained, given)
    run = train(config(run=str(given), seed=5), tmp_path / "other")
    assert not (tmp_path / "other" / "population").exists()
    for name, leaf in by_name(run.population).items():
        np.testing.assert_array_equal(np.asarray(leaf[0]), stored(trained)[name].reshape(leaf.shape[1:]))
    assert run.config.learner.population == PopulationConfig(MEMBERS, 5 * STEPS_PER_UPDATE, str(given))
    assert run.config.learner.population_steps == config().learner.population_steps == MEMBERS * 5 * STEPS_PER_UPDATE
    shutil.rmtree(given)  # the checkpoints have all that is needed
    assert train(config(run=str(given), seed=5, updates=UPDATES), tmp_path / "other").num_updates == UPDATES
    with pytest.raises(ValueError, match="holds no complete population; give a run of fcp"):
        train(config(run=str(given)), tmp_path / "third")


def test_what_does_not_fit_is_said(trained, tmp_path):
    with pytest.raises(ValueError, match="plays matrix-stag-hunt, not matrix-chicken; give another run"):
        train(config(run=str(trained), game="matrix-chicken"), tmp_path / "run")
    with pytest.raises(ValueError, match="the population plays all seats but the first"):
        config(co_players="random")
    wide = replace(config(run=str(trained)), learner=replace(config(run=str(trained)).learner))
    network = ActorCriticConfig(hidden=(16,))
    with pytest.raises(ValueError, match=r"has ActorCriticConfig\(hidden=\(8,\).* give the same settings"):
        train(replace(wide, learner=replace(wide.learner, network=network)), tmp_path / "run")
    with pytest.raises(ValueError, match=r"--population\.steps is 3; give 80"):
        RunConfig(agent="fcp", learner=replace(wide.learner, population=PopulationConfig(2, 3)))
    with pytest.raises(ValueError, match=r"--population\.run is for a best response"):
        RunConfig(learner=replace(wide.learner, population=PopulationConfig(0, 100, "runs/a")))
    assert not (tmp_path / "run").exists()


def test_commands_take_such_a_run(trained, tmp_path, capsys):
    assert main(["evaluate", str(trained), "--episodes", "40", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [seat["player"] for seat in result["per_seat"]] == ["run:1", "population"]
    assert result["env_steps"] == UPDATES * STEPS_PER_UPDATE
    assert result["population_env_steps"] == MEMBERS * 5 * STEPS_PER_UPDATE
    alone = ["evaluate", str(trained), "--episodes", "40", "--co-players", str(trained), "--json"]
    assert main(alone) == 0
    assert [seat["player"] for seat in json.loads(capsys.readouterr().out)["per_seat"]] == ["run:1", str(trained)]
    assert main(["report", str(trained), "--episodes", "1", "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "1,200" in page and "population" in page
    assert what_it_saw(load(trained).config) == "a population of own self-play"
