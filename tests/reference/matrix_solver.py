"""Exact answers for small repeated matrix games, by backward induction over (time, last joint action).

With W the value of what follows, V_t(last) = sum over joint actions of p(joint | t, last) (r(joint) + discount W), and
W = V_{t+1}(joint), or 0 after the last round. A best response takes, in place of its own part of p, the action with the
largest sum. Probabilities and discounts may be `Fraction`s: then so is every answer, and nothing is rounded.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from reference import NO_ACTION, seats_from
from reference.matrix import Rules

Number = Fraction | float
Joint = tuple[int, ...]
"""One action for each seat; NO_ACTION for everybody before the first round."""
Policy = Callable[[int, Joint], Sequence[Number]]
"""Probabilities of the actions, from the time and the last joint action, the seat's own action first as it sees it."""


@dataclass(frozen=True)
class BestResponse:
    value: Number
    """Of the whole game, from the first round."""
    action_values: dict[tuple[int, Joint], list[Number]]
    """By time and last joint action (in seat order): what each action is worth if all that follows is best."""
    seat: int

    def policy(self, time: int, seen: Joint) -> list[Number]:
        """Plays the best action, the first of them where several are equal; can be used as any other policy."""
        num_players = len(seen)
        order = seats_from(self.seat, num_players)
        last = tuple(seen[order.index(other)] for other in range(num_players))
        action_values = self.action_values[time, last]
        best = action_values.index(max(action_values))
        return [Fraction(action == best) for action in range(len(action_values))]


def payoffs(rules: Rules, joint: Joint) -> list[Fraction]:
    """What each seat gets in one round: the mean over its pairs."""
    seats = range(len(joint))
    return [
        sum(Fraction(rules.payoff[joint[seat]][joint[other]]) for other in seats if other != seat) / (len(joint) - 1)
        for seat in seats
    ]


def all_joints(rules: Rules, num_players: int) -> list[Joint]:
    return list(product(range(len(rules.payoff)), repeat=num_players))


def situations(rules: Rules, num_players: int) -> Iterator[tuple[int, Joint]]:
    """Every time and last joint action, the last round first."""
    for time in reversed(range(rules.horizon)):
        for last in all_joints(rules, num_players) if time > 0 else [(NO_ACTION,) * num_players]:
            yield time, last


def choices(policies: Sequence[Policy], time: int, last: Joint) -> list[Sequence[Number]]:
    """What each seat does after this joint action, every policy seeing it in its own seat's order."""
    return [
        policy(time, tuple(last[other] for other in seats_from(seat, len(last))))
        for seat, policy in enumerate(policies)
    ]


def values(rules: Rules, policies: Sequence[Policy], discount: Number = 1) -> list[Number]:
    """The expected discounted return of every seat when each plays its policy."""
    num_players = len(policies)
    follows: dict[tuple[int, Joint], list[Number]] = {}
    for time, last in situations(rules, num_players):
        chances = choices(policies, time, last)
        expected: list[Number] = [Fraction(0) for _ in policies]
        for joint in all_joints(rules, num_players):
            chance: Number = Fraction(1)
            for seat, action in enumerate(joint):
                chance *= chances[seat][action]
            future = follows.get((time + 1, joint), [Fraction(0)] * num_players)
            for seat, payoff in enumerate(payoffs(rules, joint)):
                expected[seat] += chance * (payoff + discount * future[seat])
        follows[time, last] = expected
    return follows[0, (NO_ACTION,) * num_players]


def best_response(rules: Rules, policies: Sequence[Policy], seat: int, discount: Number = 1) -> BestResponse:
    """The best that a seat can do against the others' policies; its own entry among them is not asked."""
    num_players = len(policies)
    others = [other for other in range(num_players) if other != seat]
    asked = list(policies)
    asked[seat] = lambda _time, _last: [Fraction(1) for _ in rules.payoff]
    action_values: dict[tuple[int, Joint], list[Number]] = {}
    for time, last in situations(rules, num_players):
        chances = choices(asked, time, last)
        worth: list[Number] = [Fraction(0) for _ in rules.payoff]
        for joint in all_joints(rules, num_players):
            chance: Number = Fraction(1)
            for other in others:
                chance *= chances[other][joint[other]]
            future = max(action_values.get((time + 1, joint), [Fraction(0)]))
            worth[joint[seat]] += chance * (payoffs(rules, joint)[seat] + discount * future)
        action_values[time, last] = worth
    return BestResponse(max(action_values[0, (NO_ACTION,) * num_players]), action_values, seat)
