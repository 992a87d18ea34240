"""A run that learns a world and imagines: from the command line to the report, and after an interruption."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli.main import main
from hopplus.learning import learner
from hopplus.runs import load, training
from hopplus.runs.init_from import with_init_from
from hopplus.runs.training import seed_keys
from runs.tiny import assert_same_run, compile_rarely, last_state

FLAGS = (
    "--game learning.played:smallest_hunt --seeds 1 --envs 8 --rollout-steps 10 --steps 320 --mesh.envs 1 "
    "--checkpoint-every 1 "
    "--network.hidden 8 --others.hidden 8 --others.keys 4 --modelling.minibatch-size 16 --ppo.minibatch-size 64 "
    "--world.hidden 8 --world.pooled 4 --replay.size 256 --world-training.minibatches 2 "
    "--world-training.minibatch-size 32 --imagination.real-ratio 0.5 --imagination.length 5"
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One run at one go, and one that was interrupted after its second update."""
    folder = tmp_path_factory.mktemp("hop_plus")
    with pytest.MonkeyPatch.context() as patch:
        compile_rarely(patch)
        assert main(["train", "hop_plus", "--out", str(folder / "whole"), *FLAGS.split()]) == 0
        write = training.Writers.write

        def interrupted(self, row):
            write(self, row)
            if row["update"] == 3:
                raise KeyboardInterrupt

        config = load(folder / "whole").config
        with pytest.MonkeyPatch.context() as stop:
            stop.setattr(training.Writers, "write", interrupted)
            with pytest.raises(KeyboardInterrupt):
                training.train(config, folder / "resumed")
        training.train(config, folder / "resumed")
    return folder


def test_a_resumed_run_has_the_same_bytes(trained):
    """Worlds and the replay buffer are part of a checkpoint."""
    assert_same_run(trained / "whole", trained / "resumed")


def blank_states(config, like):
    """States whose parameters are all zero: to compile the start of so large an agent takes long."""
    start = jax.vmap(lambda key: learner.init(config.learner, config.task, key=key))
    shapes = jax.eval_shape(start, seed_keys(config)).learners
    return replace(like, learners=jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))


def test_a_run_initialised_from_it_has_its_world(trained):
    config = load(trained / "whole").config
    learned = last_state(trained / "whole")
    initialised = with_init_from(replace(config, init_from=str(trained / "whole")), blank_states(config, learned))
    new_world, learned_world = initialised.learners.world.params, learned.learners.world.params
    for new, old in zip(jax.tree.leaves(new_world), jax.tree.leaves(learned_world), strict=True):
        np.testing.assert_array_equal(new, old)
    larger = replace(config, learner=replace(config.learner, world=replace(config.learner.world, hidden=12)))
    fresh = blank_states(larger, learned)
    initialised = with_init_from(replace(larger, init_from=str(trained / "whole")), fresh)
    assert initialised.learners.world is fresh.learners.world


def test_metrics_tell_real_from_imagined(trained):
    lines = [json.loads(line) for line in (trained / "whole" / "metrics.jsonl").read_text().splitlines()]
    last = lines[-1]
    for tag in ("policy/value_loss_real", "policy/value_loss_imagined", "imagined/return_mean", "real/return_mean"):
        assert tag in last
    assert {"trust/board", "trust/reward", "trust/end", "trust/others/player_1_of_2", "wm/loss"} <= set(last)
    counts = [last[f"count/samples/world/player_{seat}"] for seat in (1, 2, 3)]
    assert len({tuple(count) for count in counts}) == 1


def test_the_world_is_judged_and_shown(trained, capsys):
    folder = trained / "whole"
    assert main(["evaluate", str(folder), "--world", "--episodes", "8"]) == 0
    assert "impossible outcomes among the samples: 0 jumped" in capsys.readouterr().out
    found = json.loads((folder / "world.json").read_text())
    assert set(found["line_ups"]) == {"random play", "mixed scripts", "self-play", "all"}
    assert found["worlds"] == 1 * 3 * 2
    predicted = np.asarray(found["examples"][0]["told"])
    assert predicted.shape == (3, 3, 6) and np.any((predicted > 0.01) & (predicted < 0.99))
    assert main(["report", str(folder)]) == 0
    page = next(folder.glob("*.html")).read_text()
    assert 'id="world"' in page and "Predicted and true, 1" in page


@pytest.mark.heavy  # a minute of compiling, for what test_planner and test_thoughts look at too
def test_it_plans_at_the_table_in_its_world(trained, capsys):
    folder = str(trained / "whole")
    flags = "--episodes 2 --planning.kind search --planning.trees 2 --planning.simulations 3 --planning.depth 2"
    assert main(["evaluate", folder, *flags.split(), "--planning.model", "world", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "--planning.kind search --planning.model world --planning.trees 2" in found["commands"][-1]
    assert found["interval"] == found["interval_greedy"], "a planner always takes the best"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("--planning.kind search --planning.trees 0", "--planning.trees is 0; give 1 or more"),
        ("--adaptation --series 0", "--series is 0; give 1 or more"),
        ("--adaptation --kinds idler", "--kinds is idler; give some of nearest_stag"),
    ],
)
def test_what_makes_no_sense_is_said(trained, capsys, line, reason):
    assert main(["evaluate", str(trained / "whole"), *line.split()]) == 2
    assert reason in capsys.readouterr().err
