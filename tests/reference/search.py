"""pUCT as a plain Python tree: slow, and obviously right. For models without dice.

A model is asked `expand(state, action) -> (reward, discount, state, prior, value)`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Expand = Callable[[Any, int], tuple[float, float, Any, Sequence[float], float]]


@dataclass
class Node:
    state: Any
    prior: Sequence[float]
    value: float
    """The mean of all that was found below it, its own first value among them."""
    visits: int = 1
    children: dict[int, "Edge"] = field(default_factory=dict)


@dataclass
class Edge:
    reward: float
    discount: float
    node: Node
    visits: int = 0

    @property
    def worth(self) -> float:
        return self.reward + self.discount * self.node.value


def select(node: Node, exploration: float) -> int:
    """Worths are scaled to 0..1 among themselves and the node's own value; what is untried counts as the least."""
    worths = [edge.worth for edge in node.children.values()]
    low, high = min([node.value, *worths]), max([node.value, *worths])
    scores = []
    for action, chance in enumerate(node.prior):
        edge = node.children.get(action)
        scaled = (edge.worth - low) / max(high - low, 1e-8) if edge else 0.0
        visits = edge.visits if edge else 0
        scores.append(scaled + exploration * math.sqrt(node.visits) * chance / (1 + visits))
    return scores.index(max(scores))


def in_turn(node: Node) -> int:
    """What was tried least; of several, what the prior likes best."""
    visits = [node.children[action].visits if action in node.children else 0 for action in range(len(node.prior))]
    least = [action for action, count in enumerate(visits) if count == min(visits)]
    return max(least, key=lambda action: node.prior[action])


def grow(root: Node, expand: Expand, simulations: int, *, depth: int, exploration: float) -> Node:
    """Each simulation walks down to what is untried, or to the depth, and carries what it finds back up."""
    for _ in range(simulations):
        node, path = root, []
        while True:
            action = select(node, exploration) if path else in_turn(node)
            path.append((node, action))
            if action not in node.children or len(path) == depth:
                break
            node = node.children[action].node
        node, action = path[-1]
        reward, discount, state, prior, found = expand(node.state, action)
        if action in node.children:
            node.children[action].node.value = found
            node.children[action].node.visits += 1
        else:
            node.children[action] = Edge(reward, discount, Node(state, prior, found))
        for node, action in reversed(path):
            edge = node.children[action]
            edge.visits += 1
            found = edge.reward + edge.discount * found
            node.value = (node.value * node.visits + found) / (node.visits + 1)
            node.visits += 1
    return root
