"""Counts slow launches, processes that took much longer than most others of their arm, and compares both arms' counts.

Verdicts set slow launches aside, but users notice them. A change of their number is therefore reported too, if Fisher's
exact test (Fisher, 1935) finds it significant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from farm.rules.comparing import statistics

# A slow launch takes longer than the median of its arm by this part of it …
SLOWER_BY = 0.25
# … and by this many times the median distance of launches from it.
BEYOND_SPREAD = 6.0
LEVEL = 0.01


@dataclass(frozen=True, slots=True)
class SlowLaunches:
    """How many of the `launches` of each arm were slow; `p` is two-sided.

    `is_finding` says that the two numbers differ beyond chance.
    """

    baseline: int
    candidate: int
    launches: int
    p: float

    @property
    def is_finding(self) -> bool:
        return self.p < LEVEL


def count_slow_launches(pairs: Sequence[tuple[float, float]]) -> SlowLaunches:
    """Count the slow launches of both arms of a comparison; `pairs` are (old, new) samples, at least one.

    A launch is slow if it takes longer than the median of its arm by more than 25 %, and by more than six times the
    median distance of launches from it, on the log scale.
    """
    old, new = np.asarray(pairs, dtype=np.float64).T
    counts = _count_slow(old), _count_slow(new)
    return SlowLaunches(*counts, launches=len(pairs), p=fisher_p(*counts, launches=len(pairs)))


def fisher_p(first: int, second: int, *, launches: int) -> float:
    """Compute the two-sided p of Fisher's exact test on `first` and `second` hits, each among `launches`."""
    hits = first + second
    ways = [
        comb(launches, k) * comb(launches, hits - k) for k in range(max(0, hits - launches), min(hits, launches) + 1)
    ]
    observed = comb(launches, first) * comb(launches, second)
    return sum(way for way in ways if way <= observed) / sum(ways)


def describe_slow_launches(slow: SlowLaunches, *, set_aside: int, rounds: int) -> str:
    """Say how many rounds were set aside, and that slow launches became more or less frequent; empty without either."""
    parts = []
    if set_aside:
        parts.append(f"{set_aside} of {rounds} rounds fell on a slow launch and were set aside.")
    if slow.is_finding:
        more = "more" if slow.candidate > slow.baseline else "less"
        parts.append(
            f"Slow launches became {more} frequent: {slow.baseline} of {slow.launches} before, {slow.candidate} of "
            f"{slow.launches} after (Fisher's exact test, p = {slow.p:.2g})."
        )
    return " ".join(parts)


def _count_slow(samples: statistics.Floats) -> int:
    logs = statistics.logarithms(samples)
    distances = logs - np.median(logs)
    edge = max(statistics.log_edge(SLOWER_BY), BEYOND_SPREAD * float(np.median(np.abs(distances))))
    return int(np.count_nonzero(distances > edge))
