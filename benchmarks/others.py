"""How well are scripted players predicted, against the best that is possible?

Models are trained on offline episodes of mixed nearest_stag and nearest_hare players and judged on held-out episodes:
with the player's type known, and with its type inferred from what it has done. Beside them: the same model with
hindsight labels, trained on padded data, trained only on players who caught something, and as a network alone.

    python benchmarks/others.py            the reference sets: 107,010 samples, 8x8 with obstacles and open
    python benchmarks/others.py --quick    30,000 samples on the open 4x4 board, under a minute
    python benchmarks/others.py --paths    only what paths are worth: given, learned, and neither, 3 seeds each on the
                                           two boards of 8x8; written to results/learned_paths.json
"""

import argparse
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.progress import track

from hopplus.agents.config import OpponentsConfig
from hopplus.evaluation.ceiling import Best, best_predictions
from hopplus.evaluation.prediction import Predictions, score
from hopplus.games.presets import make
from hopplus.learning.offline import Episodes, make_episodes, play_cast, scripts_of
from hopplus.learning.pretrain_config import PretrainConfig, Recipe
from hopplus.learning.pretraining import Material, Trainer, filter_beliefs, init, material, predict
from hopplus.models.config import GoalsConfig, OthersConfig
from hopplus.planning import beliefs
from hopplus_doctor.statistics import seed_interval
from measure import interval_words, print_json, print_table, write_result

REFERENCE = ("stag-hunt-8x8-obstacles", "stag-hunt-8x8")
HUNTS = ("hunt stag", "hunt hare")
VARIANTS = ("types", "hindsight labels", "padded", "catches only", "network only")
PATHS = {"given": "types", "learned": "learned paths", "neither": "network only"}
SEEDS = 3
RESULT = Path(__file__).resolve().parent.parent / "results" / "learned_paths.json"


def settings(game: str, samples: int, variant: str, epochs: int) -> PretrainConfig:
    labels = "hindsight" if variant == "hindsight labels" else "types"
    is_given, is_learned = variant not in ("network only", "learned paths"), variant == "learned paths"
    others = OthersConfig(models="shared", keys=16, destinations=is_given, learned_paths=is_learned)
    return PretrainConfig(
        data=Recipe(game=game, samples=samples),
        opponents=OpponentsConfig(GoalsConfig(kind="hindsight"), others),
        labels=labels,
        epochs=epochs,
    )


def training_data(variant: str, data: Material, episodes: Episodes) -> Material:
    """What a variant learns from."""
    valid = np.asarray(data.data.valid)
    if variant == "padded":
        valid = np.broadcast_to(valid.any(axis=-1, keepdims=True), valid.shape)
    if variant == "catches only":
        valid = valid & (np.asarray(episodes.rewards).sum(axis=1) > 0)[:, None]
    return replace(data, data=replace(data.data, valid=valid))


def samples_of(held_out: Episodes, data: Material, predicted: Any, best: Any, marginal: np.ndarray) -> Predictions:
    """The steps of players on the board."""
    on_board = np.asarray(data.data.valid)
    times = np.broadcast_to(np.arange(on_board.shape[1])[None, :, None] / on_board.shape[1], on_board.shape)
    kinds = np.broadcast_to(np.asarray(held_out.kinds)[:, None], on_board.shape)
    last = np.asarray(data.inputs.observation["last_actions"])[..., 0]
    return Predictions(
        probabilities=_normal(np.asarray(predicted)[on_board]),
        actions=np.asarray(held_out.actions)[on_board],
        best=np.asarray(best)[on_board],
        last_actions=last[on_board],
        kinds=kinds[on_board],
        kind_names=("nearest_stag", "nearest_hare"),
        times=times[on_board],
        marginal=marginal,
    )


def _normal(probabilities: np.ndarray) -> np.ndarray:
    return probabilities / probabilities.sum(axis=-1, keepdims=True)


def judge(config: PretrainConfig, models: Any, held_out: Episodes, data: Material, best: Best, marginal: np.ndarray):
    """Scores with the type known and inferred; also the model's filter over the two types."""
    found = predict(config, models, data)
    by_type = jnp.asarray(found.by_goal[..., :2, :])
    run = jax.jit(jax.vmap(filter_beliefs))
    believed = run(by_type, data.inputs.legal, held_out.actions, held_out.in_game)
    names = make(config.data.game).spec.action_names
    own = jax.nn.one_hot(held_out.kinds, 2)
    known = jnp.einsum("ejk,esjka->esja", own, by_type)
    inferred = jnp.einsum("esjk,esjka->esja", believed, by_type)
    scores = {
        "known": score(samples_of(held_out, data, known, best.known, marginal), names),
        "inferred": score(samples_of(held_out, data, inferred, best.inferred, marginal), names),
    }
    return scores, np.asarray(believed)


def belief_error(held_out: Episodes, exact: Best, believed: np.ndarray) -> float:
    """Mean KL(exact || learned) in nats, both filters with the same smoothing."""
    on_board = np.asarray(held_out.in_game)
    one, other = np.asarray(exact.beliefs)[on_board], believed[on_board]
    return float(np.mean(np.sum(one * (np.log(one + 1e-12) - np.log(other + 1e-12)), axis=-1)))


def starting_beliefs(config: PretrainConfig, models: Any, repeats: int, envs: int) -> list[float]:
    """The mean belief in the true type at the start of each of several episodes with the same players."""
    game, scripts = make(config.data.game), scripts_of(config.data)
    cast_key, *keys = jax.random.split(jax.random.key(99), repeats + 1)
    agents = game.spec.num_agents
    kinds = jax.random.randint(cast_key, (envs, agents), 0, len(scripts), jnp.int32)
    counts = jnp.broadcast_to(beliefs.first_counts(len(scripts)), (envs, agents, len(scripts)))
    start_of, count = jax.vmap(jax.vmap(beliefs.starting_belief)), jax.vmap(jax.vmap(beliefs.count))
    play = jax.jit(jax.vmap(lambda kinds, key: play_cast(game, scripts, kinds, key=key)))
    run = jax.jit(jax.vmap(filter_after))
    history = []
    for key in keys:
        start = start_of(counts)
        history.append(belief_in_truth(start, kinds))
        episodes = jax.device_get(play(kinds, jax.random.split(key, envs)))
        data = material(config, game, episodes)
        by_type = jnp.asarray(predict(config, models, data).by_goal[..., :2, :])
        last = run(start, by_type, data.inputs.legal, episodes.actions, episodes.in_game)
        counts = count(counts, last)
    return [*history, belief_in_truth(start_of(counts), kinds)]


def belief_in_truth(belief, kinds) -> float:
    return float(jnp.mean(jnp.take_along_axis(belief, kinds[..., None], axis=-1)))


def filter_after(start, by_type, legal, actions, in_game):
    """The belief about every player of an environment when the episode is over."""
    step = jax.vmap(beliefs.update)
    acted = jnp.where(in_game, actions, -1)
    return jax.lax.scan(lambda belief, now: (step(belief, *now), None), start, (by_type, legal, acted))[0]


def measure(game: str, samples: int, epochs: int, variants: tuple[str, ...], seed: int = 0) -> dict[str, Any]:
    usual = settings(game, samples, "types", epochs)
    episodes = make_episodes(usual.data)
    share = 1 - usual.held_out
    train, held_out = episodes.part(0, share), episodes.part(share, 1)
    rules, scripts = make(game), scripts_of(usual.data)
    data = material(usual, rules, held_out)
    seen, legal = data.inputs.observation, data.inputs.legal
    exact = partial(best_predictions, scripts, held_out.kinds, seen, legal, held_out.actions, held_out.in_game)
    best, smoothed = exact(), exact(smoothing=beliefs.SMOOTHING)
    marginal = np.bincount(np.asarray(train.actions)[np.asarray(train.in_game)], minlength=legal.shape[-1])
    found: dict[str, Any] = {"samples": episodes.num_samples, "episodes": len(episodes.boards), "variants": {}}
    for variant in track(variants, description=f"{game}: {epochs} epochs of each model", transient=True):
        config = settings(game, samples, variant, epochs)
        trainer = Trainer(config, training_data(variant, material(config, rules, train), train))
        state = init(config, key=jax.random.key(seed))
        started = time.perf_counter()
        for _ in range(epochs):
            state, _ = trainer.epoch(state)
        seconds = time.perf_counter() - started
        scores, believed = judge(config, state.opponents.params, held_out, data, best, marginal)
        found["variants"][variant] = {"seconds": seconds, **scores}
        if variant == "types":
            found["belief_kl"] = belief_error(held_out, smoothed, believed)
            found["starting_belief"] = starting_beliefs(config, state.opponents.params, 10, 256)
    return found


def paths() -> dict[str, Any]:
    """Of each way to know paths, on each board: the share of the Bayes ceiling, with intervals over seeds."""
    found: dict[str, Any] = {}
    for game in REFERENCE:
        runs = [measure(game, 107_010, 10, tuple(PATHS.values()), seed) for seed in range(SEEDS)]
        for kind, variant in PATHS.items():
            scores = [run["variants"][variant] for run in runs]
            by_goal = {
                goal: asdict(seed_interval(np.array([score[goal]["top1_over_ceiling"] for score in scores])))
                for goal in ("known", "inferred")
            }
            seconds = float(np.median([score["seconds"] for score in scores]))
            found[f"{game}, {kind}"] = {"game": game, "paths": kind, **by_goal, "seconds": seconds}
    rows = [(name, *(interval_words(one[goal], 3) for goal in ("known", "inferred"))) for name, one in found.items()]
    print_table("top-1 over the Bayes ceiling", ("board, paths", "goal known", "goal inferred"), rows)
    return found


def headline(found: dict[str, Any]) -> dict[str, float]:
    known, inferred = (found["variants"]["types"][how] for how in ("known", "inferred"))
    recalls = {row["name"]: row["recall"] / row["recall_ceiling"] for row in known["actions"] if row["name"] in HUNTS}
    return {
        "top1_over_ceiling_known": known["top1_over_ceiling"],
        "top1_over_ceiling_inferred": inferred["top1_over_ceiling"],
        "ece": max(known["calibration"]["ece"], inferred["calibration"]["ece"]),
        "recall_over_ceiling": min(recalls.values()),
        "belief_kl": found["belief_kl"],
        "starting_belief_after_10": found["starting_belief"][-1],
    }


def show(game: str, found: dict[str, Any]) -> None:
    first = found["variants"]["types"]["known"]["yardsticks"]
    rows = [
        (
            variant,
            *(f"{scores[how]['top1']:.3f}" for how in ("known", "inferred")),
            *(f"{scores[how]['top1_over_ceiling']:.3f}" for how in ("known", "inferred")),
            f"{scores['inferred']['top3']:.3f}",
            f"{scores['inferred']['cross_entropy']:.3f}",
            f"{scores['inferred']['calibration']['ece']:.3f}",
        )
        for variant, scores in found["variants"].items()
    ]
    ceilings = [found["variants"]["types"][how]["yardsticks"]["ceiling"]["top1"] for how in ("known", "inferred")]
    rows += [
        ("Bayes ceiling", *(f"{ceiling:.3f}" for ceiling in ceilings), "1", "1", "", "", ""),
        ("last action", *[f"{first['last_action']['top1']:.3f}"] * 2, *[""] * 5),
        ("most frequent", *[f"{first['marginal']['top1']:.3f}"] * 2, *[""] * 5),
    ]
    title = f"{game}: {found['samples']:,} samples, held-out episodes; top-1, then its share of the ceiling"
    columns = ("trained with", "known", "inferred", "known", "inferred", "top-3", "CE", "ECE")
    print_table(title, columns, rows)
    starts = " ".join(f"{value:.2f}" for value in found["starting_belief"])
    print(f"belief: KL(exact || learned) is {found['belief_kl']:.4f} nats in the mean")
    print(f"belief in the true type at the start of episodes 1 to 11 with the same players: {starts}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="open 4x4 board, fewer samples, epochs and variants")
    parser.add_argument("--paths", action="store_true", help="only given paths, learned paths and neither, 3 seeds")
    given = parser.parse_args()
    if given.paths:
        found = paths()
        command = "python benchmarks/others.py --paths"
        write_result(RESULT, {"commands": [command], "seeds": SEEDS, "boards": found})
        print_json({"boards": found}, ["jax", "equinox", "optax"])
        return
    quick = given.quick
    games, samples, epochs = (("stag-hunt-4x4",), 30_000, 4) if quick else (REFERENCE, 107_010, 10)
    variants = VARIANTS[:2] if quick else VARIANTS
    found = {game: measure(game, samples, epochs, variants) for game in games}
    for game, one in found.items():
        show(game, one)
    print_json({**headline(found[games[0]]), "epochs": epochs, "games": found}, ["jax", "equinox", "optax"])


if __name__ == "__main__":
    main()
