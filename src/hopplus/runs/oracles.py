"""The oracle of a line-up, and the other yardsticks that an agent is held against.

The oracle is the best of a responder that PPO trained for exactly this line-up (three seeds, sampled and greedy) and of
the scripts NS and NH. Search with the true game and the true co-players is to join them later, so the true optimum can
be higher where no responder finds it. Who is best is decided on episodes of their own: on the ones that decided, the
winner's return would be too high.

A responder is an ordinary run folder, so it is trained once, goes on after a kill, and can be looked at. What was
measured is kept in it as `oracle.json`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus import __version__
from hopplus.evaluation.adaptation import KINDS, by_belief, lineups, returns_in_company, scripts, short_name
from hopplus.games.coplayers import Policy
from hopplus.games.game import Game, GameSpec
from hopplus.games.presets import make
from hopplus.learning.devices import MeshConfig
from hopplus.learning.learner import LearnerConfig
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import CONFIG, read_config, write_json
from hopplus.runs.pretraining import load_pretrained
from hopplus.runs.run import Run
from hopplus.runs.training import Watcher, train

ORACLE = "oracle.json"
LEARNER = LearnerConfig()
"""How a responder learns; the devices are those of the run that asks."""
NUM_SEEDS = 3
SELECTION_EPISODES = 2_000
"""Decide who the oracle is; not one of them counts for its return."""
SMALL_BOARD, STEPS_SMALL, STEPS_LARGE = 16, 1_000_000, 2_000_000
"""Environment steps of each seed, on boards of so many cells and on larger ones."""
MANNERS = ("sampled", "greedy")
YARDSTICKS = ("nearest_stag", "nearest_hare", "random", "by_belief")


@dataclass(frozen=True)
class OracleSettings:
    """All that the yardsticks of a game depend on."""

    game: str
    """A name from `hopplus games`, or MODULE:FACTORY."""
    folder: Path
    """Where the responders are kept, a run folder for each line-up."""
    steps: int
    """Environment steps of each seed of a responder."""
    episodes: int
    """How many episodes a return is the mean of."""
    seed: int
    """The seed of all random draws while they are measured, not of training."""
    devices: int = 1
    """Devices that a responder is trained on."""
    kinds: tuple[str, ...] = KINDS
    """What co-players can be."""

    def __post_init__(self):
        if self.steps < LEARNER.steps_per_update:
            raise ValueError(f"--oracle-steps is {self.steps}; give {LEARNER.steps_per_update}, one update, or more")


@dataclass(frozen=True)
class Yardsticks:
    """Mean returns of the first seat with one line-up."""

    lineup: tuple[str, ...]
    oracle: float
    oracle_player: str
    """Which one is the oracle: a script, or a seed of the responder and how it acts."""
    nearest_stag: float
    nearest_hare: float
    by_belief: float
    random: float
    """Uniform legal play."""
    selection: dict[str, float]
    """What those who could have been the oracle got in the episodes that decided."""

    @property
    def name(self) -> str:
        return short_name(self.lineup)


def what_it_saw(config: RunConfig) -> str:
    """Whose play a run's agent and its models have learned from; "never met" is true of `own self-play` alone.

    Agents with models that were pretrained on others' play belong into a column of their own.
    """
    if config.pretrained is not None:
        found, _ = load_pretrained(Path(config.pretrained))
        return f"pretrained on {', '.join(found.data.types)}"
    if config.co_players is not None:
        return f"trained with {config.co_players}"
    if config.begin_with is not None:
        return what_it_saw(read_config(Path(config.begin_with)))
    return "own self-play"


def default_steps(spec: GameSpec) -> int:
    """How long a responder is trained, unless said otherwise."""
    return STEPS_SMALL if spec.height * spec.width <= SMALL_BOARD else STEPS_LARGE


def folder_of(settings: OracleSettings, lineup: Sequence[str]) -> Path:
    """Where the responder of a line-up is kept, as in stag-hunt-4x4--nearest_stag-nearest_hare-random."""
    game = settings.game.replace(":", ".")
    return settings.folder / f"{game}--{'-'.join(lineup)}".replace("(", "").replace(")", "")


def responder_config(settings: OracleSettings, lineup: Sequence[str]) -> RunConfig:
    """The run that trains the responder of a line-up."""
    config = RunConfig(
        game=settings.game,
        co_players=",".join(lineup),
        seeds=NUM_SEEDS,
        steps=settings.steps,
        learner=replace(LEARNER, mesh=MeshConfig(envs=settings.devices)),
    )
    folder = folder_of(settings, lineup)
    if not (folder / CONFIG).exists():
        return config
    found = read_config(folder)
    if found.steps != settings.steps:
        raise ValueError(
            f"{folder} holds a responder of {found.steps} steps; "
            f"give --oracle-steps {found.steps}, or another folder with --oracles"
        )
    return config


def train_responders(
    settings: OracleSettings, *, watcher: Watcher | None = None, on_lineup: Callable[[str], None] | None = None
) -> list[Run]:
    """The responders of all line-ups; those that are trained already are read."""
    companies = lineups(make(settings.game).spec, settings.kinds)
    configs = [
        responder_config(settings, lineup) for lineup in companies
    ]  # what does not fit is said before hours pass
    responders = []
    for lineup, config in zip(companies, configs, strict=True):
        if on_lineup:
            on_lineup(short_name(lineup))
        responders.append(train(config, folder_of(settings, lineup), watcher=watcher))
    return responders


def read_yardsticks(settings: OracleSettings) -> list[Yardsticks] | None:
    """What was measured before with these very settings, for every line-up; None if any of it is missing."""
    spec = make(settings.game).spec
    found = [
        _read(folder_of(settings, lineup) / ORACLE, _circumstances(settings, spec))
        for lineup in lineups(spec, settings.kinds)
    ]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def measure_yardsticks(
    settings: OracleSettings, responders: Sequence[Run], *, on_row: Callable[[], None] | None = None
) -> list[Yardsticks]:
    """Play all line-ups with everybody who is a yardstick or may be the oracle, and keep what came out."""
    game = make(settings.game)
    companies = lineups(game.spec, settings.kinds)
    names, choices, seeds = _candidates()
    rows = [
        (index, choice, seed) for index in range(len(companies)) for choice, seed in zip(choices, seeds, strict=True)
    ]
    returns = returns_in_company(
        game,
        _players(game, responders, [(index, seed) for index, _, seed in rows]),
        [choice for _, choice, _ in rows],
        [companies[index] for index, _, _ in rows],
        settings.episodes + SELECTION_EPISODES,
        key=jax.random.key(settings.seed),
        on_row=on_row,
    ).reshape(len(companies), len(names), -1)
    counted = returns[..., : settings.episodes].mean(axis=-1, dtype=np.float64)
    deciding = returns[..., settings.episodes :].mean(axis=-1, dtype=np.float64)
    found = []
    for lineup, values, selection in zip(companies, counted.tolist(), deciding.tolist(), strict=True):
        yardsticks = choose(lineup, dict(zip(names, values, strict=True)), dict(zip(names, selection, strict=True)))
        write_json(folder_of(settings, lineup) / ORACLE, {**_circumstances(settings, game.spec), **asdict(yardsticks)})
        found.append(yardsticks)
    return found


def num_rows(settings: OracleSettings) -> int:
    """How many players and line-ups `measure_yardsticks` brings together."""
    return len(lineups(make(settings.game).spec, settings.kinds)) * len(_candidates()[0])


def choose(lineup: tuple[str, ...], counted: dict[str, float], deciding: dict[str, float]) -> Yardsticks:
    """The oracle is who did best in the deciding episodes; its return is that of the others. By name of the player."""
    selection = {name: value for name, value in deciding.items() if name not in ("random", "by_belief")}
    best = max(selection, key=selection.__getitem__)
    scripted = {name: counted[name] for name in YARDSTICKS}
    return Yardsticks(lineup=lineup, oracle=counted[best], oracle_player=best, selection=selection, **scripted)


def _candidates() -> tuple[list[str], list[int], list[int]]:
    """Everybody who sits in the first seat: the name, the number among `_players`, and the responder's seed."""
    trained = [(manner, seed) for manner in range(len(MANNERS)) for seed in range(NUM_SEEDS)]
    names = [f"trained, seed {seed}, {MANNERS[manner]}" for manner, seed in trained]
    numbers = [manner for manner, _ in trained] + [len(MANNERS) + index for index in range(len(YARDSTICKS))]
    seeds = [seed for _, seed in trained] + [0] * len(YARDSTICKS)
    return names + list(YARDSTICKS), numbers, seeds


def _players(game: Game, responders: Sequence[Run], rows: Sequence[tuple[int, int]]) -> list[Policy]:
    """The responders in each manner, their arrays in the order of the rows (line-up, seed), then the yardsticks."""
    places = np.array([lineup * NUM_SEEDS + seed for lineup, seed in rows])
    players: list[Policy] = []
    for manner in MANNERS:
        by_lineup = [responder.players(greedy=manner == "greedy")[0] for responder in responders]
        players.append(jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[places], *by_lineup))
    return [*players, *scripts(game.spec), by_belief(game)]


def _circumstances(settings: OracleSettings, spec: GameSpec) -> dict[str, Any]:
    """What must be the same for a measurement to be used again."""
    return {
        "version": __version__,
        "game": settings.game,
        "game_name": spec.name,
        "game_version": spec.version,
        "steps": settings.steps,
        "seeds": NUM_SEEDS,
        "episodes": settings.episodes,
        "selection_episodes": SELECTION_EPISODES,
        "seed": settings.seed,
    }


def _read(path: Path, circumstances: dict[str, Any]) -> Yardsticks | None:
    try:
        found = json.loads(path.read_text())
        if {name: found[name] for name in circumstances} != circumstances:
            return None
        rest = {name: value for name, value in found.items() if name not in circumstances}
        return Yardsticks(**{**rest, "lineup": tuple(rest["lineup"])})
    except (OSError, ValueError, KeyError, TypeError):  # not there, or not whole: measured anew
        return None
