"""A trained policy as programs that JAX alone can load: no package of ours is needed to run them.

`jax.export` writes StableHLO with the weights in it. Three programs make a policy:

    init(seat) -> state                                            at the start, with new co-players
    next_episode(state) -> state                                   before another episode with the same co-players
    policy(seat, observation, legal, state) -> probabilities, state

Every array has a leading axis of any length, for many environments at once. The state is a dict of arrays.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export
from jaxtyping import Array, Bool, Float32, Int32

from hopplus.agents.player import Player
from hopplus.games.fields import Field, Observation
from hopplus.runs.checkpoints import by_name
from hopplus.runs.run import Run

PLATFORMS = ("cpu", "cuda")
PROGRAMS = ("init", "next_episode", "policy")
PlayerState = dict[str, Array]
CALL = re.compile(r"custom_call\s+@\"?([\w.$]+)|call_target_name\s*=\s*\"([^\"]*)\"")
HARMLESS = {"Sharding", "shape_assertion"}
"""Notes for the compiler, the only calls that may stand in a program. All others lead out of it."""
PARSE = """
import os, sys
from jax import export
content = sys.stdin.buffer.read()
while content:
    end = 8 + int.from_bytes(content[:8], "little")
    sys.stdout.write(export.deserialize(bytearray(content[8:end])).mlir_module())
    content = content[end:]
sys.stdout.flush()
os._exit(0)
"""
"""It ends at once: what threads of the compiler do at the end of a process says nothing about the programs."""
PATIENCE = 120.0
"""Seconds for parsing a program."""
DTYPES = {"planes": np.uint8, "vector": np.float32, "categories": np.int32}


def trained_seats(run: Run, seed: int) -> Player:
    """The players of all seats that learned, in one leading axis; of length 1 if they have the same parameters."""
    players = [run.policy(seed=seed, seat=seat) for seat in range(run.num_learning)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *players)
    is_shared = all(bool(np.all(leaf == leaf[:1])) for leaf in jax.tree.leaves(jax.device_get(stacked)))
    return jax.tree.map(lambda leaf: leaf[:1], stacked) if is_shared else stacked


def functions(run: Run, seed: int) -> dict[str, Callable[..., Any]]:
    """The functions of the three programs."""
    players = trained_seats(run, seed)
    first = jax.tree.map(lambda leaf: leaf[0], players)
    shapes = jax.eval_shape(first.init)
    names, tree = list(by_name(shapes)), jax.tree.structure(shapes)
    num_sets = jax.tree.leaves(players)[0].shape[0]

    def state_of(named: PlayerState) -> Any:
        return jax.tree.unflatten(tree, [named[name] for name in names])

    def one_init(seat: Int32[Array, ""]) -> PlayerState:
        return by_name(jax.tree.map(lambda leaf: leaf + jnp.zeros_like(leaf) * seat.astype(leaf.dtype), first.init()))

    def one_next_episode(state: PlayerState) -> PlayerState:
        return by_name(first.next_episode(state_of(state)))

    def one_policy(
        seat: Int32[Array, ""], observation: Observation, legal: Bool[Array, " actions"], state: PlayerState
    ) -> tuple[Float32[Array, " actions"], PlayerState]:
        player = jax.tree.map(lambda leaf: leaf[jnp.clip(seat, 0, num_sets - 1)], players)
        probabilities, after = player(observation, legal, state_of(state))
        return probabilities, by_name(after)

    return {name: jax.vmap(fn) for name, fn in zip(PROGRAMS, (one_init, one_next_episode, one_policy), strict=True)}


def serialise(run: Run, seed: int) -> dict[str, bytes]:
    """The three programs, as bytes."""
    fns, (batch,) = functions(run, seed), jax_export.symbolic_shape("batch")
    spec = run.game.spec

    def shaped(leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((batch, *leaf.shape[1:]), leaf.dtype)

    seat = jax.ShapeDtypeStruct((batch,), jnp.int32)
    observation = {
        field.name: jax.ShapeDtypeStruct((batch, *field.shape), dtype_of(field)) for field in spec.observation
    }
    legal = jax.ShapeDtypeStruct((batch, spec.num_actions), bool)
    state = jax.tree.map(shaped, jax.eval_shape(fns["init"], jnp.zeros(1, jnp.int32)))
    arguments = {"init": (seat,), "next_episode": (state,), "policy": (seat, observation, legal, state)}
    return {
        name: bytes(jax_export.export(jax.jit(fns[name]), platforms=PLATFORMS)(*given).serialize())
        for name, given in arguments.items()
    }


def dtype_of(field: Field) -> np.dtype:
    """The type of a field's numbers."""
    return np.dtype(DTYPES[field.kind])


def read_programs(contents: Mapping[str, bytes]) -> dict[str, jax_export.Exported]:
    """Programs from their bytes, not yet run; raises ValueError if one is damaged or calls something outside itself.

    The compiler's parser can crash on damaged bytes, so another process parses them first.
    """
    sent = b"".join(len(content).to_bytes(8, "little") + content for content in contents.values())
    try:
        parsed = subprocess.run(
            [sys.executable, "-c", PARSE], input=sent, capture_output=True, check=False, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise ValueError("the programs take too long to read; export the run again") from None
    if parsed.returncode != 0:
        said = parsed.stderr.decode(errors="replace").strip().splitlines()
        line = said[-1] if said and parsed.returncode > 0 else f"its parser ends with signal {-parsed.returncode}"
        raise ValueError(f"a program cannot be read ({line}); export the run again")
    targets = {one or other for one, other in CALL.findall(parsed.stdout.decode(errors="replace"))}
    if outside := sorted(targets - HARMLESS):
        raise ValueError(f"a program calls {outside[0]} outside of itself; hopplus did not export it")
    return {name: jax_export.deserialize(bytearray(content)) for name, content in contents.items()}
