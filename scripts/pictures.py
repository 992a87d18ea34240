"""Draw the pictures of README and docs.

python scripts/pictures.py curves runs    learning curves, of run folders that were trained by the commands in the docs
python scripts/pictures.py pretrained runs    the same for models that begin pretrained, and from scratch
python scripts/pictures.py scores         how well others are predicted, from results/others.json and goal_losses.json
python scripts/pictures.py adaptation     every line-up of ppo and hop_plus, from results/series_*.json
python scripts/pictures.py simulations    return by search budget, from results/simulations_*.json
python scripts/pictures.py doctor runs    what the doctor found in the runs of the two investigations
python scripts/pictures.py beliefs        a belief over an episode, by models that are pretrained for it (a minute)
"""

import json
import sys
from pathlib import Path
from textwrap import fill

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from hopplus.agents.config import OpponentsConfig
from hopplus.games import draw
from hopplus.games.draw import frames
from hopplus.games.presets import make
from hopplus.games.rollout import play_episode
from hopplus.learning.offline import Cast, make_episodes, play_cast, scripts_of
from hopplus.learning.pretrain_config import PretrainConfig, Recipe
from hopplus.learning.pretraining import Trainer, init, material, predict
from hopplus.models.config import GoalsConfig, OthersConfig
from hopplus.report import learning_curve, prediction, save_figure
from hopplus.report.curves import WIDE
from hopplus.runs.records import read_run
from hopplus_doctor import evidence
from hopplus_doctor.answer import Picture
from hopplus_doctor.drawing import MUTED, new_sheet

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"


def curves(runs: Path) -> None:
    small = {"4x4": read_run(runs / "stag-hunt-4x4")}
    save_figure(
        learning_curve(small, best=3.0, label="mean return of training episodes"), PICTURES / "learning_curve.png"
    )
    large = {
        "8x8, arenas": read_run(runs / "stag-hunt-8x8"),
        "8x8, whole board": read_run(runs / "stag-hunt-8x8-no-arenas"),
    }
    save_figure(learning_curve(large, best=3.0, label="mean return of training episodes"), PICTURES / "arenas.png")


def pretrained(runs: Path) -> None:
    """What pretraining is worth: how well the others are predicted, and the return."""
    both = {"pretrained": read_run(runs / "omg-4x4-pretrained"), "from scratch": read_run(runs / "omg-4x4-scratch")}
    top1 = learning_curve(both, "moa/top1", label="top-1 of predicted actions")
    save_figure(top1, PICTURES / "pretrained_top1.png")
    save_figure(learning_curve(both, best=3.0), PICTURES / "pretrained_return.png")


def scores() -> None:
    found = json.loads((ROOT / "results" / "others.json").read_text())
    variants = next(iter(found["games"].values()))["variants"]
    inferred = {name: variant["inferred"] for name, variant in variants.items()}
    save_figure(prediction.yardsticks(inferred), PICTURES / "others_yardsticks.png")
    save_figure(prediction.reliability(inferred["types"]), PICTURES / "others_reliability.png")
    save_figure(prediction.confusion(inferred["types"]), PICTURES / "others_confusion.png")
    save_figure(goal_losses(), PICTURES / "goal_losses.png")


def goal_losses() -> Figure:
    """The terms of the three losses over epochs, for goals of 16 dimensions."""
    losses = json.loads((ROOT / "results" / "goal_losses.json").read_text())["curves"]["16 dimensions"]
    sheet = Figure(figsize=(8.4, 2.9), layout="constrained")
    terms = {"goal/reconstruction": "reconstruction, per cell", "goal/action": "action", "goal/prior_kl": "KL"}
    places = list(sheet.subplots(1, len(terms)))
    for axes, (term, name) in zip(places, terms.items(), strict=True):
        for loss, curve in losses.items():
            axes.plot(range(1, len(curve) + 1), [epoch[term] for epoch in curve], label=f"loss: {loss}")
        axes.set_title(f"{name} (nats)", fontsize=10)
        axes.set_xlabel("epoch")
        axes.set_ylim(bottom=0)
    sheet.legend(*places[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return sheet


def adaptation() -> None:
    """Each line-up as a dot, their mean as a bar, the worst one by name."""
    sheet, axes = new_sheet(WIDE)
    agents, boards = {"ppo": "ppo", "hop_plus": "hop_plus"}, ("4x4", "8x8")
    for place, (board, agent) in enumerate((board, agent) for board in boards for agent in agents):
        found = json.loads((ROOT / "results" / f"defaults_{board}_{agent}.json").read_text())["adaptation"]
        scores = {one["lineup"]: one["late"]["sampled"]["estimate"] for one in found["lineups"]}
        colour = draw.player_colour(list(agents).index(agent))
        shifts = np.linspace(-0.22, 0.22, len(scores))
        axes.bar(place, np.mean(list(scores.values())), width=0.7, color=colour, alpha=0.25)
        axes.plot(place + shifts, list(scores.values()), "o", color=colour, markersize=3)
        worst = min(scores, key=scores.__getitem__)
        axes.annotate(
            f"{worst} {scores[worst]:.2f}",
            (place + shifts[list(scores).index(worst)], scores[worst]),
            xytext=(0, -11),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    axes.margins(y=0.1)
    axes.set_xticks(range(4), [f"{agent}\n{board}" for board in boards for agent in agents])
    axes.axhline(1, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.axhline(0, color=MUTED, linewidth=1.0)
    axes.set_ylabel("normalised return")
    axes.set_title("20 line-ups of scripted co-players: mean (bar), each (dot), worst (name)", fontsize=9)
    save_figure(sheet, PICTURES / "adaptation.png")


def simulations() -> None:
    """Return against the budget of planning, one line for each result; the bars are 95% intervals over seeds."""
    sheet, axes = new_sheet(WIDE)
    results = [json.loads(path.read_text()) for path in sorted((ROOT / "results").glob("simulations_*.json"))]
    for index, found in enumerate(results):
        budgets = found["budgets"]
        middle, low, high = (
            np.array([one["normalised"][key] for one in budgets]) for key in ("estimate", "low", "high")
        )
        places = np.arange(len(budgets)) + 0.06 * index
        label = f"{Path(found['run']).name}, in the {found['model']}"
        colour = draw.player_colour(index)
        axes.errorbar(places, middle, [middle - low, high - middle], label=label, color=colour, marker="o", capsize=2)
        axes.set_xticks(np.arange(len(budgets)), [one["budget"] for one in budgets])
    axes.axhline(1, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.set_xlabel(f"simulations in each of {results[0]['trees']} trees")
    axes.set_ylabel("normalised return")
    axes.legend(frameon=False)
    save_figure(sheet, PICTURES / "simulations.png")


INVESTIGATED = {
    "player_1/doctor_seats.json": {"returns": "player_1_returns", "policies in other seats": "player_1_policies"},
    "value_loss/doctor_critic.json": {"value loss": "value_loss_sources", "attribution": "value_loss_attribution"},
}
"""Findings of runs that docs/why_*.md tell about, and the names of their pictures."""


def doctor(runs: Path) -> None:
    for path, checks in INVESTIGATED.items():
        found = json.loads((runs / path).read_text())
        pictures = {each["check"]: each["picture"] for answer in found["answers"] for each in answer["findings"]}
        for check, name in checks.items():
            picture = Picture(**pictures[check])
            sheet = evidence.WAYS[picture.kind](picture)
            sheet.suptitle(fill(picture.title, 60), fontsize=9)
            save_figure(sheet, PICTURES / f"{name}.png")


def beliefs() -> None:
    """Two stag hunters and two hare hunters, and the beliefs of models that saw 30,000 samples."""
    game_name = "stag-hunt-8x8"
    models = OpponentsConfig(GoalsConfig(kind="hindsight"), OthersConfig(models="shared", keys=16))
    config = PretrainConfig(data=Recipe(game=game_name, samples=30_000), opponents=models, labels="types")
    game, scripts = make(game_name), scripts_of(config.data)
    trainer = Trainer(config, material(config, game, make_episodes(config.data)))
    state = init(config, key=jax.random.key(0))
    for _ in range(3):
        state, _ = trainer.epoch(state)
    kinds, key = jnp.array([0, 1, 0, 1], jnp.int32), jax.random.key(7)
    episode = play_episode(game, Cast(scripts, kinds), key=key)
    recorded = jax.tree.map(lambda leaf: np.asarray(leaf)[None], play_cast(game, scripts, kinds, key=key))
    believed = predict(config, state.opponents.params, material(config, game, recorded)).beliefs[0]
    played = frames(game, jax.device_get(episode))
    num_steps = int(np.asarray(recorded.in_game)[0].any(axis=-1).sum())
    moments = sorted({0, num_steps // 3, 2 * num_steps // 3, num_steps - 1})
    names = [f"player_{seat + 1}: {config.data.types[int(kind)]}" for seat, kind in enumerate(kinds)]
    goals = ("hunts stags", "hunts hares", "other")
    figure = prediction.belief_strip(game.spec, played, np.asarray(believed)[:num_steps], goals, names, moments)
    save_figure(figure, PICTURES / "beliefs.png")


if __name__ == "__main__":
    verb, *more = sys.argv[1:] or ["curves"]
    runs = Path(*more or ["runs"])
    verbs = {
        "curves": lambda: curves(runs),
        "pretrained": lambda: pretrained(runs),
        "scores": scores,
        "adaptation": adaptation,
        "simulations": simulations,
        "doctor": lambda: doctor(runs),
        "beliefs": beliefs,
    }
    verbs[verb]()
