"""The model card of an export: Markdown with the front matter that model hubs read.

Every figure comes from a file of the run folder. What was not measured is said to be missing, with the command that
measures it. A verdict "broken" of the doctor stands above everything else.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from hopplus import __version__
from hopplus.runs.command import train_command
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import ADAPTATION, EVALUATION, read_written
from hopplus.runs.run import Run

DOCTOR = "doctor.json"
EVIDENCE = ("broken", "suspicious")
"""Verdicts whose findings the card lists."""


@dataclass(frozen=True)
class CardData:
    """What a card is made of."""

    folder: Path
    config: RunConfig
    trained_by: str
    """The version of hopplus that wrote the run."""
    game_version: int
    env_steps: int
    seed: int
    num_learning: int
    licence: str
    sizes: Mapping[str, int]
    """The size of each file in bytes."""

    @staticmethod
    def of(run: Run, seed: int, licence: str, sizes: Mapping[str, int]) -> "CardData":
        steps = run.num_updates * run.config.learner.steps_per_update
        version, game_version = str(read_written(run.folder)["version"]), run.game.spec.version
        return CardData(run.folder, run.config, version, game_version, steps, seed, run.num_learning, licence, sizes)

    def measured(self, file: str) -> dict[str, Any] | None:
        """A result in the run folder; None if it was not measured."""
        path = self.folder / file
        if not path.is_file():
            return None
        try:
            result = json.loads(path.read_text())
        except ValueError as error:
            raise ValueError(f"{path} cannot be read ({error}); measure it again, or delete it") from None
        if not isinstance(result, dict):
            raise ValueError(f"{path} holds no result; measure it again, or delete it")
        return result


def model_card(data: CardData) -> str:
    """The text of the card."""
    returns, doctor = data.measured(EVALUATION), data.measured(DOCTOR)
    try:
        parts = [
            _front_matter(data, returns),
            _warning(doctor),
            _about(data),
            _use(data),
            _returns(data, returns),
            _adaptation(data, data.measured(ADAPTATION)),
            _verdict(data, doctor),
            _limits(data),
            f"## Licence\n\n{data.licence}. The person who trained the agent chose it.",
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"a result in {data.folder} is not complete ({type(error).__name__}: {error}); measure it again"
        ) from None
    return "\n\n".join(part for part in parts if part) + "\n"


def _front_matter(data: CardData, returns: dict[str, Any] | None) -> str:
    agent, game = str(data.config.agent), str(data.config.game)
    tags = ["reinforcement-learning", "multi-agent-reinforcement-learning", "jax", agent, game]
    lines = ["---", f"license: {data.licence}", "library_name: hopplus", "tags:"]
    lines += [f"- {json.dumps(tag)}" for tag in tags]
    if returns is not None:
        lines += ["model-index:", f"- name: {json.dumps(f'{agent} on {game}')}", "  results:", "  - task:"]
        lines += ["      type: reinforcement-learning", "      name: reinforcement-learning", "    dataset:"]
        lines += [f"      name: {json.dumps(game)}", f"      type: {json.dumps(game)}", "    metrics:"]
        lines += ["    - type: mean_reward", f"      value: {json.dumps(_words(returns['interval']))}"]
        lines += ["      name: mean return in self-play, 95% interval over seeds", "      verified: false"]
    return "\n".join([*lines, "---"])


def _warning(doctor: dict[str, Any] | None) -> str:
    if doctor is None or doctor["verdict"] != "broken":
        return ""
    broken = [finding for finding in _findings(doctor) if finding["verdict"] == "broken"]
    return "> **This run is broken, says `hopplus doctor`.** Do not cite its results.\n>\n" + "\n".join(
        f"> - {finding['check']} ({finding['module']}): {finding['says']}" for finding in broken
    )


def _of_population(config: RunConfig) -> str:
    more = config.learner.population_steps
    return f", and {more:,} of the population that it responds to" if more else ""


def _about(data: CardData) -> str:
    config = data.config
    return f"""# {config.agent} on {config.game}

An agent of hopplus, a library of agents for mixed-motive games: seed {data.seed} of {config.seeds},
{data.num_learning} trained seats, {data.env_steps:,} environment steps per seed{_of_population(config)}.

| | |
|---|---|
| game | {config.game}, version {data.game_version} of its rules |
| trained with | hopplus {data.trained_by} |
| exported with | hopplus {__version__}, JAX {jax.__version__} |

    {train_command(config, Path(data.folder.name))}"""


def _use(data: CardData) -> str:
    files = "\n".join(f"- `{name}`: {size:,} bytes" for name, size in data.sizes.items())
    return f"""## Use

The policy runs with JAX alone (`pip install jax flatbuffers`; `jax.export` reads programs with flatbuffers):

    import jax, jax.numpy as jnp
    from jax import export
    init, policy = (export.deserialize(open(f"{{name}}.jax_export", "rb").read()) for name in ("init", "policy"))
    seat = jnp.zeros(1, jnp.int32)                      # one environment; any number at once
    state = init.call(seat)
    probabilities, state = policy.call(seat, observation, legal, state)

`config.json` has the fields of an observation, with type and shape, and the names of the actions. `next_episode` is
called between two episodes with the same co-players. The weights are also in `model.safetensors`.

{files}"""


def _returns(data: CardData, returns: dict[str, Any] | None) -> str:
    if returns is None:
        return f"## Returns\n\nNot measured. `hopplus evaluate {data.folder.name}` measures them."
    shown = [(seat["seat"], seat["sampled"], seat["greedy"]) for seat in returns["per_seat"]]
    shown.append(("mean", returns["interval"], returns["interval_greedy"]))
    rows = [f"| {name} | {_words(sampled)} | {_words(greedy)} |" for name, sampled, greedy in shown]
    return "\n".join(
        [
            "## Returns",
            "",
            f"The policies of training, {returns['episodes']:,} episodes for each of {returns['seeds']} seeds. "
            + _interval_words(returns["seeds"]),
            "",
            "| seat | sampled | greedy |",
            "|---|---|---|",
            *rows,
            "",
            f"    {returns['commands'][-1]}",
        ]
    )


def _adaptation(data: CardData, result: dict[str, Any] | None) -> str:
    if result is None:
        return f"## Adaptation\n\nNot measured. `hopplus evaluate {data.folder.name} --adaptation` measures it."
    rows = [
        f"| {row['lineup']} | {_words(row['sampled'])} | {row['oracle']:.2f} | {_words(row['normalised']['sampled'])} |"
        for row in result["lineups"]
    ]
    mean = f"| mean | {_words(result['mean']['sampled'])} | | {_words(result['normalised']['sampled'])} |"
    return "\n".join(
        [
            "## Adaptation",
            "",
            "The frozen agent in one seat, with scripts in the others: N hunts stags, H hunts hares, R plays at "
            f"random. {result['episodes']:,} episodes with each line-up. Normalised: 0 is uniform play, 1 a reference "
            "response. "
            f"The agent's models saw: {result['saw']}. {_interval_words(result['seeds'])}",
            "",
            "| co-players | return | reference | normalised |",
            "|---|---|---|---|",
            *rows,
            mean,
            "",
            f"    {result['commands'][-1]}",
        ]
    )


def _verdict(data: CardData, doctor: dict[str, Any] | None) -> str:
    if doctor is None:
        return f"## The doctor's verdict\n\nNot examined. `hopplus doctor {data.folder.name}` examines the run."
    counts = dict.fromkeys(("fine", "not enough evidence", *reversed(EVIDENCE)), 0)
    for finding in _findings(doctor):
        counts[finding["verdict"]] += 1
    lines = [
        f"- {finding['verdict']}, {finding['kind']}: {finding['check']} ({finding['module']}): {finding['says']}"
        for verdict in EVIDENCE
        for finding in _findings(doctor)
        if finding["verdict"] == verdict
    ]
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    found = ["\n".join(lines)] if lines else []
    parts = [f"**{doctor['verdict']}** ({summary}).", *found, f"    {doctor['command']}"]
    return "## The doctor's verdict\n\n" + "\n\n".join(parts)


def _limits(data: CardData) -> str:
    lines = [
        f"- It plays {data.config.game} with these rules and seats, and was tested on nothing else.",
        "- Its policy was trained with the co-players of its training. Other co-players, people too, may do what it "
        "never saw.",
        "- Sampled and greedy play differ. The program returns probabilities; the caller samples.",
    ]
    if data.config.learner.planning.is_used:
        lines.append("- The agent searches when it acts; this export is its policy without search, which plays worse.")
    if data.config.seeds == 1:
        lines.append("- One seed was trained, so no figure here has an interval over seeds.")
    return "## Limits\n\n" + "\n".join(lines)


def _interval_words(seeds: int) -> str:
    return "Intervals are 95% over seeds." if seeds > 1 else "One seed: no interval over seeds is possible."


def _findings(doctor: dict[str, Any]) -> list[dict[str, Any]]:
    return [finding for answer in doctor["answers"] for finding in answer["findings"]]


def _words(interval: dict[str, Any]) -> str:
    """An estimate with its interval, if it has one."""
    estimate, low, high = (interval[name] for name in ("estimate", "low", "high"))
    if estimate is None or not math.isfinite(estimate):
        return "-"
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return f"{estimate:.2f}"
    return f"{estimate:.2f} ({low:.2f} to {high:.2f})"
