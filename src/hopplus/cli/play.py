"""`hopplus play`: watch a line-up play, or play one seat at the keyboard."""

import time
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.live import Live

from hopplus.cli.keyboard import Keyboard
from hopplus.cli.verbs.play import Play
from hopplus.games.coplayers import Lineup
from hopplus.games.draw import Frame, frames, terminal
from hopplus.games.game import NO_ACTION, Game
from hopplus.games.lineups import lineup, seat_names
from hopplus.games.pictures import save_gif, save_picture
from hopplus.games.presets import PRESETS, make
from hopplus.games.rollout import play_episode, sample_actions

PERSON = "keyboard"


def play_once(asked: Play) -> int:
    """Play one episode, show it, and save it."""
    env = make(asked.game)
    if asked.out and asked.out.suffix not in {".gif", ".png", ".svg"}:
        raise ValueError(f"cannot save as {asked.out.name!r}; give a name that ends in .gif, .png or .svg")
    text = asked.seats or (
        PRESETS[asked.game].lineup if asked.game in PRESETS else ",".join(["random"] * env.spec.num_agents)
    )
    names = seat_names(text)
    persons = [seat for seat, name in enumerate(names) if name == PERSON]
    if len(persons) > 1:
        raise ValueError(f"{len(persons)} seats are called {PERSON}; give one at most")
    players = lineup(",".join("random" if name == PERSON else name for name in names), env)
    console = Console()
    moments = (
        _with_person(env, players, persons[0], asked.seed)
        if persons
        else iter(_without_person(env, players, asked.seed))
    )
    shown = _show(env, moments, names, 0.0 if persons else asked.seconds, console)
    if asked.out and shown:
        with console.status(f"drawing {asked.out}"):
            _save(env, shown, names, asked.out)
        console.print(f"saved {asked.out}")
    return 0


def _without_person(game: Game, players: Lineup, seed: int) -> list[Frame]:
    return frames(game, jax.jit(lambda key: play_episode(game, players, key=key))(jax.random.key(seed)))


def _with_person(game: Game, players: Lineup, seat: int, seed: int) -> Iterator[Frame]:
    """Yield the frames one by one. The person's action replaces the one that was sampled for the seat."""
    reset_key, play_key = jax.random.split(jax.random.key(seed))

    @jax.jit
    def turn(state, policy_state, chosen, key):
        act_key, step_key = jax.random.split(key)
        probabilities, policy_state = players(game.observe(state), game.legal(state), policy_state)
        uniforms = jax.random.uniform(act_key, (game.spec.num_agents,))
        actions = sample_actions(probabilities, uniforms=uniforms).at[seat].set(chosen)
        after, rewards = game.step(state, actions, key=step_key)
        return after, policy_state, actions, rewards

    @jax.jit
    def shown(state):
        return game.board(state), game.terminated(state), game.legal(state)[seat]

    state, policy_state = jax.jit(lambda key: game.reset(key=key))(reset_key), players.init()
    board, terminated, legal = jax.device_get(shown(state))
    returns = np.zeros(game.spec.num_agents, np.float32)
    no_actions = np.full(game.spec.num_agents, NO_ACTION)
    yield Frame(board, 0, no_actions, np.zeros_like(returns), returns, terminated)
    with Keyboard(game.spec) as keyboard:
        for step in range(game.spec.horizon):
            stay = game.spec.stay or 0
            chosen = stay if terminated[seat] else keyboard.choose(legal)
            if chosen is None:
                return
            key = jax.random.fold_in(play_key, step)
            state, policy_state, actions, rewards = turn(state, policy_state, jnp.int32(chosen), key)
            board, terminated, legal = jax.device_get(shown(state))
            returns = returns + np.asarray(rewards)
            yield Frame(board, step + 1, np.asarray(actions), np.asarray(rewards), returns, terminated)
            if terminated.all():
                return


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
