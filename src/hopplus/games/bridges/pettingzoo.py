"""A game as a `ParallelEnv` of PettingZoo (https://pettingzoo.farama.org/api/parallel/).

An observation is a dict of NumPy arrays that belong to the caller:

    observation   the planes of the seat's ego view, uint8 [height, width, planes]; without a board, the largest field
    action_mask   1 where an action is legal, int8 [actions], as `action_space(agent).sample(mask=...)` wants it
    NAME          every other field of the view, by its name; of a board:
    time          the share of the horizon that has passed, float32 [1]
    last_actions  the action of each player in the step before, the viewer first, int32 [players]; -1 if there was none

A seat that leaves the game gets its last reward and observation with its termination, and is no longer in `agents`.
Time is observed, so the horizon terminates an episode: nothing is ever truncated.
"""

import io
import operator
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key, PyTree, UInt8

from hopplus.core.checks import NUM_SEEDS
from hopplus.games.fields import TIME, Field, Observation
from hopplus.games.game import NO_ACTION, Game, GameSpec

try:
    import gymnasium
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise ImportError('the PettingZoo bridge needs an extra; run: pip install "hopplus[pettingzoo]"') from error

RENDER_MODES = ("ansi", "rgb_array")
Views = dict[str, Array]
"""The entries of the observation, each with a leading axis of seats."""
SeatView = dict[str, np.ndarray]


def parallel_env(game: Game, render_mode: str | None = None) -> "GameEnv":
    """The game as a ParallelEnv; `render_mode` is "ansi" for text, "rgb_array" for pictures, None for neither."""
    return GameEnv(game, render_mode)


def ego_view(seen: SeatView, spec: GameSpec) -> tuple[Observation, Bool[Array, " actions"]]:
    """One seat's observation in the form of a hopplus policy: the view, and which actions are legal."""
    view = {field.name: jnp.asarray(seen[_entry(spec, field)]).reshape(field.shape) for field in spec.observation}
    return view, jnp.asarray(seen["action_mask"] > 0)


@dataclass(frozen=True)
class _Moment:
    """The data that draw one step of an episode."""

    state: PyTree[Array]
    legal: np.ndarray
    time: int
    actions: np.ndarray
    rewards: np.ndarray
    returns: np.ndarray
    terminated: np.ndarray


class GameEnv(ParallelEnv[str, SeatView, int]):
    """One environment. Illegal actions act as stay; so do missing ones if the game has a stay."""

    def __init__(self, game: Game, render_mode: str | None = None):
        if render_mode not in (None, *RENDER_MODES):
            raise ValueError(f"there is no render mode {render_mode!r}; take one of {', '.join(RENDER_MODES)}, or None")
        self.game = game
        self.game_spec = game.spec
        self.render_mode = render_mode
        self.metadata = {
            "name": f"{self.game_spec.name}_v{self.game_spec.version}",
            "render_modes": list(RENDER_MODES),
        }
        self.possible_agents = [f"player_{seat + 1}" for seat in range(self.game_spec.num_agents)]
        self.agents = []
        self.observation_spaces = {agent: _observation_space(self.game_spec) for agent in self.possible_agents}
        self.action_spaces = {agent: spaces.Discrete(self.game_spec.num_actions) for agent in self.possible_agents}
        self.state_space = _state_space(self.game_spec)
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self._stream: Key[Array, ""] | None = None
        self._state: PyTree[Array] | None = None
        self._previous_moment: _Moment | None = None
        self._moment: _Moment | None = None

    def observation_space(self, agent: str) -> spaces.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | np.integer | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, SeatView], dict[str, dict[str, Any]]]:
        """Start an episode: the first of the seed's stream of episodes, or the next one without a seed.

        The actions of the players do not change how later episodes of a stream start. An environment without a seed
        takes one from the operating system. There are no options.
        """
        if seed is not None or self._stream is None:
            self._stream = jax.random.key(secrets.randbelow(NUM_SEEDS) if seed is None else _checked_seed(seed))
        self._stream, self._key, self._state, views = _reset(self.game, self._stream)
        self.agents = list(self.possible_agents)
        views = _to_numpy(views)
        self._previous_moment = None
        if self.render_mode is not None:
            nothing = np.zeros(len(self.agents))
            legal, no_actions = views["action_mask"] > 0, np.full(len(self.agents), NO_ACTION)
            self._moment = _Moment(self._state, legal, 0, no_actions, nothing, nothing, nothing > 0)
        return self._seat_views(views), {agent: {} for agent in self.agents}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, SeatView], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """One step of all seats at once. An action of a seat that has left is ignored."""
        joint_action = self._joint_action(actions)
        self._key, self._state, outcome = _step(self.game, self._state, self._key, joint_action)
        views, rewards, terminated = _to_numpy(outcome)
        if self._moment is not None:
            self._previous_moment = self._moment
            self._moment = self._next_moment(self._moment, joint_action, views["action_mask"] > 0, rewards, terminated)
        acted = self.agents
        terminations = {agent: bool(terminated[self._seats[agent]]) for agent in acted}
        result = (
            self._seat_views(views),
            {agent: float(rewards[self._seats[agent]]) for agent in acted},
            terminations,
            dict.fromkeys(acted, False),
            {agent: {} for agent in acted},
        )
        self.agents = [agent for agent in acted if not terminations[agent]]
        return result

    def state(self) -> np.ndarray:
        """The board with the players in seat order; without a board, the last joint action."""
        self._check_started("state")
        return np.array(_global_view(self.game, self._state))

    def render(self) -> str | np.ndarray | None:
        """The moment as text in at most 80 columns (ansi), or as an image, uint8 [height, width, 3] (rgb_array)."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                f"nothing is drawn; make the environment with render_mode={' or '.join(map(repr, RENDER_MODES))}"
            )
            return None
        self._check_started("render")
        return _as_text(self) if self.render_mode == "ansi" else _as_image(self)

    def _joint_action(self, actions: Mapping[str, Any]) -> np.ndarray:
        """int32 [agents]: the checked actions for the game."""
        self._check_started("step")
        if not self.agents:
            raise RuntimeError("the episode is over; call reset() to start the next one")
        for agent in actions:
            if agent not in self._seats:
                raise ValueError(
                    f"there is no agent called {agent!r}; give actions of {', '.join(self.possible_agents)}"
                )
        stay = self.game_spec.stay
        joint_action = np.full(len(self._seats), 0 if stay is None else stay, np.int32)
        for agent in self.agents:
            if agent in actions:
                joint_action[self._seats[agent]] = _checked_action(self.game_spec, agent, actions[agent])
            elif stay is None:
                raise ValueError(
                    f"no action for {agent}, and {self.game_spec.name} has no stay to take instead; "
                    "give one for each of env.agents"
                )
        return joint_action

    def _seat_views(self, views: dict[str, np.ndarray]) -> dict[str, SeatView]:
        return {agent: {name: stacked[self._seats[agent]] for name, stacked in views.items()} for agent in self.agents}

    def _check_started(self, what: str) -> None:
        if self._state is None:
            raise RuntimeError(f"{what}() was called before the first episode; call reset() first")

    def _next_moment(
        self, before: _Moment, actions: np.ndarray, legal: np.ndarray, rewards: np.ndarray, terminated: np.ndarray
    ) -> _Moment:
        """The data of the next drawing. An illegal action is shown as stay, and a seat that has left shows none."""
        stay = self.game_spec.stay
        obeyed = before.legal[np.arange(len(actions)), actions]
        played = actions if stay is None else np.where(obeyed, actions, stay)
        shown = np.where(before.terminated, NO_ACTION, played)
        return _Moment(self._state, legal, before.time + 1, shown, rewards, before.returns + rewards, terminated)


@jax.jit
def _reset(game: Game, stream: Key[Array, ""]) -> tuple[Key[Array, ""], Key[Array, ""], PyTree[Array], Views]:
    """The rest of the stream of episodes, the key of this episode's steps, its first state and the seats' views."""
    stream, reset_key, steps_key = jax.random.split(stream, 3)
    state = game.reset(key=reset_key)
    return stream, steps_key, state, _views(game, state)


@jax.jit
def _step(
    game: Game, state: PyTree[Array], key: Key[Array, ""], actions: Int32[Array, " agents"]
) -> tuple[Key[Array, ""], PyTree[Array], tuple[Views, Float32[Array, " agents"], Bool[Array, " agents"]]]:
    key, step_key = jax.random.split(key)
    state, rewards = game.step(state, actions, key=step_key)
    return key, state, (_views(game, state), rewards, game.terminated(state))


def _views(game: Game, state: PyTree[Array]) -> Views:
    seen, spec = game.observe(state), game.spec
    arrays = {_entry(spec, field): seen[field.name].reshape(-1, *_shape(field)) for field in spec.observation}
    mask = game.legal(state).astype(jnp.int8)
    return {"observation": seen[_main_field(spec).name], **arrays, "action_mask": mask}


@jax.jit
def _global_view(game: Game, state: PyTree[Array]) -> Array:
    return game.board(state) if game.spec.planes else game.observe(state)[_main_field(game.spec).name][0]


@jax.jit
def _board(game: Game, state: PyTree[Array]) -> UInt8[Array, "height width planes"]:
    return game.board(state)


def _to_numpy(tree: PyTree[Array]) -> Any:
    """Writable copies; the arrays of `jax.device_get` are read-only."""
    return jax.tree.map(np.array, tree)


def _main_field(spec: GameSpec) -> Field:
    """The field that is called `observation`: the planes, or else the field with the most numbers."""
    return max(spec.observation, key=lambda field: (field.kind == "planes", field.num_features))


def _entry(spec: GameSpec, field: Field) -> str:
    """The name of a field in an observation."""
    return "observation" if field.kind == "planes" and field == _main_field(spec) else field.name


def _shape(field: Field) -> tuple[int, ...]:
    """The shape of a field in an observation: a single number is an array of one."""
    return field.shape or (1,)


def _space_of(field: Field) -> spaces.Box:
    if field.kind == "categories":
        return spaces.Box(NO_ACTION, field.below - 1, _shape(field), np.int32)
    if field.planes:
        return spaces.Box(0, 1, field.shape, np.uint8)
    low, high = (0.0, 1.0) if field == TIME else (-np.inf, np.inf)
    return spaces.Box(low, high, _shape(field), np.float32)


def _observation_space(spec: GameSpec) -> spaces.Space:
    entries = {_entry(spec, field): _space_of(field) for field in spec.observation}
    mask = spaces.Box(0, 1, (spec.num_actions,), np.int8)
    return spaces.Dict({"observation": _state_space(spec), "action_mask": mask, **entries})


def _state_space(spec: GameSpec) -> spaces.Box:
    """The space of the whole board, which is also that of a seat's view; without a board, that of the main field."""
    return _space_of(_main_field(spec))


def _checked_action(spec: GameSpec, agent: str, action: Any) -> int:
    try:
        index = operator.index(action)
    except TypeError:
        index = NO_ACTION
    if not 0 <= index < spec.num_actions:
        names = ", ".join(f"{number} {name}" for number, name in enumerate(spec.action_names))
        raise ValueError(f"{agent} cannot do {action!r}; give the number of an action: {names}")
    return index


def _checked_seed(seed: int | np.integer) -> int:
    if not 0 <= seed < NUM_SEEDS:
        raise ValueError(f"seed is {seed}; give a whole number from 0 to {NUM_SEEDS - 1}")
    return operator.index(seed)


def _frames(env: GameEnv) -> tuple[Any, Any]:
    """The frame before, None at the start of an episode, and the current frame, as `hopplus.games.draw.Frame`."""
    from hopplus.games.draw import Frame

    def frame(moment: _Moment | None) -> Frame | None:
        if moment is None:
            return None
        board = np.asarray(_board(env.game, moment.state))
        return Frame(board, moment.time, moment.actions, moment.rewards, moment.returns, moment.terminated)

    return frame(env._previous_moment), frame(env._moment)


def _as_text(env: GameEnv) -> str:
    from rich.console import Console

    from hopplus.games import draw

    previous, frame = _frames(env)
    console = Console(file=io.StringIO(), width=draw.TEXT_COLUMNS, force_terminal=True, color_system="truecolor")
    with console.capture() as capture:
        console.print(draw.terminal(env.game_spec, frame, previous))
    return capture.get()


def _as_image(env: GameEnv) -> np.ndarray:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from hopplus.games import pictures

    previous, frame = _frames(env)
    canvas = FigureCanvasAgg(pictures.figure(env.game_spec, frame, previous))
    canvas.figure.set_dpi(pictures.GIF_DPI)
    canvas.draw()
    return np.array(canvas.buffer_rgba())[..., :3]
