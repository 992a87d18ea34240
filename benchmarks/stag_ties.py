"""What can players who look after themselves get in the stag hunt? Fewer than 3.0, because of ties.

Whoever reaches the stag first waits for the second, and both hunt at once. A third player who arrives in the same step
as the second gets 10/3 by hunting and 1 by leaving the stag alone, so it hunts; all who are as near as the second share
the stag, and the mean return is (10 + 4 - hunters) / 4. The distances of a random spawn are counted exactly: for every
cell of the stag, how many ways there are to put the four players.

    python benchmarks/stag_ties.py
"""

import argparse
from collections import Counter
from fractions import Fraction
from math import comb

from measure import print_json, print_table

PLAYERS, STAG, HARE = 4, 10, 1


def hunters(side: int) -> dict[int, Fraction]:
    """The probability of each number of hunters, when all who are as near as the second come."""
    ways: Counter[int] = Counter()
    cells = [(row, column) for row in range(side) for column in range(side)]
    for stag in cells:
        at_distance = Counter(
            abs(row - stag[0]) + abs(column - stag[1]) for row, column in cells if (row, column) != stag
        )
        for distance, here in at_distance.items():
            nearer = sum(count for other, count in at_distance.items() if other < distance)
            farther = sum(count for other, count in at_distance.items() if other > distance)
            for first in (0, 1):
                for tied in range(2 - first, PLAYERS - first + 1):
                    rest = PLAYERS - first - tied
                    ways[first + tied] += comb(nearer, first) * comb(here, tied) * comb(farther, rest)
    total = sum(ways.values())
    return {number: Fraction(count, total) for number, count in sorted(ways.items())}


def mean_return(chances: dict[int, Fraction]) -> float:
    return float(
        sum(chance * Fraction(STAG + HARE * (PLAYERS - number), PLAYERS) for number, chance in chances.items())
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the same: it takes no time")
    parser.parse_args()
    found = {side: hunters(side) for side in (4, 8)}
    rows = [
        (f"{side}x{side}", *(f"{float(chances[number]):.3f}" for number in (2, 3, 4)), f"{mean_return(chances):.4f}")
        for side, chances in found.items()
    ]
    print_table("one stag, four hares, four players", ("board", "2 hunters", "3", "4", "mean return"), rows)
    print_json({"mean_return": {f"{side}x{side}": mean_return(chances) for side, chances in found.items()}}, [])


if __name__ == "__main__":
    main()
