"""What the steps from value to value show of a series: how large its noise is, and whether its level wanders.

Noise comes back: two in three steps of white noise change direction (Bienaymé, 1874), and more than one in two whatever
its autocorrelation. Values may also be *held*, the same until something moves them: counts, sizes, times in coarse
units. Held values are no new readings, so that the spread about a level says nothing; noise is then the size of the
moves times how often they come.

Where held values go on in the same direction more often than they turn, the level *wanders*: it is the sum of its
moves. A shift has to stand out from what the other moves add up to within as many values.
"""

from math import inf, sqrt

import numpy as np

from farm.rules.comparing import special
from farm.rules.comparing.statistics import Floats

# A difference that no clock shows.
FLOOR = 1e-12
# Robust standard deviation of normal noise from the median size of its steps.
SIGMA_OF_STEPS = 1.4826 / 2**0.5
# Values are held where at least this share of them repeats the one before: measured noise seldom does.
HELD = 0.25
# A series wanders where turns are fewer than half of the moves by so many standard errors: at least seven moves.
WANDERING_SIGMAS = 2.5


def estimate_noise(values: Floats) -> float:
    """Estimate the standard deviation of the noise from the median step.

    Where values are held, many steps are 0: there it is at least the median move times the root of their share.
    """
    sizes = np.abs(np.diff(values))
    typical = float(np.median(sizes))
    moves = sizes[sizes > FLOOR]
    if _are_held(sizes) and len(moves):
        typical = max(typical, float(np.median(moves)) * sqrt(len(moves) / len(sizes)))
    return SIGMA_OF_STEPS * typical


class Walk:
    """How far the moves of a series carry its level, where it wanders."""

    def __init__(self, values: Floats) -> None:
        steps = np.diff(values)
        self._squares = steps**2 if _is_wandering(steps) else np.zeros(0)
        self._total = float(self._squares.sum())

    def p(self, size: float, *, start: int, place: int, stop: int) -> float:
        """Compute the two-sided p of a jump of this size at `place` by the other moves; 0 where nothing wanders.

        The variance of the difference between the means before and after is a third of their values, in squared steps.
        """
        if not len(self._squares):
            return 0.0
        others = max(0.0, self._total - float(self._squares[place - 1])) / len(self._squares)
        spread = sqrt(others * (stop - start) / 3.0)
        return 2.0 * float(special.ndtr(-abs(size) / spread if spread > FLOOR else -inf))


def _are_held(sizes: Floats) -> bool:
    return float(np.mean(sizes <= FLOOR)) >= HELD


def _is_wandering(steps: Floats) -> bool:
    moves = steps[np.abs(steps) > FLOOR]
    if not (_are_held(np.abs(steps)) and len(moves)):
        return False
    turns = int((moves[1:] * moves[:-1] < 0.0).sum())
    pairs = len(moves) - 1
    return turns < pairs / 2.0 - WANDERING_SIGMAS * sqrt(pairs) / 2.0
