"""The figures that a set of timings is large enough for, and whether launches fall into two groups."""

from collections.abc import Sequence
from math import log1p, sqrt

import numpy as np

from farm.rules.comparing import statistics
from farm.rules.comparing.percentile_counts import MIN_TIMINGS

# Engelman and Hartigan (JASA 64, 1969) split sorted values where the most variance lies between the two sides. Evenly
# spread values have no groups, and 3/4 of their variance lies between the sides; with few values chance adds to that.
# CHANCE_SHARE was fitted to the 99th percentile of the share over simulated even spreads of 8 to 100 values.
EVEN_SHARE = 0.75
CHANCE_SHARE = 0.62
MIN_SAMPLES = 8
MIN_IN_A_MODE = 2
MODES_APART = 0.05


def summarise_timings(timings: Sequence[float]) -> dict[str, float | None]:
    """Compute `mean`, `std`, `min`, `max` and percentiles such as `p50`, by name and in the unit of the timings.

    A percentile that needs more timings is None, and so is the std of a single one. Percentiles interpolate linearly;
    std divides by n − 1. Raises ValueError when there is no timing or one is not finite.
    """
    values = np.asarray(timings, dtype=np.float64)
    if not len(values) or not np.isfinite(values).all():
        raise ValueError(f"{len(values)} timings, not all finite or none at all, cannot be summed up.")
    summary: dict[str, float | None] = {
        "mean": float(values.mean()),
        "std": float(values.std(ddof=1)) if len(values) > 1 else None,
        "min": float(values.min()),
        "max": float(values.max()),
    }
    for name, count in MIN_TIMINGS.items():
        summary[name] = float(np.percentile(values, float(name[1:]))) if len(values) >= count else None
    return summary


def is_bimodal(samples: Sequence[float]) -> bool:
    """Whether positive samples, one for each process launch, fall into two groups at least 5 % apart.

    They do when splitting their logarithms in two, with two samples or more on either side, explains more of the
    variance than it would for evenly spread values; with fewer than 8 samples the answer is always no.
    """
    logs = np.sort(statistics.logarithms(np.asarray(samples, dtype=np.float64)))
    count = len(logs)
    spread = float(((logs - logs.mean()) ** 2).sum()) if count >= MIN_SAMPLES else 0.0
    if spread == 0.0:
        return False
    below = np.arange(MIN_IN_A_MODE, count - MIN_IN_A_MODE + 1)
    sums = np.cumsum(logs)
    apart = (sums[-1] - sums[below - 1]) / (count - below) - sums[below - 1] / below
    shares = below * (count - below) / count * apart**2 / spread
    best = int(np.argmax(shares))
    return bool(shares[best] > EVEN_SHARE + CHANCE_SHARE / sqrt(count) and apart[best] >= log1p(MODES_APART))
