"""Environments of JaxMARL (https://jaxmarl.foersterlab.com) as games: `make("jaxmarl:MPE_simple_spread_v3")`.

    jaxmarl:MPE_simple_tag_v3?num_adversaries=2&horizon=50     the arguments of the environment, and a horizon
    jaxmarl:overcooked?layout=coord_ring&shaped_reward=1.0     a layout by its name, the weight of the shaped reward
    jaxmarl:SMAX?scenario=3m                                   a scenario by its name

The game is the environment: the same keys and actions give the same views, rewards and ends, without JaxMARL's
automatic reset. Whether its draws are independent is the environment's own matter: its keys are not checked for reuse.
"""

import warnings
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PyTree, UInt32

from hopplus.games.bridges.imported import (
    ImportedGame,
    Settings,
    Source,
    check_known,
    fields_of,
    horizon_of,
    imported,
    parameters_of,
    read_name,
    stacked,
    version_number,
)
from hopplus.games.fields import Observation
from hopplus.games.game import GameSpec
from hopplus.games.roles import roles_of

try:
    # Importing JaxMARL prints; and one of the libraries that it imports undoes a redirected stdout.
    with patch("builtins.print"):
        import jaxmarl
        from jaxmarl.environments.mpe.simple import SimpleMPE
        from jaxmarl.environments.multi_agent_env import MultiAgentEnv
        from jaxmarl.environments.overcooked import overcooked_layouts
        from jaxmarl.environments.smax.smax_env import MAP_NAME_TO_SCENARIO
        from jaxmarl.environments.spaces import Discrete
        from jaxmarl.registration import registered_envs
except ImportError as error:
    raise ImportError('games of JaxMARL need an extra; run: pip install "hopplus[jaxmarl]"') from error

ALL = "__all__"


def make_jaxmarl(name: str, **settings: Any) -> ImportedGame:
    """The environment of that name as a game. Settings may be in the name, or given here."""
    return imported(JaxMARLSource, name, settings)


class JaxMARLSource(Source):
    """An environment of JaxMARL, whose dicts are made arrays with an axis of seats."""

    def __init__(self, text: str):
        name, settings = read_name(text)
        check_known("environment of JaxMARL", name, registered_envs)
        wanted, self.shaped_reward = settings.pop("horizon", None), settings.pop("shaped_reward", 0.0)
        self.env = _construct(name, settings)
        if isinstance(wanted, int) and "max_steps" in _accepted(self.env) and "max_steps" not in settings:
            self.env = _construct(name, {**settings, "max_steps": wanted})
        horizon = horizon_of(name, wanted, _own_horizon(self.env))
        self.agents = list(self.env.agents)
        self.sizes = [_num_actions(name, self.env.action_space(agent)) for agent in self.agents]
        self.masks = _masks(self.env)
        self.is_masked = self.masks is not None or len(set(self.sizes)) > 1
        outcome, views = jax.eval_shape(self._first_step, jax.random.PRNGKey(0))
        if self.shaped_reward and "shaped_reward" not in outcome[4]:
            raise ValueError(f"{name} tells of no shaped reward; leave shaped_reward out")
        kinds = [
            (size, tuple(array.shape for array in view.values())) for size, view in zip(self.sizes, views, strict=True)
        ]
        self.spec = GameSpec(
            name=f"jaxmarl:{text}",
            version=version_number("jaxmarl"),
            num_agents=len(self.agents),
            action_names=tuple(f"action_{index}" for index in range(max(self.sizes))),
            observation=fields_of(views),
            horizon=horizon,
            roles=roles_of(self.agents, kinds),
        )

    def _first_step(self, key: Array) -> tuple[Any, list[dict[str, Array]]]:
        seen, env_state = self.env.reset(key)
        idle: dict[str, Any] = {agent: jnp.int32(0) for agent in self.agents}
        return self.env.step_env(key, env_state, idle), self._views(seen)

    def reset(self, key: UInt32[Array, " words"]) -> tuple[PyTree[Array], Observation]:
        seen, env_state = self.env.reset(key)
        return env_state, stacked(self.spec.observation, self._views(seen))

    def step(
        self, env_state: PyTree[Array], actions: Int32[Array, " agents"], key: UInt32[Array, " words"]
    ) -> tuple[PyTree[Array], Observation, Float32[Array, " agents"], Bool[Array, " agents"]]:
        by_agent = {agent: actions[seat] for seat, agent in enumerate(self.agents)}
        seen, env_state, paid, dones, info = self.env.step_env(key, env_state, by_agent)
        rewards = self._numbers(paid)
        if self.shaped_reward:
            rewards += self.shaped_reward * self._numbers(info["shaped_reward"])
        done = jnp.stack([jnp.asarray(dones.get(agent, False), bool) for agent in self.agents]) | dones[ALL]
        return env_state, stacked(self.spec.observation, self._views(seen)), rewards, done

    def legal(self, env_state: PyTree[Array]) -> Bool[Array, "agents actions"]:
        most = self.spec.num_actions
        if self.masks is None:
            return jnp.asarray(np.arange(most) < np.array(self.sizes)[:, None])
        masks = self.masks(env_state)
        return jnp.stack([jnp.pad(masks[agent] > 0, (0, most - len(masks[agent]))) for agent in self.agents])

    def _numbers(self, by_seat: Any) -> Float32[Array, " agents"]:
        return jnp.stack([jnp.asarray(number, jnp.float32) for number in _by_seat(by_seat, self.agents)])

    def _views(self, seen: Any) -> list[dict[str, Array]]:
        """The view of each seat, by field."""
        views = _by_seat(seen, self.agents)
        return [view if isinstance(view, dict) else {"observation": view} for view in views]


def _by_seat(tree: Any, agents: Sequence[Any]) -> list[Any]:
    """What belongs to each seat. Most environments give a dict by agent, the three storms a tuple, arrays, or kinds."""
    if isinstance(tree, dict) and agents[0] in tree:
        return [tree[agent] for agent in agents]
    if isinstance(tree, dict):
        kinds = {"observation": tree["observations"], "inventory": tree["inventory"].T}
        return [{kind: array[seat] for kind, array in kinds.items()} for seat in range(len(agents))]
    return [tree[seat] for seat in range(len(agents))]


def _construct(name: str, settings: Settings) -> MultiAgentEnv:
    settings = dict(settings)
    if name == "overcooked" and "layout" in settings:
        check_known("layout of overcooked", settings["layout"], overcooked_layouts)
        settings["layout"] = overcooked_layouts[settings["layout"]]
    if "SMAX" in name and "scenario" in settings:
        check_known("scenario of SMAX", settings["scenario"], MAP_NAME_TO_SCENARIO)
        settings["scenario"] = MAP_NAME_TO_SCENARIO[settings["scenario"]]
    if "payoff_matrix" in settings:
        settings["payoff_matrix"] = jnp.array(settings["payoff_matrix"])
    try:
        with warnings.catch_warnings(action="ignore"):
            env = jaxmarl.make(name, **settings)
    except (TypeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"JaxMARL cannot make {name} with {settings or 'no settings'}: {error}") from None
    for setting in settings:  # environments of MPE ignore what they do not know
        check_known(f"setting of {name}", setting, {*_accepted(env), "horizon"})
    return env


def _accepted(env: MultiAgentEnv) -> set[str]:
    """The names of the settings that the environment takes, or the environment inside it."""
    classes = {*type(env).__mro__, *type(getattr(env, "_env", env)).__mro__} - {object}
    return parameters_of(*(each.__init__ for each in classes))


def _num_actions(name: str, space: Any) -> int:
    if isinstance(space, Discrete):
        return int(space.n)
    raise ValueError(
        f"the actions of {name} are a {type(space).__name__}, and agents here choose among numbered actions; "
        f"if it has a setting for that, give it, as in {name}?action_type=Discrete"
    )


def _masks(env: MultiAgentEnv) -> Any:
    """The environment's own function for legal actions; None if it has none."""
    masks = getattr(env, "get_legal_moves", env.get_avail_actions)
    try:
        jax.eval_shape(lambda key: masks(env.reset(key)[1]), jax.random.PRNGKey(0))
    except NotImplementedError:
        return None
    return masks


def _own_horizon(env: Any) -> int | None:
    if isinstance(env, SimpleMPE):  # it compares the number of steps before a step
        return int(env.max_steps) + 1
    if hasattr(env, "num_inner_steps"):
        return int(env.num_inner_steps * env.num_outer_steps)
    return int(env.max_steps) if hasattr(env, "max_steps") else None
