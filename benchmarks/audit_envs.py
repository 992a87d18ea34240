"""The environments of `audit.py`, as PettingZoo ParallelEnvs or as games that hopplus imports."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from pettingzoo import ParallelEnv

GYM_AGENT = "agent_{}"


def parallel(module: str, **settings: Any) -> Callable[[], ParallelEnv]:
    """A factory of a PettingZoo environment."""

    def make_env() -> ParallelEnv:
        return import_module(module).parallel_env(**settings)

    return make_env


class OneTuple(ParallelEnv):
    """A gymnasium environment whose actions and observations are tuples with an entry for each agent."""

    def __init__(self, module: str, name: str):
        import gymnasium

        import_module(module)
        self.env = gymnasium.make(name)
        self.possible_agents = [GYM_AGENT.format(seat) for seat in range(len(self.env.action_space))]  # pyright: ignore
        self.agents = []

    def observation_space(self, agent: str):
        return self.env.observation_space[self.possible_agents.index(agent)]  # pyright: ignore

    def action_space(self, agent: str):
        return self.env.action_space[self.possible_agents.index(agent)]  # pyright: ignore

    def reset(self, seed: int | None = None, options: dict | None = None):
        shown, _ = self.env.reset(seed=seed)
        self.agents = list(self.possible_agents)
        return self._named(shown), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]):
        chosen = tuple(actions[agent] for agent in self.possible_agents)
        shown, paid, terminated, truncated, _ = self.env.step(chosen)
        agents = self.possible_agents
        ended, cut = dict.fromkeys(agents, bool(terminated)), dict.fromkeys(agents, bool(truncated))
        if terminated or truncated:
            self.agents = []
        return self._named(shown), self._named(paid), ended, cut, {agent: {} for agent in agents}

    def close(self) -> None:
        self.env.close()

    def _named(self, entries: Any) -> dict[str, Any]:
        return dict(zip(self.possible_agents, entries, strict=True))


ENVS: dict[str, Callable[[], ParallelEnv]] = {
    "mpe2.simple_spread_v3": parallel("mpe2.simple_spread_v3"),
    "mpe2.simple_tag_v3": parallel("mpe2.simple_tag_v3"),
    "mpe2.simple_adversary_v3": parallel("mpe2.simple_adversary_v3"),
    "mpe2.simple_world_comm_v3": parallel("mpe2.simple_world_comm_v3"),
    "mpe2.simple_reference_v3": parallel("mpe2.simple_reference_v3"),
    "pettingzoo.sisl.pursuit_v5": parallel("pettingzoo.sisl.pursuit_v5"),
    "pettingzoo.butterfly.pistonball_v6": parallel("pettingzoo.butterfly.pistonball_v6"),
    "pettingzoo.butterfly.knights_archers_zombies_v11": parallel("pettingzoo.butterfly.knights_archers_zombies_v11"),
    "pettingzoo.butterfly.cooperative_pong_v6": parallel("pettingzoo.butterfly.cooperative_pong_v6"),
    "magent2.battlefield_v5": parallel("magent2.environments.battlefield_v5", max_cycles=100),
    "magent2.adversarial_pursuit_v4": parallel("magent2.environments.adversarial_pursuit_v4", max_cycles=100),
    "magent2.tiger_deer_v4": parallel("magent2.environments.tiger_deer_v4", max_cycles=100),
    "lbforaging.Foraging-8x8-3p-3f-v3": partial(OneTuple, "lbforaging", "Foraging-8x8-3p-3f-v3"),
    "rware.rware-tiny-4ag-v2": partial(OneTuple, "rware", "rware-tiny-4ag-v2"),
}
GAMES = (
    "jaxmarl:coin_game",
    "jaxmarl:MPE_simple_spread_v3",
    "jaxmarl:MPE_simple_tag_v3",
    "jaxmarl:overcooked?layout=cramped_room&shaped_reward=1.0",
    "jaxmarl:SMAX?scenario=3m",
    "jaxmarl:storm_2p",
    "jaxmarl:storm_np",
    "jaxmarl:switch_riddle",
    "jumanji:LevelBasedForaging-v0",
    "jumanji:RobotWarehouse-v0",
    "jumanji:Connector-v3",
    "jumanji:Cleaner-v0",
)
"""Names that `hopplus doctor game` takes."""
