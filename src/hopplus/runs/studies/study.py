"""A study: variants of a training, several trials of each, and the questions that they answer.

In a TOML file, a variant is the text after `hopplus train`, and `flags` apply to all variants:

    about = "Does it help to go over the data four times?"
    flags = "--game stag-hunt-4x4 --sharing shared --steps 500000"
    trials = 4

    before = []                          # commands to run first, as in "hopplus pretrain ..."

    [variants]
    "four epochs" = "ppo"
    "one epoch" = "ppo --ppo.epochs 1"

    [[questions]]
    ask = "Is it better to go over the data four times than once?"
    compare = ["four epochs", "one epoch"]

In Python: `Study(about, {"four epochs": RunConfig(...), ...}, 4, questions)`. A trial is an ordinary run folder of one
seed (or of `--seeds` in parallel), so it resumes, and every other command reads it.
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
from hopplus.agents.named import NAMES
from hopplus.runs.command import train_command
from hopplus.runs.config import RunConfig
from hopplus.runs.defaults import game_in
from hopplus.runs.folder import CHECKPOINTS, read_settings, write_json
from hopplus.runs.formats import FORMAT, migrated_variants
from hopplus.runs.stopping import ended_at

STUDY, TRIALS = "study.json", "trials"
RETURNS = "charts/episodic_return/mean"
KNOWN = {"about", "flags", "trials", "variants", "questions", "before"}


@dataclass(frozen=True)
class Question:
    """A question: which of two variants has the greater final score?"""

    ask: str
    """The question in words."""
    compare: tuple[str, str]
    """The variant that is expected to be greater, and the other one."""
    metric: str = RETURNS
    """The tag that is compared, averaged over the last fifth of training."""


@dataclass(frozen=True)
class Trial:
    """One run of one variant."""

    variant: str
    index: int
    config: RunConfig

    @property
    def place(self) -> Path:
        """Its run folder, relative to the study's folder."""
        return Path(TRIALS) / slug(self.variant) / str(self.index)

    def is_done(self, out: Path) -> bool:
        """Whether its last checkpoint exists, or it ended early."""
        folder = out / self.place
        return (folder / CHECKPOINTS / str(self.config.num_updates)).is_dir() or ended_at(folder) is not None


@dataclass(frozen=True)
class Study:
    """Variants, the number of trials of each, and questions."""

    about: str
    variants: dict[str, RunConfig]
    """The settings of each variant, by name."""
    trials: int
    """Runs of each variant; the k-th run has the variant's `--seed` plus k."""
    questions: tuple[Question, ...] = ()
    before: tuple[str, ...] = ()
    """Commands to run first, as in `hopplus pretrain ... --out models/scripts`."""

    def __post_init__(self):
        if self.trials < 1:
            raise ValueError(f"trials is {self.trials}; give 1 or more")
        if not self.variants:
            raise ValueError("the study has no variants; name at least one")
        slugs = [slug(name) for name in self.variants]
        if len(set(slugs)) < len(slugs) or "" in slugs:
            raise ValueError(f"variants would share a folder ({', '.join(sorted(slugs))}); give them other names")
        for question in self.questions:
            for name in question.compare:
                if name not in self.variants:
                    raise ValueError(f"{question.ask!r} compares {name!r}; the variants are {', '.join(self.variants)}")

    def all_trials(self) -> Iterator[Trial]:
        """All trials, the first ones of every variant first, so that a stopped study has about as many of each."""
        for index in range(self.trials):
            for name, config in self.variants.items():
                yield Trial(name, index, replace(config, seed=config.seed + index))


def slug(name: str) -> str:
    """The name of a variant's folder."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def read_study(path: Path) -> Study:
    """Read a study from its TOML file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; write one, or copy examples/epochs.toml") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML file ({error}); see examples/epochs.toml for one") from None
    if unknown := sorted(content.keys() - KNOWN):
        raise ValueError(f"{path} has the key {unknown[0]!r}; the keys are {', '.join(sorted(KNOWN))}")
    variants = content.get("variants", {})
    flags = content.get("flags", "")
    questions = [{"metric": RETURNS} | asked for asked in content.get("questions", [])]
    try:
        return Study(
            about=str(content.get("about", "")),
            variants={name: read_variant(f"{typed} {flags}", name) for name, typed in variants.items()},
            trials=int(content.get("trials", 5)),
            questions=tuple(read_settings(Question, asked) for asked in questions),
            before=tuple(map(str, content.get("before", []))),
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_variant(typed: str, name: str) -> RunConfig:
    """The settings of a variant from the text after `hopplus train`, without --out; one seed by default."""
    agent, *flags = shlex.split(typed) or [""]
    if agent not in NAMES:
        raise ValueError(f"variant {name!r} starts with {agent!r}; start with an agent: {', '.join(NAMES)}")
    flags = _first_of_each(flags)
    usual = RunConfig(agent=agent, game=game_in(flags), seeds=1)
    try:
        config = tyro.cli(RunConfig, args=flags, default=usual, prog=f"variant {name!r}:")
    except SystemExit:
        raise ValueError(f"variant {name!r} has flags that cannot be used; correct what is named above") from None

    def absolute(folder):
        return str(Path(folder).absolute()) if folder else None

    population = replace(config.learner.population, run=absolute(config.learner.population.run))
    folders = {name: absolute(getattr(config, name)) for name in ("pretrained", "pretrained_world", "init_from")}
    return replace(config, learner=replace(config.learner, population=population), **folders)


def _first_of_each(flags: list[str]) -> list[str]:
    """The first use of each flag: a variant's own flags come before those of the study, and replace them."""
    values: list[str] = []
    given = {"": values}
    for word in flags:
        if word.startswith("--"):
            values = [word]
            given.setdefault(_setting(word), values)
        else:
            values.append(word)
    return [word for words in given.values() for word in words]


def _setting(flag: str) -> str:
    """The setting that a flag changes; --trust and --no-trust, --a-b and --a_b, --x 9 and --x=9 change one setting."""
    group, dot, name = flag.partition("=")[0].replace("_", "-").removeprefix("--").rpartition(".")
    return f"{group}{dot}{name.removeprefix('no-')}"


def write_study(study: Study, out: Path) -> None:
    """Write `study.json`: all that `status` and `report` need, and the command of every variant."""
    out.mkdir(parents=True, exist_ok=True)
    commands = {name: train_command(config, Path("RUN")) for name, config in study.variants.items()}
    write_json(out / STUDY, {"format": FORMAT, "version": __version__, "commands": commands, **asdict(study)})


def open_study(out: Path) -> Study:
    """Read the study in a folder of `hopplus study run`."""
    path = out / STUDY
    if not path.is_file():
        raise ValueError(f"{out} has no {STUDY}; give the folder that `hopplus study run --out` wrote")
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        settings = {name: content[name] for name in ("about", "trials", "questions")}
        variants = {name: read_settings(RunConfig, config) for name, config in migrated_variants(content, path).items()}
        questions = tuple(read_settings(Question, asked) for asked in settings["questions"])
    except (ValueError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} cannot be read ({error}); run the study again with its file") from None
    return Study(settings["about"], variants, settings["trials"], questions, tuple(content.get("before", ())))
