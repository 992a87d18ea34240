"""The settings of search. No JAX here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchConfig:
    """The budget of a search."""

    trees: int = 5
    """Trees whose values are averaged; each has its own goals and random draws."""
    simulations: int = 200
    """Nodes of each tree."""
    depth: int = 12
    """The most steps that a tree looks ahead; beyond them the critic answers."""
    exploration: float = 1.25
    """The weight of the policy's prior beside the values found."""
    playout: int = 0
    """Steps that the policy plays on from a new node before the critic is asked; useful while the critic is poor."""
