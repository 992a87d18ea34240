"""A right recording raises no alarm; each planted mistake is named with its part first, and no other seat is blamed."""

import numpy as np
import pytest

from hopplus_doctor.examination import examine_recordings
from hopplus_doctor.recorder import Recorder
from recordings.made import ACTIONS, ENVS, LAMBDA, NAMES, SEATS, TIME, advantages_of, arrays, write


def shift(flags, by):
    return np.roll(flags, by, axis=-1)


def recomputed(data, **changes):
    """The data with the advantages that follow from other values."""
    names = ("rewards", "values", "terminated", "truncated", "final_values", "last_values")
    advantages = advantages_of(*((data | changes)[name] for name in names))
    return data | {"advantages": advantages, "targets": advantages + data["values"]}


def nothing(data):
    return np.zeros_like(data["terminated"])


def gae(data, stops, cuts, discount=0.95, decay=LAMBDA):
    """A loop that stops the value and the sum at different places."""
    found, carry, after = np.zeros_like(data["values"]), 0.0, data["last_values"]
    for step in reversed(range(TIME)):
        value = np.where(stops[..., step], 0.0, after)
        carry = (
            data["rewards"][..., step]
            + discount * value
            - data["values"][..., step]
            + discount * decay * (~cuts[..., step] * carry)
        )
        found[..., step], after = carry, data["values"][..., step]
    return data | {"advantages": found, "targets": found + data["values"]}


def second(array, change):
    """Change the second seat only."""
    changed = np.array(array)
    changed[1] = change(changed[1])
    return changed


def only_ends(data):
    """The data without time limits."""
    over = data["terminated"] | data["truncated"]
    return recomputed(
        data | {"terminated": over, "truncated": np.zeros_like(over)}, terminated=over, truncated=0 * over == 1
    )


MISTAKES = {
    "illegal action": (lambda d: d | {"legal": second(d["legal"], lambda m: m & False)}, "legal masks"),
    "ends late": (
        lambda d: d | {"terminated": shift(d["terminated"], 1), "truncated": shift(d["truncated"], 1)},
        "ends: masks",
    ),
    "resets late": (
        lambda d: d | {"resets": shift(d["resets"], 1), "memory_resets": shift(d["resets"], 1)},
        "ends: masks",
    ),
    "memory reset late": (lambda d: d | {"memory_resets": shift(d["resets"], 1)}, "memory: resets"),
    "memory reset at the end": (lambda d: d | {"memory_resets": d["terminated"] | d["truncated"]}, "memory: resets"),
    "memory never reset": (lambda d: d | {"memory_resets": second(d["resets"], np.zeros_like)}, "memory: resets"),
    "learns after leaving": (
        lambda d: d | {"in_game": second(d["in_game"], lambda m: np.broadcast_to(np.arange(TIME) < 20, m.shape))},
        "buffer: samples after leaving",
    ),
    "reward of another": (
        lambda d: recomputed(d | {"rewards": second(d["rewards"], lambda _: d["rewards"][0])}),
        "rewards",
    ),
    "reward of the step before": (lambda d: d | {"rewards": second(d["rewards"], lambda r: shift(r, 1))}, "rewards"),
    "targets of another's rewards": (
        lambda d: recomputed(d, rewards=second(d["rewards"], lambda _: d["rewards"][0])),
        "rewards",
    ),
    "past ends": (lambda d: gae(only_ends(d), nothing(d), nothing(d)), "ends: bootstrapping"),
    "advantages across episodes": (
        lambda d: gae(only_ends(d), only_ends(d)["terminated"], nothing(d)),
        "ends: advantages across episodes",
    ),
    "end of the step before": (
        lambda d: gae(only_ends(d), *2 * [shift(only_ends(d)["terminated"], 1) & (np.arange(TIME) > 0)]),
        "ends: masks",
    ),
    "time limits as ends": (
        lambda d: recomputed(d, terminated=d["terminated"] | d["truncated"], truncated=nothing(d)),
        "ends: time limits",
    ),
    "no discount": (lambda d: gae(only_ends(d), *2 * [only_ends(d)["terminated"]], discount=1.0), "targets: discount"),
    "lambda of 1": (lambda d: gae(only_ends(d), *2 * [only_ends(d)["terminated"]], decay=1.0), "targets: lambda"),
    "values of another": (
        lambda d: recomputed(
            d,
            values=second(d["values"], lambda _: d["values"][0]),
            last_values=second(d["last_values"], lambda _: d["last_values"][0]),
        ),
        "critic",
    ),
    "targets of nothing": (
        lambda d: d | {"advantages": np.random.default_rng(0).normal(size=d["values"].shape)},
        "targets",
    ),
    "goals of one seat zero": (lambda d: d | {"goals": second(d["goals"], np.zeros_like)}, "goals"),
    "wrong log-probabilities": (
        lambda d: d | {"log_probabilities": second(d["log_probabilities"], lambda p: p - 0.1)},
        "policy: log-probabilities",
    ),
    "no mask": (
        lambda d: d | {"probabilities": second(d["probabilities"], lambda p: np.full_like(p, 1 / ACTIONS))},
        "legal masks",
    ),
}


def boards(seed):
    """Observations that move through episodes whose starts are drawn, and the flags of the beginnings."""
    data, random = arrays(seed), np.random.default_rng(seed)
    views = random.integers(9, size=(SEATS, *data["resets"].shape[1:], 4))
    return data | {"observations": views.astype(float)}


def stuck(data):
    """Within an episode nothing moves."""
    views = np.array(data["observations"])
    for step in range(1, TIME):
        views[:, :, step] = np.where(data["resets"][..., step, None], views[:, :, step], views[:, :, step - 1])
    return data | {"observations": views}


def same_start(data):
    """Every episode of an env begins as the first one, by the number of the env."""
    of_env = np.arange(ENVS)[None, :, None, None] * np.ones(data["observations"].shape)
    return data | {"observations": np.where(data["resets"][..., None], of_env, data["observations"])}


def same_streams(data):
    """The starts of the second env are those of the first, each at its own time."""
    views, resets = np.array(data["observations"]), data["resets"][0]
    one, other = np.flatnonzero(resets[0]), np.flatnonzero(resets[1])
    for to, source in zip(other, one, strict=False):
        views[:, 1, to] = views[:, 0, source]
    return data | {"observations": views}


def walking(data, wrong):
    """Three players on cells of their own, who now and then make a wrong move."""
    places = np.broadcast_to(np.arange(SEATS)[:, None, None], data["values"].shape).copy()
    if wrong == "together":
        places[1, :, 12] = 0
    if wrong == "swapped":
        places[:2, :, 12:] = places[1::-1, :, 12:]
    seen = np.full(places.shape, SEATS)
    seen[2, 1, 3] -= wrong == "vanished"
    return data | {"places": places, "players_seen": seen}


VIEWS = {
    "right": (lambda d: walking(d, None), ()),
    "twins": (
        lambda d: d | {"observations": second(d["observations"], lambda _: d["observations"][0])},
        "observations",
    ),
    "stuck": (stuck, "observations"),
    "same start": (same_start, "random streams: envs"),
    "same streams": (same_streams, "random streams: envs"),
    "together": (lambda d: walking(d, "together"), "game: moves"),
    "swapped": (lambda d: walking(d, "swapped"), "game: moves"),
    "vanished": (lambda d: walking(d, "vanished"), "observations"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_mistakes_of_observations_and_places_are_named(tmp_path, name):
    change, part = VIEWS[name]
    recorder = Recorder(tmp_path, NAMES, shared_observations=False, one_per_cell=True, swaps=False)
    for update in range(12):
        data = change(boards(update))
        recorder.record(update, **{key: data[key] for key in VIEW_ARRAYS if key in data})
    found, verdict = suspects(recorder.save())
    assert found == ((part,) if part else ())
    assert (verdict == "broken") == bool(part)


VIEW_ARRAYS = ("observations", "resets", "terminated", "truncated", "places", "players_seen", "in_game")


def test_a_shared_observation_is_no_fault(tmp_path):
    for meant, verdict in ((True, ()), (None, ()), (False, ("observations",))):
        recorder = Recorder(tmp_path / str(meant), NAMES, shared_observations=meant)
        views = boards(0)["observations"][[0, 0, 0]]
        recorder.record(0, observations=views, resets=arrays(0)["resets"])
        assert suspects(recorder.save())[0] == verdict


def q_targets(data, wrong):
    """Targets of double Q-learning; the best actions are those of another table of values."""
    random = np.random.default_rng(3)
    values = random.normal(size=data["legal"].shape)
    best = np.where(data["legal"], random.normal(size=values.shape), -np.inf).argmax(-1)
    chosen = best if wrong != "late" else np.concatenate([best[..., :1], best[..., :-1]], -1)
    after = np.take_along_axis(values, chosen[..., None], -1)[..., 0]
    after = values.max(-1) if wrong == "illegal" else after
    after = np.concatenate([after[..., 1:], np.zeros_like(after[..., :1])], -1)
    targets = data["rewards"] + 0.95 * np.where(data["terminated"], 0.0, after)
    kept = {name: data[name] for name in ("legal", "actions", "rewards", "terminated", "truncated", "resets")}
    return kept | {"action_values": values, "best_actions": best, "targets": targets}


@pytest.mark.parametrize(
    ("wrong", "part"), [(None, ()), ("illegal", ("legal masks",)), ("late", ("targets: best action",))]
)
def test_targets_of_action_values_are_recomputed(tmp_path, wrong, part):
    recorder = Recorder(tmp_path, NAMES, discount=0.95)
    for update in range(3):
        recorder.record(update, **q_targets(arrays(update), wrong))
    found, _ = suspects(recorder.save())
    assert found == part
    asked = {finding.check: finding for finding in examine_recordings([tmp_path]).findings}["targets, real"]
    assert asked.verdict == ("broken" if wrong else "fine")


def rescaled(data):
    """Advantages from which values of another scale were subtracted."""
    return data | {"advantages": data["targets"] - (data["values"] - 0.3) / 0.4}


def own_end(data):
    """The second seat ends alone, in the middle of an episode, and still counts as in the game."""
    going_on = ~(data["terminated"] | data["truncated"])
    early = going_on & (np.arange(TIME) % 7 == 3) & (np.arange(SEATS) == 1)[:, None, None]
    return recomputed(data | {"terminated": data["terminated"] | early}, terminated=data["terminated"] | early)


def joined_at_time_limits(data):
    """The value is right where the time is up, and the sum goes on."""
    found, carry, after = np.zeros_like(data["values"]), 0.0, data["last_values"]
    for step in reversed(range(TIME)):
        cut = np.where(data["truncated"][..., step], data["final_values"][..., step], after)
        value = np.where(data["terminated"][..., step], 0.0, cut)
        carry = ~data["terminated"][..., step] * carry * 0.95 * LAMBDA
        carry = data["rewards"][..., step] + 0.95 * value - data["values"][..., step] + carry
        found[..., step], after = carry, data["values"][..., step]
    return data | {"advantages": found, "targets": found + data["values"]}


def at_time_limits(data):
    """A large number is bootstrapped at time limits."""
    return recomputed(data, final_values=np.full_like(data["values"], -1e4)) | {"final_values": data["final_values"]}


MISTAKES |= {
    "values of two scales": (rescaled, "critic: scale of values"),
    "sums across time limits": (joined_at_time_limits, "ends: advantages across episodes"),
    "padding at time limits": (at_time_limits, "ends: time limits"),
    "in the game after its end": (own_end, "buffer: samples after leaving"),
}


def suspects(folder):
    examination = examine_recordings([folder])
    return examination.suspects, examination.verdict


@pytest.mark.parametrize("seed", range(3))
def test_a_right_recording_raises_no_alarm(tmp_path, seed):
    examination = examine_recordings([write(tmp_path, seed=seed)])
    assert examination.suspects == ()
    fine = {finding.check for finding in examination.findings if finding.verdict == "fine"}
    assert {
        "legal actions, real",
        "ends and resets",
        "recurrent resets",
        "samples, real",
        "rewards",
        "targets, real",
    } <= fine


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_part_first(tmp_path, name):
    change, part = MISTAKES[name]
    found, verdict = suspects(write(tmp_path, change))
    assert verdict == "broken" and found[0] == part, found


def two_seats(draws):
    """A policy of two equal actions, sampled with given random numbers [seats, envs, time]."""
    actions = (draws > 0.5).astype(int)
    return {"actions": actions, "probabilities": np.full((*actions.shape, 2), 0.5)}


def test_equal_random_numbers_are_found_and_independent_ones_are_not(tmp_path):
    random = np.random.default_rng(0)
    for name, part in (("same", ("random streams",)), ("own", ())):
        recorder = Recorder(tmp_path / name, ["a", "b"])
        for update in range(4):
            draws = random.random((2, 4, 60))
            recorder.record(update, **two_seats(draws[[0, 0]] if name == "same" else draws))
        assert suspects(recorder.save())[0] == part


def models(wrong=None):
    """Predictions of co-players and of a world, which are right but for one part."""
    random = np.random.default_rng(1)
    chances = np.eye(3)[random.integers(3, size=(1, 4, 100, 1))] * 0.7 + 0.1
    actions = (random.random((1, 4, 100, 1, 1)) > chances.cumsum(-1)).sum(-1).clip(max=2)
    if wrong == "collapsed":
        chances = np.broadcast_to(np.array([0.98, 0.01, 0.01]), chances.shape)
    there = np.ones(actions.shape, bool)
    there[..., 80:, :] = False
    learned = np.ones_like(there) if wrong == "padded" else there
    came = random.integers(2, size=(1, 4, 100, 5)).astype(float)
    ends = random.random((1, 4, 100)) < 0.2
    rewards = random.normal(size=(1, 4, 100))
    noise = 0.1 * random.normal(size=came.shape)
    world = {
        "observations": came,
        "predicted_observations": came + noise * (30 if wrong == "observations" else 1),
        "rewards": rewards,
        "predicted_rewards": rewards * (5 if wrong == "rewards" else 1),
        "ends": ends,
        "predicted_ends": np.where(ends, 0.0 if wrong == "ends" else 0.8, 0.05),
    }
    return {"probabilities": chances, "actions": actions, "in_game": there, "learned": learned}, world


@pytest.mark.parametrize(
    ("wrong", "part"),
    [
        (None, None),
        ("collapsed", "others"),
        ("padded", "others: data"),
        ("observations", "world: observations"),
        ("rewards", "world: rewards"),
        ("ends", "world: ends"),
    ],
)
def test_models_are_judged(tmp_path, wrong, part):
    recorder = Recorder(tmp_path, ["a"])
    others, world = models(wrong=wrong)
    recorder.record(0, "others", **others)
    recorder.record(0, "world", **world)
    assert suspects(recorder.save())[0][:1] == ((part,) if part else ())


@pytest.mark.parametrize("scope", ["seat", "all", "none"])
@pytest.mark.parametrize("meant", ["seat", "all", "none"])
def test_normalisation_and_clipping_are_told_apart(tmp_path, scope, meant):
    random = np.random.default_rng(0)
    recorder = Recorder(tmp_path, NAMES, normalise_advantages=meant, clip_gradients=meant, max_gradient_norm=0.5)
    for update in range(3):
        raw = random.normal(size=(SEATS, 40)) * np.array([[1.0], [3.0], [9.0]]) + np.array([[0.0], [1.0], [2.0]])
        axis = {"seat": 1, "all": None}.get(scope)
        used = raw if scope == "none" else (raw - raw.mean(axis, keepdims=True)) / raw.std(axis, keepdims=True)
        norms = np.array([0.2, 1.0, 3.0]) * (1 + update)
        size = {"seat": norms, "all": np.sqrt((norms**2).sum()), "none": 0.0 * norms + 1e-9}[scope]
        clipped = norms * np.minimum(1.0, 0.5 / size)
        recorder.record(update, "minibatch", advantages=raw, normalised_advantages=used)
        recorder.record(update, "updates", gradient_norms=norms, clipped_gradient_norms=clipped)
    found, _ = suspects(recorder.save())
    assert found == (() if scope == meant else ("policy: normalisation", "policy: gradient clipping"))


def test_a_module_that_one_seat_never_updates_is_named(tmp_path):
    recorder = Recorder(tmp_path, ["a", "b"], modules=["policy", "critic"])
    for update in range(3):
        before = {name: [np.full(3, update), np.full(3, update + 0.5)] for name in ("policy", "critic")}
        after = {name: [array + 1 for array in arrays_] for name, arrays_ in before.items()}
        after["critic"][1] = before["critic"][1]
        recorder.checksums(update, "before", before)
        recorder.checksums(update, "after", after)
    assert suspects(recorder.save()) == (("critic",), "broken")


def test_a_seat_that_always_wins_shows_over_seeds(tmp_path):
    folders = []
    for seed in range(5):
        recorder = Recorder(tmp_path / str(seed), NAMES, symmetric=True)
        noise = np.random.default_rng(seed).normal(0, 0.02, SEATS)
        for update in range(10):
            recorder.record(update, "updates", returns=np.array([2.0, 1.0, 1.0]) + noise)
        folders.append(recorder.save())
    assert examine_recordings(folders).suspects == ("seats",)
    assert examine_recordings(folders[:2]).suspects == ()


def test_arrays_of_a_seed_are_what_the_tests_say():
    assert arrays(0)["rewards"].shape[0] == SEATS
