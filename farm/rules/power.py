"""What a number of rounds can see: the smallest detectable change, and the rounds that a wished one takes.

The constants were fitted to the sequential rule of `farm.rules.verdicts` by simulation; docs/measuring.md, "Power",
shows how well they hold. Changes, margins and s, the standard deviation of ln(new / old) over rounds, are fractions.
"""

from collections.abc import Sequence
from math import log1p, sqrt

LOOKS = (8, 12, 16, 24)

# An estimate falls beyond the margin in 95 of 100 blocks when the change is this many standard errors further out …
BEYOND_MARGIN = 1.7
# … and is significant when the change itself is this many standard errors.
SIGNIFICANT = 4.6
# Half the width of the 97.5 % signed-rank interval, in standard errors of the mean, at 12 to 24 rounds.
EQUALITY_WIDTH = 2.5


def smallest_detectable(deviation: float, rounds: int, margin: float) -> float:
    """The smallest change that so many rounds call slower or faster about 95 times in 100."""
    error = deviation / sqrt(rounds)
    return max(margin + BEYOND_MARGIN * error, SIGNIFICANT * error)


def rounds_for(change: float, deviation: float, margin: float, *, looks: Sequence[int] = LOOKS) -> int | None:
    """The first look that sees a change of that size, or None when none within the maximum does.

    A change within the margin is never called slower or faster, whatever the rounds.
    """
    return next((rounds for rounds in looks if smallest_detectable(deviation, rounds, margin) <= abs(change)), None)


def rounds_to_decide(location: float, deviation: float, margin: float, *, looks: Sequence[int] = LOOKS) -> int | None:
    """The first look expected to decide, if what was seen so far holds; None when none is.

    `location` is the estimate on the log scale. Beyond the margin the wait is for slower or faster, else for equal.
    """
    inside = log1p(margin) - abs(location)
    if inside < 0.0:
        return rounds_for(location, deviation, margin, looks=looks)
    return next((rounds for rounds in looks if EQUALITY_WIDTH * deviation / sqrt(rounds) <= inside), None)
