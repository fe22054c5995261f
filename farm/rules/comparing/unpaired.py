"""Compares two sets of launches that were not measured side by side, by the exact Mann-Whitney test and its interval.

The ratio includes whatever else changed on the machine between the two sets. A page therefore shows it without a
verdict, or labelled as different hardware, and it never raises an alert.
"""

from math import exp, sqrt

import numpy as np

from farm.contract.verdicts import Verdict
from farm.rules.comparing import power, special, statistics
from farm.rules.comparing.comparisons import INTERVAL_LEVEL, TOTAL_LEVEL, Comparison
from farm.rules.comparing.look_levels import EQUALITY_LEVEL, PLANNED_LOOKS
from farm.rules.comparing.statistics import Floats

EXACT_TEST = "exact Mann-Whitney"
NORMAL_TEST = "Mann-Whitney, normal approximation"

# With more samples in all, the exact distribution takes too long for its small difference from the normal one.
EXACT_UP_TO = 100


def judge(old: Floats, new: Floats, *, margin: float) -> Comparison:
    """Judge positive samples of two arms in one look, significant at p < .01.

    `rounds_used` of the result is the number of samples of the smaller arm. Each arm has at least two samples. Of more
    than 100 samples in all the test and the interval are normal approximations.
    """
    logs = statistics.logarithms(old), statistics.logarithms(new)
    differences = np.sort(np.subtract.outer(logs[1], logs[0]), axis=None)
    location = float(np.median(differences))
    low, high, level = _find_interval(differences, len(old), len(new), INTERVAL_LEVEL)
    is_exact = len(old) + len(new) <= EXACT_UP_TO
    p = statistics.rank_sum_p(*logs) if is_exact else _compute_normal_p(*logs)
    rounds = min(len(old), len(new))
    # s such that s / √rounds is the standard error of the difference of the two means
    deviation = sqrt(rounds * sum(float(arm.var(ddof=1)) / len(arm) for arm in logs))
    inner = _find_interval(differences, len(old), len(new), EQUALITY_LEVEL)
    verdict = _choose_verdict(location, inner, p=p, margin=margin)
    later = [more for more in PLANNED_LOOKS if more > rounds]
    needed = rounds if verdict != "undecided" else power.rounds_to_decide(location, deviation, margin, looks=later)
    return Comparison(
        verdict=verdict,
        ratio=exp(location),
        ci_low=exp(low),
        ci_high=exp(high),
        ci_level=level,
        rounds_used=rounds,
        p=p,
        margin=margin,
        smallest_detectable=power.smallest_detectable(deviation, rounds, margin),
        rounds_needed=needed,
        test=EXACT_TEST if is_exact else NORMAL_TEST,
        p_total=p,
    )


def _choose_verdict(location: float, inner: tuple[float, float, float], *, p: float, margin: float) -> Verdict:
    edge = statistics.log_edge(margin)
    low, high, level = inner
    if p < TOTAL_LEVEL and abs(location) > edge:
        return "slower" if location > 0.0 else "faster"
    return "equal" if level >= EQUALITY_LEVEL and -edge < low and high < edge else "undecided"


def _find_interval(differences: Floats, olds: int, news: int, level: float) -> tuple[float, float, float]:
    """Find low and high of an interval on the log scale, and the level that it really has."""
    if olds + news <= EXACT_UP_TO:
        rank, level = statistics.rank_sum_interval_rank(olds, news, level)
    else:
        spread = sqrt(olds * news * (olds + news + 1) / 12.0)
        rank = max(1, int(olds * news / 2.0 - float(special.ndtri(0.5 + level / 2.0)) * spread))
    return float(differences[rank - 1]), float(differences[-rank]), level


def _compute_normal_p(old: Floats, new: Floats) -> float:
    """Compute the two-sided p with corrections for ties and continuity (Lehmann, Nonparametrics, 1975)."""
    both = np.concatenate([old, new])
    _, group, counts = np.unique(both, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[group]
    total = len(both)
    ties = float((counts.astype(np.float64) ** 3 - counts).sum()) / (total * (total - 1.0))
    spread = sqrt(len(old) * len(new) / 12.0 * max(0.0, total + 1.0 - ties))
    excess = max(0.0, abs(float(ranks[len(old) :].sum()) - len(new) * (total + 1.0) / 2.0) - 0.5)
    return 1.0 if spread == 0.0 else min(1.0, 2.0 * float(special.ndtr(-excess / spread)))
