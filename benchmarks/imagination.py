"""How fast is imagined play? Against the bare networks on the same batch, and against real play.

One learner imagines in many environments, up to the batch that its policy learns from: its policy, its models of three
co-players, its world. The bare program runs the same networks on as many recorded situations and does nothing else: no
draws, no views, no records. On one core, as a learner has it where cores are shared out; XLA also spreads the large
products of the bare networks over several cores, if it has them, and gains less from them in play that goes step by
step.

    python benchmarks/imagination.py            4x4 and 8x8 on one core
    python benchmarks/imagination.py --quick    4x4, five short rounds
    python benchmarks/imagination.py --cores 2
"""

import argparse
import os
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from hopplus.agents import opponents
from hopplus.agents.goals import goal_model
from hopplus.games.coplayers import Lineup
from hopplus.games.game import views_of_others
from hopplus.games.presets import make
from hopplus.learning import learner
from hopplus.learning.imagination import ImaginedPlayers, branches, imagine
from hopplus.learning.initial import seats_of
from hopplus.learning.ppo import make_batch
from hopplus.learning.rollout import collect
from hopplus.learning.state import Task
from hopplus.models import actor_critic, world
from hopplus.models.world import Situation
from hopplus.runs.agents import learner_of
from measure import Program, measure, print_json, print_table, short, times_as_fast


def programs(game_name: str, envs: int, length: int) -> list[Program]:
    """Imagined play of one learner, the networks alone, and real play of all seats."""
    game = make(game_name)
    config = replace(learner_of("hop_plus"), envs=envs, rollout_steps=length)
    imagination = replace(config.imagination, real_ratio=0.5, length=length)  # as many environments as real ones
    config = replace(config, imagination=imagination)
    task = Task(game, Lineup(()), 10)
    state = jax.jit(lambda key: learner.init(config, task, key=key))(jax.random.key(0))
    seats = seats_of(config, task, state.learners)
    keys = jax.random.split(jax.random.key(1), game.spec.num_agents)
    real = jax.jit(lambda envs, key: collect(game, seats, envs, length, seat_keys=keys, env_key=key))
    after, steps, _ = jax.block_until_ready(real(state.envs, jax.random.key(2)))
    first = jax.tree.map(lambda leaf: leaf[0], state.learners)
    assert first.world is not None
    params, models = first.policy.params, first.opponents.params
    member = jax.tree.map(lambda leaf: leaf[0], first.world.params)
    begin = jax.jit(partial(branches, config, game))(after, steps)
    of_seat = jax.tree.map(lambda leaf: leaf[0], begin)
    players = ImaginedPlayers(params, models, game, config.opponents)
    play = partial(imagine, imagination, players, member, of_seat)
    imagined = jax.jit(lambda key: make_batch(config.ppo, *play(key=key)))
    situations = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), (steps.observation, steps.legal, steps.actions))
    bare = jax.jit(partial(networks_alone, game, config.opponents, params, models, member))
    count = iter(range(1, 10**9))
    key = lambda: jax.random.key(next(count))  # noqa: E731
    work = envs * length
    return [
        Program("imagined play", lambda: jax.block_until_ready(imagined(key())), work),
        Program("its networks alone", lambda: jax.block_until_ready(bare(situations)), work),
        Program("real play, four seats", lambda: jax.block_until_ready(real(state.envs, key())), work),
    ]


def networks_alone(game: Any, config: Any, params: Any, models: Any, member: Any, situations: Any) -> Any:
    """Policy, posterior or filter, opponent models and world, in every environment and step."""
    spec = game.spec
    start = goal_model(config, game).start()

    def one_env(observation, legal, actions):
        view = jax.tree.map(lambda leaf: leaf[0], observation)
        inputs = opponents.opponent_inputs(game, views_of_others(spec, view))
        predicted = opponents.predict_by_goal(models, inputs, start.goals.shape[-1])
        log_probabilities, value = actor_critic.apply(params, view, legal[0], start.goals)
        now = Situation(view["planes"], jnp.int32(0), actions, jnp.zeros(spec.num_agents, bool))
        outcome = jax.tree.leaves(world.apply(member, spec, now))
        return predicted.sum() + log_probabilities.sum() + value + sum(leaf.sum() for leaf in outcome)

    def one_step(total, step):
        return total + jax.vmap(one_env)(*step), None

    first = jnp.zeros(situations[2].shape[1], jnp.float32)
    return jax.lax.scan(one_step, first, situations)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4x4 only, five short rounds")
    parser.add_argument("--cores", type=int, default=1, help="cores that XLA may use, of those that there are")
    given = parser.parse_args()
    quick = given.quick
    if hasattr(os, "sched_setaffinity"):  # before JAX is first used
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-given.cores :])
    found = {}
    for name in ("stag-hunt-4x4",) if quick else ("stag-hunt-4x4", "stag-hunt-8x8"):
        timed = programs(name, envs=256, length=18)
        measure(timed, rounds=5 if quick else 9, seconds=1.0 if quick else 3.0)
        ratios = {each.name: times_as_fast(timed[0], each) for each in timed}
        rows = [(each.name, short(each.steps_per_second), f"{ratios[each.name]:.2f} x") for each in timed]
        print_table(
            f"{name}, 256 environments x 18 steps, one learner", ("program", "steps/s", "imagined play is"), rows
        )
        found[name] = {
            "over_networks": ratios["its networks alone"],
            "over_real": ratios["real play, four seats"],
            "steps_per_second": {each.name: each.steps_per_second for each in timed},
        }
    first = found["stag-hunt-4x4"]["over_networks"]
    print_json({"over_networks": first, "cores": given.cores, "games": found}, ["jax"])


if __name__ == "__main__":
    main()
