"""The order of a round's arms, and how a block keeps the time that was promised for it, whatever the machine does.

The clock begins with the first check. The rounds that a verdict takes are begun until the block's own limit: a busy
machine measures longer, and not in vain. A further round, or a trace of some arms, is begun only where what the last
one took still fits the promise; disturbed samples are measured again out of a small part of it.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from math import inf

from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.comparing.repeats import MIN_ROUNDS
from farm.rules.planning.plans import TRACES_SHARE

# of the promised time, which is twice the plan: to measure disturbed samples again
REPEATS_SHARE = 0.1
# arms of a comparison
PAIR = 2
# a round that a verdict takes is begun late too, where so many like the last one fit before the block's own limit
SPARE = 2.0


def order_arms(arms: Sequence[int], *, round_number: int, seed: str) -> list[int]:
    """Return the arms in the order they are measured in this round; the same for the same seed, arms and round.

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


class BlockSchedule:
    """The clock of one block. `promised_s`: how long it should take; None: nothing was promised.

    `limit_s`: after how many seconds it has failed. `least`: how many rounds a verdict takes.
    """

    def __init__(
        self,
        promised_s: float | None = None,
        *,
        limit_s: float = inf,
        least: int = MIN_ROUNDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # memory is judged by a repeat
        self._least = max(MIN_ROUNDS, least)
        self._ends_at = clock() + limit_s
        self._promised_s = inf if promised_s is None else promised_s
        self._clock = clock
        self._began = clock()
        self._repeats_s = 0.0
        self._rounds = 0
        self._round_s = 0.0
        self._trace_s = 0.0

    def begin(self) -> None:
        self._began = self._clock()

    @property
    def may_repeat(self) -> bool:
        return self._repeats_s < REPEATS_SHARE * self._promised_s and self._left_s > 0

    @property
    def has_room_for_a_round(self) -> bool:
        """Whether another round like the last one fits."""
        if self._rounds < self._least and self._ends_at - self._clock() >= SPARE * self._round_s:
            return True
        traces_s = (
            TRACES_SHARE * self._promised_s if self._rounds >= PLANNED_LOOKS[0] and self._promised_s < inf else 0.0
        )
        return self._left_s >= self._round_s + traces_s

    def has_room_for_traces(self, arms: int) -> bool:
        return self._left_s >= arms * self._trace_s

    def count_traceable_arms(self, arms: int, *, rounds: int) -> int:
        """Return how many of `arms` arms may be traced `rounds` times in the time that is left, PAIR at least.

        One change that is explained says more than several with too few traces each.
        """
        each_s = rounds * self._trace_s
        # without arms or rounds there is nothing to divide the time by
        if arms <= PAIR or each_s == 0.0 or self._left_s >= arms * each_s:
            return arms
        return max(PAIR, int(self._left_s / each_s))

    @contextlib.contextmanager
    def time_repeats(self) -> Iterator[None]:
        """Count the time inside the `with` as that of measuring disturbed samples again."""
        began = self._clock()
        yield
        self._repeats_s += self._clock() - began

    @contextlib.contextmanager
    def time_round(self) -> Iterator[None]:
        """Count the time inside the `with`, without its repeats, as that of a round."""
        began, repeats_s = self._clock(), self._repeats_s
        yield
        self._rounds += 1
        # the next round repeats as little as the time allows
        self._round_s = self._clock() - began - (self._repeats_s - repeats_s)

    @contextlib.contextmanager
    def time_traces(self, arms: int) -> Iterator[None]:
        """Count the time inside the `with` as that of the first trace of so many arms."""
        began = self._clock()
        yield
        self._trace_s = (self._clock() - began) / max(1, arms)

    @property
    def _left_s(self) -> float:
        return self._promised_s - (self._clock() - self._began)
