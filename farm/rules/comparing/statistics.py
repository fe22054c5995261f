"""Exact small-sample statistics on rows of log ratios: the arithmetic under every verdict.

Functions of `ratios` take a matrix of shape (comparisons, rounds) and work on all its rows at once, so that one
comparison on a page and a hundred thousand in a simulation run the same code. Logarithms are natural, and rounded to
12 decimals.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from math import log1p

import numpy as np
from numpy.typing import NDArray

from farm.rules.comparing import special

Floats = NDArray[np.float64]

# Logarithms are rounded to this many decimals, finer than any clock resolves. Without rounding, equal ratios would
# differ in their last bit, and ties would depend on the unit of the samples.
DECIMALS = 12


def logarithms(samples: Floats) -> Floats:
    return np.asarray(np.round(np.log(samples), DECIMALS), dtype=np.float64)


def log_edge(margin: float) -> float:
    return round(log1p(margin), DECIMALS)


def log_ratios(old: Floats, new: Floats) -> Floats:
    return np.asarray(np.round(np.log(new) - np.log(old), DECIMALS), dtype=np.float64)


def paired_t_p(ratios: Floats) -> Floats:
    """Compute the two-sided p of Student's paired t test for each row.

    A row without any spread has p = 1 when it is all zero and p = 0 otherwise.
    """
    rounds = ratios.shape[1]
    mean = ratios.mean(axis=1)
    error = ratios.std(axis=1, ddof=1) / np.sqrt(rounds)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0.0, 0.0, np.abs(mean) / error)
    p: Floats = 2.0 * special.stdtr(rounds - 1, -t)
    return p


def walsh_averages(ratios: Floats) -> Floats:
    """Compute (dᵢ + dⱼ) / 2 for i ≤ j, sorted, in the shape (comparisons, n (n + 1) / 2); NaN comes last."""
    first, second = _list_pairs(ratios.shape[1])
    averages = (ratios[:, first] + ratios[:, second]) / 2.0
    averages.sort(axis=1)
    return averages


def hodges_lehmann(ratios: Floats) -> Floats:
    """Compute the median of each row's Walsh averages (Hodges and Lehmann, 1963); NaNs in a row are left out."""
    averages = walsh_averages(ratios)
    return _compute_medians(averages, np.count_nonzero(~np.isnan(averages), axis=1))


def _compute_medians(ordered: Floats, counts: NDArray[np.int64]) -> Floats:
    """Compute the median of the first `counts` values of each ascending row."""
    rows = np.arange(len(ordered))
    both: Floats = (ordered[rows, (counts - 1) // 2] + ordered[rows, counts // 2]) / 2.0
    return both


def sign_p(ratios: Floats) -> Floats:
    """Compute the two-sided p of the sign test for each row; zeros are left out."""
    positive, negative = np.count_nonzero(ratios > 0.0, axis=1), np.count_nonzero(ratios < 0.0, axis=1)
    p: Floats = np.minimum(1.0, 2.0 * special.bdtr(np.minimum(positive, negative), positive + negative, 0.5))
    return p


@cache
def sign_interval_rank(rounds: int, level: float) -> tuple[int, float]:
    """Find which of the sorted ratios bound an interval: (k, level), the k-th from either end, counted from 1.

    The level is the one asked for, or that of the widest interval where so few rounds cannot give it.
    """
    tail = np.asarray(special.bdtr(np.arange(rounds + 1), rounds, 0.5), dtype=np.float64)
    return _find_bounding_rank(tail, level)


def rank_sum_p(old: Floats, new: Floats) -> float:
    """Compute the two-sided p of the exact Mann-Whitney test for two samples, with mid-ranks for ties."""
    ranks = _double_ranks(np.concatenate([old, new]))
    chances = _split_chances(tuple(sorted(ranks.tolist())), len(new))
    observed = int(ranks[len(old) :].sum())
    return min(1.0, 2.0 * min(float(chances[: observed + 1].sum()), float(chances[observed:].sum())))


def rank_sum_interval_rank(olds: int, news: int, level: float) -> tuple[int, float]:
    """Find which of the sorted differences new − old, of each new with each old sample, bound an interval.

    Return (k, level) as `sign_interval_rank` does.
    """
    chances = _split_chances(tuple(range(1, olds + news + 1)), news)
    return _find_bounding_rank(np.cumsum(chances[news * (news + 1) // 2 :]), level)


def clopper_pearson(hits: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Compute the exact two-sided interval of a rate after `hits` of `trials` (Clopper and Pearson, 1934).

    Raises ValueError unless 0 ≤ hits ≤ trials and trials ≥ 1.
    """
    if trials < 1 or not 0 <= hits <= trials:
        raise ValueError(f"{hits} of {trials} is not a rate: give 0 ≤ hits ≤ trials and at least one trial.")
    tail = (1.0 - level) / 2.0
    low = 0.0 if hits == 0 else float(special.betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits == trials else float(special.betaincinv(hits + 1, trials - hits, 1.0 - tail))
    return low, high


@cache
def _list_pairs(rounds: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    first, second = np.triu_indices(rounds)
    return first, second


def _find_bounding_rank(tail: Floats, level: float) -> tuple[int, float]:
    """Find the largest k with 2 P(statistic < k) ≤ 1 − level, at least 1, and the level that its interval has."""
    k = int(np.searchsorted(2.0 * tail, 1.0 - level, side="right"))
    return (k, level) if k >= 1 else (1, max(0.0, 1.0 - 2.0 * float(tail[0])))


def _double_ranks(values: Floats) -> NDArray[np.int64]:
    """Compute twice the mid-rank of each value: a whole number for ties too."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    doubled: NDArray[np.int64] = (2 * ends - counts + 1)[group]
    return doubled


def sign_flip_chances(ranks: Sequence[int]) -> Floats:
    """Compute the probability of each sum of ranks, indexed by the sum, if each rank is added with probability ½."""
    chances = np.ones(1)
    for rank in ranks:
        flipped = np.zeros(len(chances) + rank)
        flipped[: len(chances)] += chances
        flipped[rank:] += chances
        chances = flipped / 2.0
    return chances


@lru_cache(maxsize=256)
def _split_chances(ranks: Sequence[int], chosen: int) -> Floats:
    """Compute the chance of each rank sum when `chosen` of these ranks are drawn without replacement."""
    ways = np.zeros((chosen + 1, sum(ranks) + 1))
    ways[0, 0] = 1.0
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, :-rank].copy()
    chances: Floats = ways[chosen] / ways[chosen].sum()
    return chances
