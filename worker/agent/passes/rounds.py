"""The order of a round's arms: random, and balanced over rounds. Pure."""

import random
from collections.abc import Sequence


def round_order(arms: Sequence[int], *, round_number: int, seed: str) -> list[int]:
    """The arms in the order they are measured in this round; the same for the same seed, arms and round.

    Rows of a Williams square over randomly renamed arms: in k rounds of k arms every arm stands once in every place,
    and (for even k) follows every other once, so that heat or cache left by a neighbour hits all alike.
    E. J. Williams, "Experimental designs balanced for the estimation of residual effects of treatments", 1949.
    """
    count = len(arms)
    if count < 2:
        return list(arms)
    cycle, row = divmod(round_number, count)
    dice = random.Random(f"{seed}/{cycle}")
    names = sorted(arms)
    dice.shuffle(names)
    shifts = list(range(count))
    dice.shuffle(shifts)
    places = [(step + shifts[row]) % count for step in _zigzag(count)]
    # for an odd number every other cycle is read backwards, which balances who follows whom over two of them
    if count % 2 and cycle % 2:
        places.reverse()
    return [names[place] for place in places]


def _zigzag(count: int) -> list[int]:
    """0, 1, count-1, 2, count-2, …: neighbours differ by every amount once."""
    steps = [0]
    for index in range(1, count):
        steps.append((index + 1) // 2 if index % 2 else count - index // 2)
    return steps
