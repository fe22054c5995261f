"""Verdicts on what each launch does once, in a few milliseconds, such as creating a session.

In one launch of ten, other work of the machine makes so short a step slower by half. One such launch in eight rounds is
enough for the t test to miss a change. The precedence test (Nelson, Technometrics 5, 1963) compares the fastest
launches instead: where nothing differs, the six fastest of sixteen launches belong to the same arm in 0.7 % of
comparisons, however slow the others are. It ignores rounds, so two launches of one round must be no more and no less
alike than two of different rounds.

The precedence test has three quarters of the 1 % level, at the first look only. The tests of `verdicts` have the rest.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import comb, exp, log

import numpy as np
from numpy.typing import ArrayLike

from farm.rules.comparing import look_levels, statistics, verdicts
from farm.rules.comparing.comparisons import INTERVAL_LEVEL, TOTAL_LEVEL, Comparison

TEST = "fastest launches"
# the part of the level that this test has
SHARE = 0.75
ROUNDS = look_levels.LOOKS[0]


def judge_many(blocks: Sequence[ArrayLike], *, margin: float) -> list[Comparison]:
    """Judge blocks of pairs as `verdicts.judge_many` does, or by the fastest launches of the first look.

    These decide where they are significant and the estimate lies beyond the margin, unless the other tests stopped at
    that look with a p as small.
    """
    judged = verdicts.judge_many(blocks, margin=margin, share=1.0 - SHARE)
    return [
        _judge_fastest(comparison, np.asarray(pairs, dtype=np.float64))
        for comparison, pairs in zip(judged, blocks, strict=True)
    ]


def precedence_p(fastest: int, rounds: int) -> float:
    """Compute the two-sided p of the precedence test: that the `fastest` quickest launches are all of the same arm.

    Each arm has one launch in each of `rounds`.
    """
    return 2.0 * comb(rounds, fastest) / comb(2 * rounds, fastest)


def _judge_fastest(judged: Comparison, pairs: statistics.Floats) -> Comparison:
    """Judge the first look by its fastest launches, where they decide it, and more clearly than `judged` does."""
    if len(pairs) < ROUNDS:
        return judged
    old, new = np.sort(statistics.logarithms(pairs[:ROUNDS].T))
    old_fastest, new_fastest = int((old < new[0]).sum()), int((new < old[0]).sum())
    p = precedence_p(max(old_fastest, new_fastest), ROUNDS)
    if p / SHARE > TOTAL_LEVEL or (judged.rounds_used == ROUNDS and judged.p_total <= p / SHARE):
        return judged
    first = verdicts.judge_pairs(pairs[:ROUNDS], margin=judged.margin)
    # Where the fastest launches decide, the estimate has the same direction, but it may lie within the margin.
    location = log(first.ratio)
    if abs(location) <= statistics.log_edge(judged.margin):
        return judged
    edge = next(count for count in range(ROUNDS) if precedence_p(count, ROUNDS) <= 1.0 - INTERVAL_LEVEL) - 1
    return replace(
        first,
        verdict="slower" if old_fastest > new_fastest else "faster",
        ci_low=exp(min(location, new[0] - old[edge])),
        ci_high=exp(max(location, new[edge] - old[0])),
        rounds_needed=ROUNDS,
        p=p,
        p_total=p / SHARE,
        test=TEST,
    )
