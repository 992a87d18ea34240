"""`hopplus play`: watch a line-up play, or play one seat at the keyboard."""

import time
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.live import Live

from hopplus.cli.games import GameName
from hopplus.cli.keyboard import Keyboard
from hopplus.games.coplayers import Lineup
from hopplus.games.draw import Frame, frames, terminal
from hopplus.games.game import NO_ACTION, Game
from hopplus.games.lineups import lineup, seat_names
from hopplus.games.pictures import save_gif, save_picture
from hopplus.games.presets import PRESETS, make
from hopplus.games.rollout import play_episode, sample_actions

PERSON = "keyboard"


def play(
    game: GameName = "stag-hunt-8x8",
    seats: str | None = None,
    seed: int = 0,
    out: Path | None = None,
    seconds: float = 0.4,
) -> int:
    """Play one episode in the terminal, and save it as a picture with --out.

    Args:
        game: A name from `hopplus games`; jaxmarl:NAME, jumanji:NAME or pettingzoo:MODULE.FACTORY; or MODULE:FACTORY
            for a game of your own.
        seats: The players of the seats, in order, as in
            nearest_stag,patient_stag(3),noisy(nearest_hare,0.1),random. A seat called `keyboard` is yours: arrows or
            wasd move, e hunts or removes, space stays, digits choose an action, q quits.
        seed: The seed of the spawns and of all random numbers.
        out: A file for the episode: .gif is an animation; .png and .svg show the last step.
        seconds: Seconds for which each step is shown.
    """
    env = make(game)
    if out and out.suffix not in {".gif", ".png", ".svg"}:
        raise ValueError(f"cannot save as {out.name!r}; give a name that ends in .gif, .png or .svg")
    text = seats or (PRESETS[game].lineup if game in PRESETS else ",".join(["random"] * env.spec.num_agents))
    names = seat_names(text)
    persons = [seat for seat, name in enumerate(names) if name == PERSON]
    if len(persons) > 1:
        raise ValueError(f"{len(persons)} seats are called {PERSON}; give one at most")
    players = lineup(",".join("random" if name == PERSON else name for name in names), env)
    console = Console()
    moments = _with_person(env, players, persons[0], seed) if persons else iter(_without_person(env, players, seed))
    shown = _show(env, moments, names, 0.0 if persons else seconds, console)
    if out and shown:
        with console.status(f"drawing {out}"):
            _save(env, shown, names, out)
        console.print(f"saved {out}")
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
