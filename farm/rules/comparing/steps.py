"""Reads the noise of a series off the steps between its values, and whether its level wanders.

Two in three steps of white noise change direction (Bienaymé, 1874), and more than one in two whatever its
autocorrelation. Counts, sizes and times in coarse units often *repeat*: they stay the same until something moves them.
The spread of repeated values about a level says nothing. The noise is then estimated from the *moves*, the steps that
are not 0: from their size and their frequency.

Where repeated values move on in the same direction more often than they turn back, the level *wanders*: it is the sum
of its moves. A level shift then has to be larger than what the other moves add up to within as many values.
"""

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from farm.rules.comparing import special
from farm.rules.comparing.statistics import Floats

# A difference that is too small for any clock.
FLOOR = 1e-12
# The median step of normal noise times this is a robust estimate of its standard deviation.
SIGMA_OF_STEPS = 1.4826 / 2**0.5
# Values repeat where at least this share of them equals the one before: measured noise seldom does.
REPEATED_SHARE = 0.25
# A series wanders if fewer than half of its moves turn back, by this many standard errors: at least eight moves.
WANDERING_SIGMAS = 2.5


class Cut(NamedTuple):
    """A place where the level may change, at index `at`, between the cuts before and after it."""

    start: int
    at: int
    stop: int


def estimate_noise(values: Floats) -> float:
    """Estimate the standard deviation of the noise from the median step.

    Where values repeat, it is at least the median move times the root of the share of moves among the steps.
    """
    sizes = np.abs(np.diff(values))
    typical = float(np.median(sizes))
    moves = sizes[sizes > FLOOR]
    if _are_repeated(sizes) and len(moves):
        typical = max(typical, float(np.median(moves)) * sqrt(len(moves) / len(sizes)))
    return SIGMA_OF_STEPS * typical


class Wandering:
    """How far the level of a series wanders by its moves; not at all unless values repeat and moves seldom turn."""

    def __init__(self, values: Floats) -> None:
        steps = np.diff(values)
        self._squares = steps**2 if _is_wandering(steps) else np.zeros(0)
        self._total = float(self._squares.sum())

    def p_of_jump(self, size: float, cut: Cut) -> float:
        """Compute the two-sided p of a jump of this size at the cut, given the other moves; 0 where nothing wanders.

        The variance of the difference between the means of both sides is the mean squared step times a third of the
        number of values.
        """
        if not len(self._squares):
            return 0.0
        others = max(0.0, self._total - float(self._squares[cut.at - 1])) / len(self._squares)
        spread = sqrt(others * (cut.stop - cut.start) / 3.0)
        return 2.0 * float(special.ndtr(-abs(size) / spread if spread > FLOOR else -inf))


def _are_repeated(sizes: Floats) -> bool:
    return float(np.mean(sizes <= FLOOR)) >= REPEATED_SHARE


def _is_wandering(steps: Floats) -> bool:
    moves = steps[np.abs(steps) > FLOOR]
    if not (_are_repeated(np.abs(steps)) and len(moves)):
        return False
    turns = int((moves[1:] * moves[:-1] < 0.0).sum())
    pairs = len(moves) - 1
    return turns < pairs / 2.0 - WANDERING_SIGMAS * sqrt(pairs) / 2.0
