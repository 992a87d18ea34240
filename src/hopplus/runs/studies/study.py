"""A study: variants of a training, several trials of each, and the questions that they are to answer.

As a file (TOML), a variant is what one would type after `hopplus train`, and `flags` are given to all of them:

    about = "Does it help to go over the data four times?"
    flags = "--game stag-hunt-4x4 --sharing shared --steps 500000"
    trials = 4

    before = []                          # commands that must be done first, as in "hopplus pretrain ..."

    [variants]
    "four epochs" = "ppo"
    "one epoch" = "ppo --ppo.epochs 1"

    [[questions]]
    ask = "Is it better to go over the data four times than once?"
    compare = ["four epochs", "one epoch"]

In Python the same is `Study(about, {"four epochs": RunConfig(...), ...}, 4, questions)`. A trial is an ordinary run
folder of one seed (or of `--seeds`, side by side), so it resumes, and every other command reads it.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from hopplus import __version__
from hopplus.runs.agents import AGENTS, learner_of
from hopplus.runs.command import train_command
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import CHECKPOINTS, read_settings, write_json

STUDY, TRIALS = "study.json", "trials"
RETURNS = "charts/episodic_return/mean"
KNOWN = {"about", "flags", "trials", "variants", "questions", "before"}


@dataclass(frozen=True)
class Question:
    """Which of two variants has the greater final score."""

    ask: str
    """In words."""
    compare: tuple[str, str]
    """The variant that is expected to be greater, and the other one."""
    metric: str = RETURNS
    """The tag that is compared, over the last fifth of training."""


@dataclass(frozen=True)
class Trial:
    """One run of one variant."""

    variant: str
    index: int
    config: RunConfig

    @property
    def place(self) -> Path:
        """Below the study's folder."""
        return Path(TRIALS) / slug(self.variant) / str(self.index)

    def is_done(self, out: Path) -> bool:
        """Whether its last checkpoint is there."""
        return (out / self.place / CHECKPOINTS / str(self.config.num_updates)).is_dir()


@dataclass(frozen=True)
class Study:
    """What is trained, and what for."""

    about: str
    variants: dict[str, RunConfig]
    """By name."""
    trials: int
    """Runs of each variant; the k-th one begins with the variant's `--seed` plus k."""
    questions: tuple[Question, ...] = ()
    before: tuple[str, ...] = ()
    """Commands that must be done first, as in `hopplus pretrain ... --out models/scripts`."""

    def __post_init__(self):
        if self.trials < 1:
            raise ValueError(f"trials is {self.trials}; give 1 or more")
        if not self.variants:
            raise ValueError("the study has no variants; name one at least")
        slugs = [slug(name) for name in self.variants]
        if len(set(slugs)) < len(slugs) or "" in slugs:
            raise ValueError(f"variants would share a folder ({', '.join(sorted(slugs))}); give them other names")
        for question in self.questions:
            for name in question.compare:
                if name not in self.variants:
                    raise ValueError(f"{question.ask!r} compares {name!r}; the variants are {', '.join(self.variants)}")

    def all_trials(self) -> Iterator[Trial]:
        """First trials first: when a study is stopped, every variant has had about as many."""
        for index in range(self.trials):
            for name, config in self.variants.items():
                yield Trial(name, index, replace(config, seed=config.seed + index))


def slug(name: str) -> str:
    """A variant's folder."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def read_study(path: Path) -> Study:
    """A study from its file."""
    try:
        found = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; write one, or copy examples/epochs.toml") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML file ({error})") from None
    if unknown := sorted(found.keys() - KNOWN):
        raise ValueError(f"{path} says {unknown[0]!r}; it can say {', '.join(sorted(KNOWN))}")
    variants = found.get("variants", {})
    flags = found.get("flags", "")
    questions = [{"metric": RETURNS} | asked for asked in found.get("questions", [])]
    try:
        return Study(
            about=str(found.get("about", "")),
            variants={name: read_variant(f"{typed} {flags}", name) for name, typed in variants.items()},
            trials=int(found.get("trials", 5)),
            questions=tuple(read_settings(Question, asked) for asked in questions),
            before=tuple(map(str, found.get("before", []))),
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_variant(typed: str, name: str) -> RunConfig:
    """What would be typed after `hopplus train`, without --out; one seed unless it says more."""
    agent, *flags = shlex.split(typed) or [""]
    if agent not in AGENTS:
        raise ValueError(f"variant {name!r} begins with {agent!r}; begin with an agent: {', '.join(AGENTS)}")
    usual = RunConfig(agent=agent, seeds=1, learner=learner_of(agent))  # pyright: ignore[reportArgumentType]
    try:
        config = tyro.cli(RunConfig, args=_last_of_each(flags), default=usual, prog=f"variant {name!r}:")
    except SystemExit:
        raise ValueError(f"variant {name!r} has settings that cannot be; see above") from None
    absolute = lambda folder: str(Path(folder).absolute()) if folder else None  # noqa: E731
    return replace(config, pretrained=absolute(config.pretrained), begin_with=absolute(config.begin_with))


def _last_of_each(flags: list[str]) -> list[str]:
    """A flag of a variant counts instead of the same one in the study's flags, which come after it."""
    groups: dict[str, list[str]] = {}
    current = ""
    for word in flags:
        if word.startswith("--"):
            current = word if word not in groups else ""
            if current:
                groups[current] = [word]
        elif current:
            groups[current].append(word)
    return [word for group in groups.values() for word in group]


def write_study(study: Study, out: Path) -> None:
    """What `status` and `report` need to know, and the command of every variant for whoever wants to run one alone."""
    out.mkdir(parents=True, exist_ok=True)
    commands = {name: train_command(config, Path("RUN")) for name, config in study.variants.items()}
    write_json(out / STUDY, {"version": __version__, "commands": commands, **asdict(study)})


def open_study(out: Path) -> Study:
    """The study in a folder."""
    path = out / STUDY
    if not path.is_file():
        raise ValueError(f"{out} has no {STUDY}; give the folder that `hopplus study run --out` wrote")
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        settings = {name: found[name] for name in ("about", "trials", "questions")}
        variants = {name: read_settings(RunConfig, config) for name, config in found["variants"].items()}
        questions = tuple(read_settings(Question, asked) for asked in settings["questions"])
    except (ValueError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} cannot be read ({error}); run the study again with its file") from None
    return Study(settings["about"], variants, settings["trials"], questions, tuple(found.get("before", ())))
