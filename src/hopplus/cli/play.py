"""`hopplus play`: watch a line-up play, or play one seat at the keyboard."""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32
from rich.console import Console
from rich.live import Live

from hopplus.agents.opponents import opponent_inputs
from hopplus.agents.player import Player
from hopplus.cli.keyboard import Keyboard
from hopplus.cli.verbs.play import Play
from hopplus.games.coplayers import Lineup
from hopplus.games.draw import Frame, frames, terminal
from hopplus.games.fields import Observation
from hopplus.games.game import NO_ACTION, Game, views_of_others
from hopplus.games.lineups import lineup, seat_names, split
from hopplus.games.pictures import save_gif, save_picture
from hopplus.games.presets import PRESETS, make
from hopplus.games.rollout import play_episode, sample_actions
from hopplus.runs.lineups import is_run, run_player

PERSON = "keyboard"


def play_once(asked: Play) -> int:
    """Play one episode, show it, and save it."""
    env = make(asked.game)
    if asked.out and asked.out.suffix not in {".gif", ".png", ".svg"}:
        raise ValueError(f"cannot save as {asked.out.name!r}; give a name that ends in .gif, .png or .svg")
    text = asked.seats or (
        PRESETS[asked.game].lineup if asked.game in PRESETS else ",".join(["random"] * env.spec.num_agents)
    )
    parts = split(text)
    persons = [seat for seat, name in enumerate(parts) if name == PERSON]
    if len(persons) > 1:
        raise ValueError(f"{len(persons)} seats are called {PERSON}; give one at most")
    chosen = [_player("random" if name == PERSON else name, seat, env) for seat, name in enumerate(parts)]
    players, names = lineup(chosen, env), [part if is_run(part) else seat_names(part)[0] for part in parts]
    console = Console()
    is_told = persons or any(map(is_run, parts))  # beliefs are read step by step
    moments = (
        _step_by_step(env, players, persons[0] if persons else None, asked.seed)
        if is_told
        else iter(_at_once(env, players, asked.seed))
    )
    shown = _show(env, moments, names, 0.0 if persons else asked.seconds, console)
    if asked.out and shown:
        with console.status(f"drawing {asked.out}"):
            _save(env, shown, names, asked.out)
        console.print(f"saved {asked.out}")
    return 0


def _at_once(game: Game, players: Lineup, seed: int) -> list[Frame]:
    return frames(game, jax.jit(lambda key: play_episode(game, players, key=key))(jax.random.key(seed)))


def _player(text: str, seat: int, game: Game) -> Any:
    """A script by its name, or the player of a run."""
    return run_player(text, game, seat) if is_run(text) else text


def _step_by_step(game: Game, players: Lineup, person: int | None, seed: int) -> Iterator[Frame]:
    """Yield the frames one by one, with what trained players believe.

    The person's action replaces the one that was sampled for the seat.
    """
    reset_key, play_key = jax.random.split(jax.random.key(seed))

    @jax.jit
    def look(state, policy_state):
        legal, views = game.legal(state), game.observe(state)
        probabilities, policy_state = players(views, legal, policy_state)
        beliefs = {
            seat: read_beliefs(player, jax.tree.map(lambda leaf, seat=seat: leaf[seat], views), policy_state[group])
            for seat, (player, group) in believers.items()
        }
        return game.board(state), game.terminated(state), legal, beliefs, probabilities, policy_state

    @jax.jit
    def act(state, probabilities, chosen, key):
        act_key, step_key = jax.random.split(key)
        actions = sample_actions(probabilities, uniforms=jax.random.uniform(act_key, (game.spec.num_agents,)))
        actions = actions if person is None else actions.at[person].set(chosen)
        return actions, *game.step(state, actions, key=step_key)

    believers = believing_seats(players)
    state, policy_state = jax.jit(lambda key: game.reset(key=key))(reset_key), players.init()
    rewards = returns = np.zeros(game.spec.num_agents, np.float32)
    actions = np.full(game.spec.num_agents, NO_ACTION)
    with Keyboard(game.spec) if person is not None else nullcontext() as keyboard:
        for step in range(game.spec.horizon + 1):
            board, terminated, legal, beliefs, probabilities, policy_state = look(state, policy_state)
            board, terminated, legal, beliefs = jax.device_get((board, terminated, legal, beliefs))
            notes = tuple(
                f"{seat + 1} has left" if terminated[seat] else belief_words(seat, player, beliefs[seat])
                for seat, (player, _) in believers.items()
            )
            yield Frame(board, step, actions, rewards, returns, terminated, notes)
            if terminated.all() or step == game.spec.horizon:
                return
            chosen = game.spec.stay or 0
            if keyboard is not None and not terminated[person]:
                chosen = keyboard.choose(legal[person])
                if chosen is None:
                    return
            key = jax.random.fold_in(play_key, step)
            taken, state, paid = act(state, probabilities, jnp.int32(chosen), key)
            actions, rewards = np.where(terminated, NO_ACTION, np.asarray(taken)), np.asarray(paid)
            returns = returns + rewards


def believing_seats(players: Lineup) -> dict[int, tuple[Player, int]]:
    """The trained players with opponent models, by seat, each with its place in the line-up's state.

    Where views sum the others, a player believes nothing about each of them.
    """
    found = {}
    for group, (policy, seats) in enumerate(players.groups()):
        if isinstance(policy, Player) and policy.config.is_used and not policy.game.spec.sums_others:
            found |= {int(seat): (policy, group) for seat in seats}
    return dict(sorted(found.items()))


def read_beliefs(player: Player, view: Observation, state: Any) -> Float32[Array, "others entries"]:
    """What a player believes about each co-player: its goal, or its next action where goals have no names.

    `state` is that of the player's group, which is alone in it.
    """
    goals = state.goals[0]
    if player.goals.names:
        return goals
    inputs = opponent_inputs(player.game, views_of_others(player.game.spec, view))
    return jnp.where(inputs.legal, player.goals.expected(player.opponents, inputs, goals), 0.0)


def belief_words(seat: int, player: Player, beliefs: np.ndarray) -> str:
    """What `read_beliefs` found, in a line."""
    num_agents = len(beliefs) + 1
    names = player.goals.names or player.game.spec.action_names
    parts = [
        f"{(seat + 1 + index) % num_agents + 1} {names[one.argmax()]} {one.max():.0%}"
        for index, one in enumerate(beliefs)
    ]
    return f"{seat + 1} {'believes' if player.goals.names else 'predicts'}: {', '.join(parts)}"


def _show(game: Game, moments: Iterator[Frame], names: list[str], seconds: float, console: Console) -> list[Frame]:
    """Show the frames, on a terminal in one place and elsewhere one below the other. Returns all frames."""
    shown: list[Frame] = []
    with Live(console=console, auto_refresh=False) as live:
        for moment in moments:
            drawn = terminal(game.spec, moment, shown[-1] if shown else None, names)
            shown.append(moment)
            if console.is_terminal:
                live.update(drawn, refresh=True)
                time.sleep(seconds)
            else:
                console.print(drawn)
    return shown


def _save(game: Game, shown: list[Frame], names: list[str], out: Path) -> None:
    if out.suffix == ".gif":
        save_gif(game.spec, shown, out, names)
    else:
        save_picture(game.spec, shown[-1], out, shown[-2] if len(shown) > 1 else None, names)
