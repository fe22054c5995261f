"""Estimates the noise floor, the margin and the rate of false alarms of a node from its A/A comparisons.

In an A/A comparison the same cell is measured in two arms of a block, so that every difference is noise. Arguments
named `estimates` hold the ln(ratio) of such comparisons.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import expm1, sqrt

import numpy as np

from farm.rules.comparing import power, statistics
from farm.rules.comparing.comparisons import MARGIN
from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.wording.vocabulary import is_change

MIN_MARGIN = 0.02
MAX_MARGIN = 0.05
# The largest margin of metrics other than latency; beyond it no change would ever be reported.
MAX_METRIC_MARGIN = 0.9
MIN_COMPARISONS = 100
PERCENTILE = 99.0


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """How much identical launches differ: `deviation` is s, the standard deviation of ln(new / old) over rounds.

    `comparisons` is how many A/A comparisons it was estimated from. `smallest_detectable` is the smallest change, as a
    fraction, that is detected after each planned number of rounds.
    """

    deviation: float
    comparisons: int
    margin: float
    smallest_detectable: dict[int, float]


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """How many A/A comparisons were called slower or faster, and the 95 % Clopper-Pearson interval of their rate."""

    alarms: int
    comparisons: int
    rate: float
    low: float
    high: float


def margin_from_null(estimates: Sequence[float]) -> float:
    """Compute a margin, as a fraction: the 99th percentile of |ln ratio| over A/A comparisons, from 2 % to 5 %.

    With fewer than a hundred comparisons it is 2 %.
    """
    if len(estimates) < MIN_COMPARISONS:
        return MARGIN
    sizes = np.abs(np.asarray(estimates, dtype=np.float64))
    return float(np.clip(expm1(np.percentile(sizes, PERCENTILE)), MIN_MARGIN, MAX_MARGIN))


def metric_margins(estimates: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Compute margins by name of metric as `margin_from_null` does for latency, but from 2 % to 90 %.

    Metrics with fewer than a hundred A/A comparisons are left out.
    """
    return {
        name: float(np.clip(expm1(np.percentile(np.abs(ratios), PERCENTILE)), MIN_MARGIN, MAX_METRIC_MARGIN))
        for name, ratios in estimates.items()
        if len(ratios) >= MIN_COMPARISONS
    }


def estimate_noise_floor(log_ratios: Sequence[Sequence[float]], *, margin: float = MARGIN) -> NoiseFloor | None:
    """Estimate the noise floor from the ln(new / old) of each round of each A/A comparison.

    Comparisons are pooled by degrees of freedom, each about its own mean. None where none has two rounds.
    """
    usable = [np.asarray(rounds, dtype=np.float64) for rounds in log_ratios if len(rounds) >= 2]
    if not usable:
        return None
    squares = sum(float(((rounds - rounds.mean()) ** 2).sum()) for rounds in usable)
    deviation = sqrt(squares / sum(len(rounds) - 1 for rounds in usable))
    return NoiseFloor(
        deviation=deviation,
        comparisons=len(usable),
        margin=margin,
        smallest_detectable={rounds: power.smallest_detectable(deviation, rounds, margin) for rounds in PLANNED_LOOKS},
    )


def count_false_alarms(verdicts: Sequence[str]) -> FalseAlarms | None:
    """Count the verdicts with a direction among all of these; None where there are none."""
    return estimate_rate(sum(map(is_change, verdicts)), len(verdicts))


def estimate_rate(alarms: int, comparisons: int) -> FalseAlarms | None:
    """Estimate the rate of false alarms with its interval; None where there were no comparisons."""
    if not comparisons:
        return None
    low, high = statistics.clopper_pearson(alarms, comparisons)
    return FalseAlarms(alarms, comparisons, alarms / comparisons, low, high)
