"""Estimates which changes a number of rounds can detect, and how many rounds it takes to detect a change.

Changes, margins and s, the standard deviation of ln(new / old) over rounds, are fractions. docs/results.md,
"Power", has the share of simulated blocks in which these estimates hold.
"""

from collections.abc import Sequence
from math import sqrt

from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.comparing.statistics import log_edge

# The most rounds of a block: farm.contract.blocks.BlockOrder allows no more.
MAX_ROUNDS = 96

# An estimate falls beyond the margin in 95 of 100 blocks when the change is this many standard errors further out …
BEYOND_MARGIN = 1.7
# … and is mostly significant when the change itself is this many standard errors.
SIGNIFICANT = 4.6
# How many standard errors a change takes to be significant in 95 of 100 blocks, by number of rounds, from simulation.
# With few rounds the t test is strict.
SURELY_SIGNIFICANT = {8: 7.3, 12: 6.0, 16: 5.5, 24: 5.1}
# Half the width of the interval that must lie within the margin, in standard errors of the mean: 97.5 % up to 24
# rounds, 99.94 % after 96.
EQUALITY_WIDTH = 2.5
LATER_EQUALITY_WIDTH = 3.5


def smallest_detectable(deviation: float, rounds: int, margin: float) -> float:
    """Estimate the smallest change, as a fraction, that this many rounds call slower or faster, by a rule of thumb.

    It is detected in 95 of 100 blocks while s / √rounds stays under 0.3 %. With more noise the t test often misses it:
    it is detected in half of the blocks at 8 rounds, in 87 of 100 at 24.
    """
    error = deviation / sqrt(rounds)
    return max(margin + BEYOND_MARGIN * error, SIGNIFICANT * error)


def rounds_for(change: float, deviation: float, margin: float, *, looks: Sequence[int] = PLANNED_LOOKS) -> int | None:
    """Return after how many rounds a look calls a change of this size in 95 of 100 blocks; None when no look does.

    A change within the margin is never called slower or faster, whatever the rounds.
    """
    return next((rounds for rounds in looks if _compute_sure_change(deviation, rounds, margin) <= abs(change)), None)


def rounds_to_decide(
    location: float, deviation: float, margin: float, *, looks: Sequence[int] = PLANNED_LOOKS
) -> int | None:
    """Return after how many rounds a look is expected to decide if the estimate so far holds; None when no look is.

    `location` is the estimate of ln(new / old). Beyond the margin the look decides slower or faster, within it equal.
    """
    inside = log_edge(margin) - abs(location)
    if inside <= 0.0:
        promises = ((rounds, smallest_detectable(deviation, rounds, margin)) for rounds in looks)
        return next((rounds for rounds, change in promises if change <= abs(location)), None)
    widths = ((rounds, EQUALITY_WIDTH if rounds <= PLANNED_LOOKS[-1] else LATER_EQUALITY_WIDTH) for rounds in looks)
    return next((rounds for rounds, width in widths if width * deviation / sqrt(rounds) <= inside), None)


def _compute_sure_change(deviation: float, rounds: int, margin: float) -> float:
    looks = [look for look in SURELY_SIGNIFICANT if look <= rounds]
    factor = SURELY_SIGNIFICANT[max(looks, default=min(SURELY_SIGNIFICANT))]
    error = deviation / sqrt(rounds)
    return max(margin + BEYOND_MARGIN * error, factor * error)
