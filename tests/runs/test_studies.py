"""Studies on Ray: nothing that is killed changes a bit, what is done is not done again, what fails says why."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from hopplus.cli.main import main
from hopplus.runs import train
from hopplus.runs.records import Recorded
from hopplus.runs.studies import Question, Study, open_study, read_study, run_study, summary
from hopplus.runs.studies.cluster import failure_file
from hopplus.runs.studies.study import RETURNS, Trial, slug, write_study
from hopplus.runs.studies.summary import answer, state_of, summarise
from hopplus_doctor.statistics import improvement, improvement_interval, interquartile_mean
from runs.ray_cluster import Killer, small_study
from runs.tiny import assert_same_run, config
from test_examples import EXAMPLES

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's own

FILE = """
about = "Is more better?"
flags = "--game matrix-stag-hunt --envs 8 --rollout-steps 10 --steps 800 --network.hidden 8 --ppo.minibatch-size 40"
trials = 2

[variants]
"often" = "ppo"
"once, slow" = "ppo --ppo.epochs 1 --steps 400"

[[questions]]
ask = "Is often better than once?"
compare = ["often", "once, slow"]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(FILE)
    return path


def test_a_file_says_what_one_would_type(file):
    study = read_study(file)
    often, once = study.variants.values()
    assert (often.learner.ppo.epochs, once.learner.ppo.epochs) == (4, 1)
    assert (often.steps, once.steps, often.seeds) == (800, 400, 1)  # a variant's own flag counts
    assert [trial.config.seed for trial in study.all_trials()] == [0, 0, 1, 1]
    assert [str(trial.place) for trial in study.all_trials()][:2] == ["trials/often/0", "trials/once-slow/0"]
    write_study(study, file.parent / "out")
    assert open_study(file.parent / "out") == study


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.toml")), ids=lambda path: path.stem)
def test_the_example_studies_can_be_read(path):
    study = read_study(path)
    assert study.variants and all(name in study.variants for one in study.questions for name in one.compare)
    assert f"hopplus study run {path.relative_to(EXAMPLES.parent)}" in path.read_text().splitlines()[0]


def test_a_variants_switch_counts_whichever_way_the_study_turns_it(file):
    off = "ppo --imagination.no-trust --others.marginal --steps=400"
    flags = "--imagination.trust --others.no-marginal --modelling.rewarded-only --steps 800"
    file.write_text(
        f'flags = "--game matrix-stag-hunt {flags}"\n[variants]\nplain = "ppo --envs 8"\noff = "{off} --envs 8"'
    )
    plain, off = read_study(file).variants.values()
    assert (plain.learner.imagination.trust, off.learner.imagination.trust) == (True, False)
    assert (plain.learner.opponents.others.marginal, off.learner.opponents.others.marginal) == (False, True)
    assert plain.learner.modelling.rewarded_only and off.learner.modelling.rewarded_only
    assert (plain.steps, off.steps) == (800, 400)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[variants]", "[variant]"), "has the key 'variant'; the keys are about, before, flags"),
        (("trials = 2", "trials = 0"), "trials is 0; give 1 or more"),
        (('"ppo"', '"sarsa"'), "variant 'often' starts with 'sarsa'; start with an agent: ppo, mappo"),
        (('"ppo"', '"ppo fast"'), "variant 'often' has flags that cannot be used; correct what is"),
        (
            ('"ppo"', '"ppo --ppo.epoch 1"'),
            "variant 'often' has flags that cannot be used; correct what is",
        ),
        (('"often", "once', '"always", "once'), "compares 'always'; the variants are often, once, slow"),
        (('"once, slow" = "ppo', '"Often!" = "ppo'), "variants would share a folder"),
        (("trials = 2", "trials = "), "is no TOML file"),
    ],
)
def test_a_file_that_makes_no_sense_says_so(file, change, said, capsys):
    file.write_text(FILE.replace(*change))
    assert main(["study", "run", str(file), "--out", str(file.parent / "out")]) == 2
    assert said in capsys.readouterr().err
    assert not (file.parent / "out").exists()


def test_interquartile_means_and_improvement_by_hand():
    scores = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0])
    assert interquartile_mean(scores) == 3.5
    assert improvement(np.array([1.0, 3.0]), np.array([1.0, 2.0])) == (0.5 + 0 + 1 + 1) / 4
    assert math.isnan(improvement_interval(scores, scores[:1]).low)
    found = improvement_interval(scores + 200, scores)
    assert found.estimate == 1.0 and found.high == 1.0
    # (1 - p)^2 = z^2 p (1 - p) (1 + 7 ((1 - p) / (2 - p) + p / (1 + p))) / 64 at the lower end
    p, z = found.low, 1.959964
    spread = 1 + 7 * ((1 - p) / (2 - p) + p / (1 + p))
    assert (1 - p) ** 2 == pytest.approx(z**2 * p * (1 - p) * spread / 64, rel=1e-4)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The small study, trained in this process one trial after another, where nobody kills."""
    out, study = tmp_path_factory.mktemp("undisturbed"), small_study(trials=1, updates=120)
    write_study(study, out)
    for trial in study.all_trials():  # with one checkpoint: to write those that only a killed run needs takes longest
        train(replace(trial.config, checkpoint_every=trial.config.num_updates), out / trial.place)
    return out


def test_results_of_other_settings_are_not_taken_for_those_that_are_asked(undisturbed):
    study, written = small_study(trials=1, updates=120), (undisturbed / "study.json").read_text()
    plain = study.variants["plain"]
    other = replace(plain, learner=replace(plain.learner, ppo=replace(plain.learner.ppo, learning_rate=0.5)))
    with pytest.raises(ValueError, match=r"holds a run with --ppo.learning-rate .*, not 0.5; .* with --out"):
        run_study(replace(study, variants=study.variants | {"plain": other}), undisturbed)
    assert (undisturbed / "study.json").read_text() == written


def test_trials_may_end_early_at_different_updates(monkeypatch, tmp_path):
    study = Study("lengths differ", {"only": config(updates=10, seeds=1)}, 2)
    lengths = {"0": 10, "1": 5}

    def recorded(folder):
        steps = np.arange(1, lengths[folder.name] + 1)
        return Recorded("run", {}, steps, {RETURNS: steps[:, None].astype(float)}, {}, None)

    monkeypatch.setattr(summary, "read_run", recorded)
    monkeypatch.setattr(Trial, "is_done", lambda *_: True)
    curve = summary.read_curve(study, tmp_path, "only", RETURNS)
    assert curve is not None and curve.values.shape == (10, 2) and curve.env_steps.tolist() == list(range(1, 11))
    assert np.isnan(curve.values[5:, 1]).all() and curve.values[4].tolist() == [5, 5]
    assert curve.scores.tolist() == [9.5, 5.0]  # each over the last fifth of its own training


def test_what_is_done_is_not_done_again(undisturbed):
    states = []
    assert run_study(small_study(trials=1, updates=120), undisturbed, on_state=lambda *each: states.append(each)) == []
    assert [state for _, state, _ in states] == ["done"] * 3
    study = small_study(trials=1, updates=120)
    asked = replace(study, questions=(Question("is one enough?", ("plain", "one epoch")),))
    found = summarise(study, undisturbed)
    assert [one.seeds for one in found] == [1, 1, 1] and found[0].seconds > 0
    given = answer(asked, undisturbed, asked.questions[0])
    assert given and given.verdict == "not enough seeds to tell"


@pytest.mark.parametrize(
    ("kills", "trials", "updates"), [(2, 1, 120), pytest.param(11, 4, 400, marks=pytest.mark.heavy)]
)
def test_killed_workers_and_nodes_change_nothing(kills, trials, updates, tmp_path, request):
    """On a cluster of three nodes; the heavy one is ten kills of workers and one of a node among twelve trials."""
    from ray.cluster_utils import Cluster

    study = small_study(trials=trials, updates=updates)
    if trials == 1:
        expected = request.getfixturevalue("undisturbed")
    else:
        expected = tmp_path / "undisturbed"
        run_study(study, expected)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        killer = Killer(cluster, kills, study=study, out=tmp_path / "disturbed", seed=0)
        killer.start()
        run_study(study, tmp_path / "disturbed", address=cluster.address)
        killer.enough.set()
        killer.join()
    finally:
        cluster.shutdown()
    assert "node" in killer.killed and "worker" in killer.killed, killer.killed
    print(f"killed: {killer.killed}")
    for trial in study.all_trials():
        assert_same_run(tmp_path / "disturbed" / trial.place, expected / trial.place)


def test_a_trial_that_fails_says_why_and_the_others_go_on(tmp_path, capsys):
    bad = config(updates=20, seeds=1, ppo={"learning_rate": 1e30})
    study = Study("one fails", {"bad": bad, "good": config(updates=3, seeds=1)}, 1)
    ended = {one.trial.variant: one.reason for one in run_study(study, tmp_path)}
    assert ended["good"] is None and "are not finite after update" in (ended["bad"] or "")
    bad_trial, good_trial = study.all_trials()
    assert state_of(bad_trial, tmp_path)[0] == "failed" and state_of(good_trial, tmp_path)[0] == "done"
    assert "not finite" in failure_file(tmp_path, bad_trial).read_text()
    assert main(["study", "status", str(tmp_path)]) == 1
    assert "failed" in capsys.readouterr().out
    assert main(["study", "report", str(tmp_path), "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["variants"]] == ["good"]
    assert "NonFiniteRunError" in (tmp_path / "study.html").read_text()
    exported = json.loads((tmp_path / "marl_eval.json").read_text())
    assert exported["matrix-stag"]["hunt"]["good"]["seed_0"]["absolute_metrics"]["mean_episode_return"]


@pytest.mark.heavy  # Ray is started twice, and everything is compiled in its workers
def test_ctrl_c_stops_a_study_and_the_same_command_completes_it(file):
    file.write_text(FILE.replace("--steps 800", "--steps 40000 --checkpoint-every 20").replace(" --steps 400", ""))
    program = "from hopplus.cli.main import entry; entry()"
    out = file.parent / "out"
    line = [sys.executable, "-c", program, "study", "run", str(file), "--out", str(out)]
    process = subprocess.Popen(line, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun = out / "trials" / slug("often") / "0" / "checkpoints"
    until = time.monotonic() + 600
    while time.monotonic() < until and not (begun.is_dir() and any(place.name.isdigit() for place in begun.iterdir())):
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    said, complaint = process.communicate(timeout=600)
    assert process.returncode == 130, complaint
    assert "the same command resumes it" in said
    kept = [int(place.name) for place in begun.iterdir() if place.name.isdigit()]
    assert kept and max(kept) < 500
    assert main(["study", "run", str(file), "--out", str(out)]) == 0
    assert all(trial.is_done(out) for trial in open_study(out).all_trials())


@pytest.mark.heavy  # Ray is started three times; that workers and nodes are killed is looked at above
def test_a_study_whose_head_is_lost_is_completed_by_the_same_call(undisturbed, tmp_path):
    """The whole cluster dies in the middle, with the driver that was connected to it; another one takes its place."""
    from ray.cluster_utils import Cluster

    program = (
        "import sys; from pathlib import Path; from hopplus.runs.studies import open_study, run_study; "
        "run_study(open_study(Path(sys.argv[1])), Path(sys.argv[1]), address=sys.argv[2])"
    )
    study, out = small_study(trials=1, updates=120), tmp_path / "study"
    write_study(study, out)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    driver = subprocess.Popen([sys.executable, "-c", program, str(out), cluster.address], stderr=subprocess.DEVNULL)
    first = next(study.all_trials())
    until = time.monotonic() + 600
    while time.monotonic() < until and not first.is_done(out):
        time.sleep(0.2)
    cluster.shutdown()
    driver.kill()
    driver.wait()
    assert first.is_done(out) and not all(trial.is_done(out) for trial in study.all_trials())
    ended = run_study(study, out)
    assert ended and all(one.reason is None for one in ended) and first not in {one.trial for one in ended}
    for trial in study.all_trials():
        assert_same_run(out / trial.place, undisturbed / trial.place)
