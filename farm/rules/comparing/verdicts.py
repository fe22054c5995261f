"""From launches to a verdict: slower, faster, equal or undecided, with a known false-alarm rate.

One pair is one round: a process launch of the old arm and one of the new, in time order; the unit is
dᵢ = ln(newᵢ / oldᵢ). The rule looks at the prefixes of 8, 12, 16 and 24 rounds and stops at the first that decides:

slower, faster   significant, and the estimate beyond the margin;
equal            the 97.5 % interval inside ± margin;
undecided        otherwise.

Significant means paired t p < .002, or from 12 rounds on exact Wilcoxon signed-rank p < .003: the t test alone is blind
when launches are bimodal, the rank test alone cannot reach its level in 8 rounds. Margins lie on the log scale at
± ln(1 + margin), so that swapping the arms mirrors the verdict. docs/measuring.md has false-alarm rate and power.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, isfinite
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farm.rules.comparing import multiplicity, power, statistics, unpaired
from farm.rules.comparing.comparisons import EQUALITY_LEVEL, INTERVAL_LEVEL, MARGIN, TOTAL_LEVEL, Comparison, Verdict
from farm.rules.comparing.power import LOOKS
from farm.rules.comparing.statistics import Floats

T_LEVEL = 0.002
RANK_LEVEL = 0.003
RANK_FROM_ROUNDS = 12
T_TEST = "paired t"
RANK_TEST = "exact Wilcoxon signed-rank"

# So many comparisons at a time keep their Walsh averages in the processor's cache.
CHUNK = 2048

# Far outside any unit of time; the ratio of two samples within is finite too.
SMALLEST_SAMPLE = 1e-100
LARGEST_SAMPLE = 1e100

# The places of a verdict in an array.
_VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_SLOWER, _FASTER, _EQUAL, _UNDECIDED = range(4)


class _Look(NamedTuple):
    """Many comparisons after the same number of rounds, an element of each array for each of them."""

    rounds: int
    location: Floats
    low: Floats
    high: Floats
    deviation: Floats
    t_p: Floats
    rank_p: Floats
    verdict: NDArray[np.int64]


def judge_pairs(pairs: ArrayLike, *, margin: float = MARGIN, looks: Sequence[int] = LOOKS) -> Comparison:
    """The verdict on (old, new) samples in time order, both in one unit.

    Raises ValueError when there are fewer than two pairs or a sample is not a finite number above zero.
    """
    return judge_many([pairs], margin=margin, looks=looks)[0]


def judge_many(
    blocks: Sequence[ArrayLike], *, margin: float = MARGIN, looks: Sequence[int] = LOOKS
) -> list[Comparison]:
    """`judge_pairs` on each, in the same order; those with as many pairs are worked out together."""
    check_margin(margin)
    ratios = [_log_ratios_of(pairs) for pairs in blocks]
    by_rounds: dict[int, list[int]] = {}
    for place, row in enumerate(ratios):
        by_rounds.setdefault(len(row), []).append(place)
    judged: dict[int, Comparison] = {}
    for places in by_rounds.values():
        for start in range(0, len(places), CHUNK):
            chunk = places[start : start + CHUNK]
            rows = np.stack([ratios[place] for place in chunk])
            judged.update(zip(chunk, _judge_rows(rows, margin=margin, looks=looks), strict=True))
    return [judged[place] for place in range(len(ratios))]


def judge_unpaired(old: ArrayLike, new: ArrayLike, *, margin: float = MARGIN) -> Comparison:
    """The verdict on samples that were not measured side by side: for two files, or different hardware.

    Raises ValueError when an arm has fewer than two samples or one that is not a finite number above zero.
    """
    check_margin(margin)
    arms = [_samples_of(arm) for arm in (old, new)]
    return unpaired.judge(arms[0], arms[1], margin=margin)


def is_decided(comparison: Comparison) -> bool:
    """Whether more rounds of the same block would change nothing."""
    return comparison.verdict != "undecided"


def hold_across(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons of one matrix, slower and faster kept only where Benjamini-Hochberg holds over all of them."""
    holds = multiplicity.benjamini_hochberg([comparison.p_total for comparison in comparisons])
    return [
        comparison if held or comparison.verdict not in ("slower", "faster") else _withdrawn(comparison, comparisons)
        for comparison, held in zip(comparisons, holds, strict=True)
    ]


def check_margin(margin: float) -> None:
    """Raises ValueError unless the margin is a fraction from 0 up to, not including, 1."""
    if not (isfinite(margin) and 0.0 <= margin < 1.0):
        raise ValueError(f"The margin is {margin}: give a fraction from 0 up to 1, such as 0.02 for 2 %.")


def _withdrawn(comparison: Comparison, family: Sequence[Comparison]) -> Comparison:
    reason = (
        f"Alone it would be {comparison.verdict}; among {len(family)} comparisons its p of {comparison.p_total:.2g} "
        f"over all looks does not hold at {100 * multiplicity.LEVEL:.3g} % (Benjamini-Hochberg). Measure a fresh block."
    )
    return replace(comparison, verdict="undecided", reason=reason)


def _log_ratios_of(pairs: ArrayLike) -> Floats:
    values = np.asarray(pairs, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != 2:
        raise ValueError(f"Pairs have the shape {values.shape}: give a list of [old, new].")
    samples = _samples_of(values)
    return statistics.log_ratios(samples[:, 0], samples[:, 1])


def _samples_of(samples: ArrayLike) -> Floats:
    values = np.asarray(samples, dtype=np.float64)
    if len(values) < 2:
        raise ValueError(f"{len(values)} launch of an arm shows no spread: give at least 2, and 8 for a verdict.")
    if not ((values >= SMALLEST_SAMPLE) & (values <= LARGEST_SAMPLE)).all():
        raise ValueError("A sample is not a finite number above zero: give the p50 of each process launch.")
    return values


def _judge_rows(ratios: Floats, *, margin: float, looks: Sequence[int]) -> list[Comparison]:
    """Takes the looks in turn, each at the rows that none before has decided."""
    available = ratios.shape[1]
    due = [rounds for rounds in looks if rounds <= available] or [available]
    comparisons: dict[int, Comparison] = {}
    still_open = np.arange(len(ratios))
    for rounds in due:
        look = _look_at(ratios[still_open, :rounds], margin=margin, may_decide=rounds in looks)
        stays = look.verdict == _UNDECIDED
        for row in np.flatnonzero(~stays | (rounds == due[-1])):
            comparisons[int(still_open[row])] = _comparison_of(look, int(row), margin=margin, looks=looks)
        still_open = still_open[stays]
    return [comparisons[row] for row in range(len(ratios))]


def _look_at(ratios: Floats, *, margin: float, may_decide: bool) -> _Look:
    rounds = ratios.shape[1]
    averages = statistics.walsh_averages(ratios)
    location = statistics.hodges_lehmann(averages)
    t_p = statistics.paired_t_p(ratios)
    rank_p = statistics.signed_rank_p(ratios, averages) if rounds >= RANK_FROM_ROUNDS else np.ones(len(ratios))
    verdict = np.full(len(ratios), _UNDECIDED)
    if may_decide:
        edge = statistics.log_edge(margin)
        low, high = _interval(averages, rounds, EQUALITY_LEVEL)
        verdict[(low > -edge) & (high < edge)] = _EQUAL
        significant = (t_p < T_LEVEL) | (rank_p < RANK_LEVEL)
        verdict[significant & (location > edge)] = _SLOWER
        verdict[significant & (location < -edge)] = _FASTER
    low, high = _interval(averages, rounds, INTERVAL_LEVEL)
    return _Look(rounds, location, low, high, ratios.std(axis=1, ddof=1), t_p, rank_p, verdict)


def _interval(averages: Floats, rounds: int, level: float) -> tuple[Floats, Floats]:
    rank, _ = statistics.interval_rank(rounds, level)
    return averages[:, rank - 1], averages[:, -rank]


def _comparison_of(look: _Look, row: int, *, margin: float, looks: Sequence[int]) -> Comparison:
    verdict = _VERDICTS[look.verdict[row]]
    later = [more for more in looks if more > look.rounds]
    location, deviation = float(look.location[row]), float(look.deviation[row])
    needed: int | None = look.rounds
    if verdict == "undecided":
        needed = power.rounds_to_decide(location, deviation, margin, looks=later)
        if needed is None and look.rounds < looks[0]:
            needed = looks[-1]  # so few rounds do not know their own spread well enough to say that none will do
    candidates = ((look.t_p, T_LEVEL, T_TEST), (look.rank_p, RANK_LEVEL, RANK_TEST))
    excess, p, test = min((float(p[row]) / level, float(p[row]), test) for p, level, test in candidates)
    return Comparison(
        verdict=verdict,
        ratio=exp(location),
        ci_low=exp(float(look.low[row])),
        ci_high=exp(float(look.high[row])),
        ci_level=statistics.interval_rank(look.rounds, INTERVAL_LEVEL)[1],
        rounds_used=look.rounds,
        p=p,
        margin=margin,
        smallest_detectable=power.smallest_detectable(deviation, look.rounds, margin),
        rounds_needed=needed,
        test=test,
        p_total=min(1.0, TOTAL_LEVEL * excess),
    )
