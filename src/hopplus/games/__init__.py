"""Games as pure functions: the rules, scripted players, drawing, checks, and bridges to other libraries."""

from hopplus.games.board import Board
from hopplus.games.coplayers import Lineup, Policy
from hopplus.games.game import Game, GameSpec, Observation, Plane
from hopplus.games.lineups import lineup
from hopplus.games.matrix import MatrixGame
from hopplus.games.presets import PRESETS, make
from hopplus.games.rollout import Episode, Step, Table, advance, open_table, play_episode, rollout
from hopplus.games.snowdrift import Snowdrift
from hopplus.games.stag_hunt import StagHunt

__all__ = [
    "PRESETS",
    "Board",
    "Episode",
    "Game",
    "GameSpec",
    "Lineup",
    "MatrixGame",
    "Observation",
    "Plane",
    "Policy",
    "Snowdrift",
    "StagHunt",
    "Step",
    "Table",
    "advance",
    "lineup",
    "make",
    "open_table",
    "play_episode",
    "rollout",
]
