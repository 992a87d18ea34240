"""The oracle of a line-up, and the other yardsticks that an agent is compared with.

The oracle is the best of a responder that PPO trained for exactly this line-up (four seeds, sampled and greedy), of
the game's usual scripts, and of search in the true game with the true co-players, whose prior and critic are the best
responder's. Trained co-players are not searched with: to imagine their play would take hours. A game without
`from_view` is not searched in. The true optimum can be higher if none of them finds it. The best one is chosen on
separate episodes: its return in the episodes that chose it would be biased upwards.

A responder is an ordinary run folder, so it is trained once, resumes after a kill, and can be inspected. Its folder
keeps the measurement as `oracle.json`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from hopplus import __version__
from hopplus.agents.config import PlanningConfig
from hopplus.agents.planner import Planner
from hopplus.agents.player import Player
from hopplus.core.extensions import thing_of
from hopplus.core.mesh import usual_mesh
from hopplus.evaluation.adaptation import all_lineups, by_belief, first_seat_returns, scripts, short_name
from hopplus.games.coplayers import Policy, usual_kinds
from hopplus.games.game import Game, GameSpec, capabilities
from hopplus.games.presets import make
from hopplus.learning.config import LearnerConfig
from hopplus.models.config import ActorCriticConfig
from hopplus.planning.config import SearchConfig
from hopplus.runs.config import RunConfig
from hopplus.runs.folder import CONFIG, read_config, write_json
from hopplus.runs.pretraining import load_pretrained
from hopplus.runs.run import Run
from hopplus.runs.training import Watcher, train
from hopplus.runs.world_pretraining import load_world

ORACLE = "oracle.json"
LEARNER = LearnerConfig(network=ActorCriticConfig(destinations=16))
"""How a responder learns; its devices are those of the calling run. With destinations it needs fewer steps; where
players do not walk on a board there are none."""
NUM_SEEDS = 4
SELECTION_EPISODES = 2_000
"""Episodes that choose the oracle; none of them counts for its return."""
SMALL_BOARD, STEPS_SMALL, STEPS_LARGE = 16, 300_000, 400_000
"""The number of cells of a small board, and the environment steps of each seed on small and on larger boards."""
SEARCH = PlanningConfig(kind="search", search=SearchConfig(trees=4, simulations=16, depth=8))
SEARCH_EPISODES, SEARCH_SELECTION = 1_000, 400
"""The search of the oracle; it plays fewer episodes, since each takes a hundred times as long."""
SEARCHED, TRAINED = "search with the true co-players", "trained"
MANNERS = ("sampled", "greedy")
BY_BELIEF = "by_belief"
NO_CANDIDATES = ("random", BY_BELIEF)
"""Yardsticks that are not candidates for the oracle."""


@dataclass(frozen=True)
class OracleSettings:
    """All settings that the yardsticks of a game depend on."""

    game: str
    """A name from `hopplus games`, or MODULE:FACTORY."""
    folder: Path
    """The folder of the responders, with a run folder for each line-up."""
    steps: int
    """Environment steps of each seed of a responder."""
    episodes: int
    """The number of episodes that a return is averaged over."""
    seed: int
    """The seed of the measurement, not of training."""
    devices: int = 1
    """The number of devices that train a responder."""
    kinds: tuple[str, ...] | None = None
    """The kinds of co-players. None: the usual ones of the game."""

    def __post_init__(self):
        if self.steps < LEARNER.steps_per_update:
            raise ValueError(f"--oracle-steps is {self.steps}; give {LEARNER.steps_per_update}, one update, or more")


@dataclass(frozen=True)
class Yardsticks:
    """Mean returns of the first seat with one line-up."""

    lineup: tuple[str, ...]
    oracle: float
    oracle_player: str
    """The player that is the oracle: a script, a seed of the responder and how it acts, or search."""
    scripted: dict[str, float]
    """The game's usual scripts, uniform legal play among them, and in a stag hunt the player by belief."""
    selection: dict[str, float]
    """The mean returns of the candidates in the episodes that chose the oracle."""

    @property
    def random(self) -> float:
        """Uniform legal play."""
        return self.scripted["random"]

    @property
    def name(self) -> str:
        return short_name(self.lineup)


def what_it_saw(config: RunConfig) -> str:
    """The players whose play a run's agent and its models learned from, in words.

    Only an agent of `own self-play` has never met the scripts. Pretrained agents are reported apart.
    """
    if config.pretrained is not None:
        pretraining, _ = load_pretrained(Path(config.pretrained))
        return f"pretrained on {', '.join(map(str, pretraining.data.types))}"
    if config.pretrained_world is not None:
        pretraining, _ = load_world(Path(config.pretrained_world))
        return f"a world pretrained on {', '.join(map(str, pretraining.data.types))}"
    if config.co_players is not None:
        return f"trained with {config.co_players}"
    if config.learner.population.is_used:
        return "a population of own self-play"
    if config.init_from is not None:
        return what_it_saw(read_config(Path(config.init_from)))
    return "own self-play"


def default_steps(spec: GameSpec) -> int:
    """The default number of training steps of a responder."""
    is_small = 0 < spec.height * spec.width <= SMALL_BOARD
    return STEPS_SMALL if is_small else STEPS_LARGE


def folder_of(settings: OracleSettings, lineup: Sequence[str]) -> Path:
    """The run folder of a line-up's responder, as in stag-hunt-4x4--nearest_stag-nearest_hare-random."""
    name = f"{settings.game}--{'-'.join(lineup)}".replace(":", ".").replace(" ", "_")
    return settings.folder / name.replace("(", "").replace(")", "")


def responder_config(settings: OracleSettings, lineup: Sequence[str]) -> RunConfig:
    """The run that trains the responder of a line-up."""
    config = RunConfig(
        game=settings.game,
        co_players=lineup,
        seeds=NUM_SEEDS,
        steps=settings.steps,
        learner=replace(LEARNER, mesh=usual_mesh(NUM_SEEDS, settings.devices)),
    )
    folder = folder_of(settings, lineup)
    if not (folder / CONFIG).exists():
        return config
    trained = read_config(folder)
    if trained.steps != settings.steps:
        raise ValueError(
            f"{folder} holds a responder of {trained.steps} steps; "
            f"give --oracle-steps {trained.steps}, or another folder with --oracles"
        )
    return config


def train_responders(
    settings: OracleSettings, *, watcher: Watcher | None = None, on_lineup: Callable[[str], None] | None = None
) -> list[Run]:
    """The responders of all line-ups; a responder that is already trained is loaded."""
    lineups = all_lineups(make(settings.game).spec, settings.kinds)
    configs = [responder_config(settings, lineup) for lineup in lineups]  # raises before hours of training
    responders = []
    for lineup, config in zip(lineups, configs, strict=True):
        if on_lineup:
            on_lineup(short_name(lineup))
        responders.append(train(config, folder_of(settings, lineup), watcher=watcher))
    return responders


def read_yardsticks(settings: OracleSettings) -> list[Yardsticks] | None:
    """The stored measurements of every line-up with these settings; None if one is missing."""
    spec = make(settings.game).spec
    stored = [
        _read(folder_of(settings, lineup) / ORACLE, _conditions(settings, spec))
        for lineup in all_lineups(spec, settings.kinds)
    ]
    known = [one for one in stored if one is not None]
    return known if len(known) == len(stored) else None


def measure_yardsticks(
    settings: OracleSettings, responders: Sequence[Run], *, on_row: Callable[[], None] | None = None
) -> list[Yardsticks]:
    """Play every yardstick and every candidate for the oracle with all line-ups, and store the measurements."""
    game = make(settings.game)
    lineups = all_lineups(game.spec, settings.kinds)
    names, choices, seeds = _candidates(game.spec)
    rows = [(index, choice, seed) for index in range(len(lineups)) for choice, seed in zip(choices, seeds, strict=True)]
    returns = first_seat_returns(
        game,
        _players(game, responders, [(index, seed) for index, _, seed in rows]),
        [choice for _, choice, _ in rows],
        [lineups[index] for index, _, _ in rows],
        settings.episodes + SELECTION_EPISODES,
        key=jax.random.key(settings.seed),
        on_row=on_row,
    ).reshape(len(lineups), len(names), -1)
    counted = returns[..., : settings.episodes].mean(axis=-1, dtype=np.float64)
    deciding = returns[..., settings.episodes :].mean(axis=-1, dtype=np.float64)
    if _is_searched(settings, game):
        names = [*names, SEARCHED]
        found = _search(settings, game, responders, deciding, on_row)
        counted, deciding = (np.column_stack(columns) for columns in zip((counted, deciding), found, strict=True))
    measured = []
    for lineup, values, selection in zip(lineups, counted.tolist(), deciding.tolist(), strict=True):
        yardsticks = choose(lineup, dict(zip(names, values, strict=True)), dict(zip(names, selection, strict=True)))
        write_json(folder_of(settings, lineup) / ORACLE, {**_conditions(settings, game.spec), **asdict(yardsticks)})
        measured.append(yardsticks)
    return measured


def _is_searched(settings: OracleSettings, game: Game) -> bool:
    return "plan" in capabilities(game) and not any(isinstance(thing_of(kind), Player) for kind in settings.kinds or ())


def _search(
    settings: OracleSettings,
    game: Game,
    responders: Sequence[Run],
    deciding: Float64[np.ndarray, "lineups players"],
    on_row: Callable[[], None] | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The mean returns of search with every line-up: those that count, and those that choose the oracle.

    Only where it is chosen are the returns that count played; elsewhere they are NaN.
    """
    names, _, seeds = _candidates(game.spec)
    trained = deciding[:, : len(MANNERS) * NUM_SEEDS]
    best = [run.players(greedy=True)[0] for run in responders]
    of_seeds = [seeds[index] for index in trained.argmax(axis=1)]
    rows = [jax.tree.map(lambda leaf, at=seed: leaf[at], player) for player, seed in zip(best, of_seeds, strict=True)]
    lineups = all_lineups(game.spec, settings.kinds)

    def play(chosen: Sequence[int], episodes: int, number: int) -> np.ndarray:
        player = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(rows[index] for index in chosen))
        planner = Planner(player, game, SEARCH, LEARNER.ppo.discount)
        returns = first_seat_returns(
            game,
            [planner],
            [0] * len(chosen),
            [lineups[index] for index in chosen],
            episodes,
            known="others",
            key=jax.random.fold_in(jax.random.key(settings.seed), number),
            on_row=on_row,
        )
        return returns.reshape(len(chosen), -1).mean(axis=1, dtype=np.float64)

    selection = play(range(len(lineups)), SEARCH_SELECTION, 1)
    candidates = [index for index, name in enumerate(names) if name not in NO_CANDIDATES]
    wins = np.flatnonzero(selection > deciding[:, candidates].max(axis=1))
    counted = np.full(len(lineups), np.nan)
    if len(wins):
        counted[wins] = play(wins.tolist(), SEARCH_EPISODES, 2)
    if on_row:
        for _ in range(len(lineups) - len(wins)):
            on_row()
    return counted, selection


def num_rows(settings: OracleSettings) -> int:
    """The number of pairs of a player and a line-up that `measure_yardsticks` plays."""
    game = make(settings.game)
    searched = 2 if _is_searched(settings, game) else 0
    return len(all_lineups(game.spec, settings.kinds)) * (len(_candidates(game.spec)[0]) + searched)


def choose(lineup: tuple[str, ...], counted: dict[str, float], deciding: dict[str, float]) -> Yardsticks:
    """The yardsticks, with the oracle that is best in the deciding episodes; its return is from the counted ones."""
    selection = {name: value for name, value in deciding.items() if name not in NO_CANDIDATES}
    best = max(selection, key=selection.__getitem__)
    scripted = {name: value for name, value in counted.items() if name != SEARCHED and not name.startswith(TRAINED)}
    return Yardsticks(lineup, counted[best], best, scripted, selection)


def _scripted(spec: GameSpec) -> list[str]:
    """The names of the yardsticks besides the oracle."""
    return [*usual_kinds(spec), *([BY_BELIEF] if spec.has_plane("stags") else [])]


def _candidates(spec: GameSpec) -> tuple[list[str], list[int], list[int]]:
    """The players of the first seat: their names, their numbers among `_players`, and the responder's seeds."""
    trained = [(manner, seed) for manner in range(len(MANNERS)) for seed in range(NUM_SEEDS)]
    names, scripted = [f"{TRAINED}, seed {seed}, {MANNERS[manner]}" for manner, seed in trained], _scripted(spec)
    numbers = [manner for manner, _ in trained] + [len(MANNERS) + index for index in range(len(scripted))]
    seeds = [seed for _, seed in trained] + [0] * len(scripted)
    return names + scripted, numbers, seeds


def _players(game: Game, responders: Sequence[Run], rows: Sequence[tuple[int, int]]) -> list[Policy]:
    """The responders in each manner, their arrays in the order of the rows (line-up, seed), then the yardsticks."""
    places = np.array([lineup * NUM_SEEDS + seed for lineup, seed in rows])
    players: list[Policy] = []
    for manner in MANNERS:
        by_lineup = [responder.players(greedy=manner == "greedy")[0] for responder in responders]
        players.append(jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[places], *by_lineup))
    return [*players, *scripts(game), *([by_belief(game)] if BY_BELIEF in _scripted(game.spec) else [])]


def _conditions(settings: OracleSettings, spec: GameSpec) -> dict[str, Any]:
    """The settings that must be equal for a stored measurement to be used."""
    return {
        "version": __version__,
        "game": settings.game,
        "game_name": spec.name,
        "game_version": spec.version,
        "steps": settings.steps,
        "seeds": NUM_SEEDS,
        "episodes": settings.episodes,
        "selection_episodes": SELECTION_EPISODES,
        "search": {**asdict(SEARCH.search), "episodes": SEARCH_EPISODES, "selection_episodes": SEARCH_SELECTION},
        "seed": settings.seed,
    }


def _read(path: Path, conditions: dict[str, Any]) -> Yardsticks | None:
    try:
        stored = json.loads(path.read_text())
        if {name: stored[name] for name in conditions} != conditions:
            return None
        rest = {name: value for name, value in stored.items() if name not in conditions}
        return Yardsticks(**{**rest, "lineup": tuple(rest["lineup"])})
    except (OSError, ValueError, KeyError, TypeError):  # absent or incomplete: it is measured again
        return None
