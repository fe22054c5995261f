"""Orders the arms of a round, and keeps a block within the time that was promised for it.

The clock begins with the first check. The rounds that a verdict needs are begun until the block's own limit, so that a
busy machine gets a verdict too. A further round, or a trace, is begun only if it fits the promised time, judged by the
last one. A small part of that time is for repeating disturbed samples.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from math import inf

from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.comparing.repeats import MIN_ROUNDS
from farm.rules.planning.plans import TRACES_SHARE

# this share of the promised time, which is twice the planned one, may be spent on repeating disturbed samples
REPEATS_SHARE = 0.1
# the number of arms in a comparison
PAIR = 2
# a round that a verdict needs is begun if this many times the last round's duration fits before the block's limit
SAFETY_FACTOR = 2.0


def order_arms(arms: Sequence[int], *, round_number: int, seed: str) -> list[int]:
    """Return the arms in the order of a round; the same for the same seed, arms and round.

    The orders are the rows of a Williams square over randomly renamed arms: in k rounds of k arms, every arm has every
    place once and, for even k, follows every other arm once. So the heat that an arm leaves affects all others alike.
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
    # for an odd number of arms, every other cycle is reversed, which balances the followers over two cycles
    if count % 2 and cycle % 2:
        places.reverse()
    return [names[place] for place in places]


def _zigzag(count: int) -> list[int]:
    """Return 0, 1, count-1, 2, count-2, …, in which neighbours differ by every amount once."""
    steps = [0]
    for index in range(1, count):
        steps.append((index + 1) // 2 if index % 2 else count - index // 2)
    return steps


class BlockSchedule:
    """The time of one block. `promised_s`: how long it should take; None: any time.

    `limit_s`: the seconds after which the block fails. Both times count from the construction, until `begin` restarts
    the promised one. `min_rounds`: the rounds that a verdict needs. `may_repeat` is true while promised time remains
    and repeats have taken less than REPEATS_SHARE of it. `has_time_for_traces` says whether a trace of each of `arms`
    arms fits the promised time, if it takes as long as the first ones.
    """

    def __init__(
        self,
        promised_s: float | None = None,
        *,
        limit_s: float = inf,
        min_rounds: int = MIN_ROUNDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # a verdict on memory needs a repeated round
        self._min_rounds = max(MIN_ROUNDS, min_rounds)
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
        return self._repeats_s < REPEATS_SHARE * self._promised_s and self._remaining_s > 0

    @property
    def has_time_for_round(self) -> bool:
        """Whether another round as long as the last one, and the later traces, fit the promised time.

        For a round that the verdict needs, twice the last one's time before the block's own limit is enough.
        """
        if self._rounds < self._min_rounds and self._ends_at - self._clock() >= SAFETY_FACTOR * self._round_s:
            return True
        has_later_traces = self._rounds >= PLANNED_LOOKS[0] and self._promised_s < inf
        traces_s = TRACES_SHARE * self._promised_s if has_later_traces else 0.0
        return self._remaining_s >= self._round_s + traces_s

    def has_time_for_traces(self, arms: int) -> bool:
        return self._remaining_s >= arms * self._trace_s

    def count_traceable_arms(self, arms: int, *, rounds: int) -> int:
        """Return how many of `arms` arms can be traced `rounds` times in the remaining time, at least PAIR of them.

        Before the first trace, whose time is the estimate, all can. It is better to explain one change than to trace
        several too few times.
        """
        each_s = rounds * self._trace_s
        # without arms or rounds there is nothing to divide the time by
        if arms <= PAIR or each_s == 0.0 or self._remaining_s >= arms * each_s:
            return arms
        return max(PAIR, int(self._remaining_s / each_s))

    @contextlib.contextmanager
    def time_repeats(self) -> Iterator[None]:
        """Count the time inside the `with` as that of repeating disturbed samples."""
        began = self._clock()
        yield
        self._repeats_s += self._clock() - began

    @contextlib.contextmanager
    def time_round(self) -> Iterator[None]:
        """Count the time inside the `with`, without its repeats, as that of a round."""
        began, repeats_s = self._clock(), self._repeats_s
        yield
        self._rounds += 1
        # without the repeats, because the next round may do without them
        self._round_s = self._clock() - began - (self._repeats_s - repeats_s)

    @contextlib.contextmanager
    def time_traces(self, arms: int) -> Iterator[None]:
        """Count the time inside the `with` as that of the first traces of `arms` arms."""
        began = self._clock()
        yield
        self._trace_s = (self._clock() - began) / max(1, arms)

    @property
    def _remaining_s(self) -> float:
        return self._promised_s - (self._clock() - self._began)
