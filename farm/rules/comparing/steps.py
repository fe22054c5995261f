"""What the steps from row to row say of a series: how large its noise is, and whether its level wanders.

A value that is measured anew differs from the one before, and noise comes back: of steps of white noise two in three
turn round (Bienaymé, 1874), and more than one in two whatever the noise remembers. Values may also be *held*, the same
until something moves them: counts, sizes, balances, times in coarse units. Held rows are no readings of their own, so
that the spread about a level says nothing; noise is then the size of the moves times how often they come.

Where held values move on in one direction more often than they turn round, the level *wanders*: it is the sum of its
moves. A shift has to stand out from what the other moves come to within as many rows.
"""

from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from farm.rules.comparing import special

Floats = NDArray[np.float64]

# A difference that no clock shows.
FLOOR = 1e-12
# Robust standard deviation of normal noise from the median size of its steps.
SIGMA_OF_STEPS = 1.4826 / 2**0.5
# Values are held where so large a share of rows repeats the row before: noise that a clock sees seldom does.
HELD = 0.25
# Turns fewer than half by so many standard errors are no noise's: seven moves on in one direction are the fewest.
WANDERING_SIGMAS = 2.5


def noise_of(values: Floats) -> float:
    """The standard deviation of the noise, from the median step.

    Where values are held many steps are 0 and their median says little: there it is at least the median move times the
    root of how often one comes.
    """
    sizes = np.abs(np.diff(values))
    typical = float(np.median(sizes))
    moves = sizes[sizes > FLOOR]
    if _are_held(sizes) and len(moves):
        typical = max(typical, float(np.median(moves)) * sqrt(len(moves) / len(sizes)))
    return SIGMA_OF_STEPS * typical


class Walk:
    """How far the moves of a series carry its level; nowhere unless it wanders."""

    def __init__(self, values: Floats) -> None:
        steps = np.diff(values)
        self._squares = steps**2 if _is_wandering(steps) else np.zeros(0)
        self._total = float(self._squares.sum())

    def p(self, size: float, *, start: int, place: int, stop: int) -> float:
        """The two-sided p of a jump of that size at `place`, if the other moves went on as they do; 0 without a walk.

        The means of the levels before and after differ by a variance of a third of their rows, in squared steps.
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
