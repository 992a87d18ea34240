"""Random numbers in the state of a policy, for what it draws anew in every episode.

A policy itself is a function of its view and its state. A policy that draws puts a `Chance` into its state; whoever
starts an environment fills it with `with_chances`, and `next_chance` makes the numbers of the episode after.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, Key, PyTree, UInt32

from hopplus.core.streams import stream
from hopplus.games.board import random_words


class Chance(eqx.Module):
    """The random words of one episode."""

    words: UInt32[Array, "*batch 2"]

    def below(self, count: int) -> Int32[Array, "*batch"]:
        """A number from 0 to `count` - 1; its bias is below `count` in four billions."""
        return (self.words[..., 0] % jnp.uint32(count)).astype(jnp.int32)


def no_chance() -> Chance:
    """Words that nobody has drawn yet."""
    return Chance(jnp.zeros(2, jnp.uint32))


def next_chance(chance: Chance) -> Chance:
    """The words of the next episode."""
    return Chance(random_words(2, key=jax.random.wrap_key_data(chance.words)))


def with_chances(policy_state: PyTree[Array], *, key: Key[Array, ""]) -> PyTree[Array]:
    """The state of policies with random words in every `Chance`; other states stay, and cost nothing."""
    leaves, tree = jax.tree.flatten(policy_state, is_leaf=_is_chance)
    places = [place for place, leaf in enumerate(leaves) if _is_chance(leaf)]
    sizes = [leaves[place].words.size for place in places]
    if not places:
        return policy_state
    words, begin = random_words(sum(sizes), key=stream(key, "chances")), 0
    for place, size in zip(places, sizes, strict=True):
        leaves[place] = Chance(words[begin : begin + size].reshape(leaves[place].words.shape))
        begin += size
    return jax.tree.unflatten(tree, leaves)


def _is_chance(node: object) -> bool:
    return isinstance(node, Chance)
