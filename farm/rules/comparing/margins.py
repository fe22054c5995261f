"""What a node's own A/A comparisons say: its noise floor, its margin, and how often it would have raised a false alarm.

The same cell is measured in two arms of one block; every difference between them is noise. Estimates are ln(ratio).
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
# of other metrics than latency; beyond it nothing could be called
MAX_METRIC_MARGIN = 0.9
ENOUGH_COMPARISONS = 100
PERCENTILE = 99.0


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """How much identical launches differ: s, the standard deviation of ln(new / old) over rounds, as a fraction.

    `comparisons` A/A pairs stand behind it. `smallest_detectable` has the change seen after each number of rounds.
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
    """The margin of a class of cells: the 99th percentile of |ln ratio| over A/A comparisons with as many rounds.

    Two per cent until there are a hundred of them, never less, and never more than five.
    """
    if len(estimates) < ENOUGH_COMPARISONS:
        return MARGIN
    sizes = np.abs(np.asarray(estimates, dtype=np.float64))
    return float(np.clip(expm1(np.percentile(sizes, PERCENTILE)), MIN_MARGIN, MAX_MARGIN))


def metric_margins(estimates: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The margins of further metrics, by their own A/A comparisons: the 99th percentile of |ln ratio|, of each that has
    a hundred of them; without the cap, which is latency's."""
    sizes = {name: np.abs(found) for name, found in estimates.items() if len(found) >= ENOUGH_COMPARISONS}
    return {
        name: float(np.clip(expm1(np.percentile(own, PERCENTILE)), MIN_MARGIN, MAX_METRIC_MARGIN))
        for name, own in sizes.items()
    }


def noise_floor(log_ratios: Sequence[Sequence[float]], *, margin: float = MARGIN) -> NoiseFloor | None:
    """The noise floor from the dᵢ of each A/A comparison, pooled by degrees of freedom; None without any of two rounds.

    Comparisons differ in their own location, so that each is measured against its own mean.
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


def false_alarms(verdicts: Sequence[str]) -> FalseAlarms | None:
    return rate_of(sum(map(is_change, verdicts)), len(verdicts))


def rate_of(alarms: int, comparisons: int) -> FalseAlarms | None:
    """The rate of so many alarms among so many A/A comparisons, with its interval; None for none."""
    if not comparisons:
        return None
    low, high = statistics.clopper_pearson(alarms, comparisons)
    return FalseAlarms(alarms, comparisons, alarms / comparisons, low, high)
