"""Verdicts on what a launch does once in some milliseconds, such as creating a session: by its fastest launches too.

Whatever else the machine does lies in such a time or not, so that one launch in ten is slow by half, and one of them
among eight rounds blinds the t test. The precedence test (Nelson, Technometrics 5, 1963) looks at the other end: where
nothing differs, the six fastest of sixteen launches are all of one arm in 0.7 % of comparisons, however slow others
are. It knows arms and no rounds: launches of a round must be no more alike, and no less, than those of two.

Three quarters of the 1 % are this test's, at the first look alone; the rule of `verdicts` has the rest.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import comb, exp, log

import numpy as np
from numpy.typing import ArrayLike

from farm.rules.comparing import look_levels, statistics, verdicts
from farm.rules.comparing.comparisons import INTERVAL_LEVEL, TOTAL_LEVEL, Comparison

TEST = "fastest launches"
SHARE = 0.75
ROUNDS = look_levels.LOOKS[0]


def judge_many(blocks: Sequence[ArrayLike], *, margin: float) -> list[Comparison]:
    """`verdicts.judge_many`, in which the fastest launches of the first look may decide too."""
    judged = verdicts.judge_many(blocks, margin=margin, share=1.0 - SHARE)
    return [
        _clearer(comparison, np.asarray(pairs, dtype=np.float64))
        for comparison, pairs in zip(judged, blocks, strict=True)
    ]


def chance(ahead: int, rounds: int) -> float:
    """Two-sided: how often so many of the fastest launches are all of one arm where nothing differs."""
    return 2.0 * comb(rounds, ahead) / comb(2 * rounds, ahead)


def _clearer(judged: Comparison, pairs: statistics.Floats) -> Comparison:
    """The first look by its fastest launches, where they decide it and more clearly."""
    if len(pairs) < ROUNDS:
        return judged
    old, new = np.sort(statistics.logarithms(pairs[:ROUNDS].T))
    olds, news = int((old < new[0]).sum()), int((new < old[0]).sum())
    p = chance(max(olds, news), ROUNDS)
    if p / SHARE > TOTAL_LEVEL or (judged.rounds_used == ROUNDS and judged.p_total <= p / SHARE):
        return judged
    first = verdicts.judge_pairs(pairs[:ROUNDS], margin=judged.margin)
    # where six rounds of eight say one thing, most averages of two do
    location = log(first.ratio)
    if abs(location) <= statistics.log_edge(judged.margin):
        return judged
    edge = next(count for count in range(ROUNDS) if chance(count, ROUNDS) <= 1.0 - INTERVAL_LEVEL) - 1
    return replace(
        first,
        verdict="slower" if olds > news else "faster",
        ci_low=exp(min(location, new[0] - old[edge])),
        ci_high=exp(max(location, new[edge] - old[0])),
        rounds_needed=ROUNDS,
        p=p,
        p_total=p / SHARE,
        test=TEST,
    )
