"""From launches to a verdict: slower, faster, equal or undecided, with a known false-alarm rate.

One pair is one round: a process launch of the old arm and one of the new, in time order; the unit is
dᵢ = ln(newᵢ / oldᵢ). The rule looks at the prefixes of 8, 12, 16 and 24 rounds, where more are measured also at those
of 32, 48, 64, 96 …, and stops at the first that decides:

slower, faster   significant, and the estimate beyond the margin;
equal            the 97.5 % interval inside ± margin;
undecided        otherwise.

Significant means paired t p < .0016, or from 12 rounds on trimmed sign-flip p < .002, or from 24 rounds on sign test
p < .0016; later looks have a share of these levels (`look_levels`). The t test alone misses changes when a launch is
slow now and then; the sign-flip test sets such pairs aside (`flips`) but cannot reach its level in 8 rounds; the sign
test detects large changes where trimming leaves slow launches in. Estimate and interval are those of the pairs that
count; the interval inverts the test that is shown. Margins lie on the log scale at ± ln(1 + margin), so that swapping
the arms mirrors the verdict. docs/results.md has false-alarm rate and power.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import exp, isfinite, sqrt
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farm.base.grouping import group_by
from farm.contract.verdicts import Verdict
from farm.rules.comparing import flips, look_levels, power, special, statistics, unpaired
from farm.rules.comparing.comparisons import INTERVAL_LEVEL, MARGIN, TOTAL_LEVEL, Comparison
from farm.rules.comparing.look_levels import FLIP_FROM_ROUNDS, LOOKS, SIGN_FROM_ROUNDS, Levels
from farm.rules.comparing.statistics import Floats

T_TEST = "paired t"
FLIP_TEST = "trimmed sign-flip"
SIGN_TEST = "sign"

# This many comparisons of 24 rounds are computed at a time, so that their Walsh averages fit the processor's cache.
CHUNK = 2048
_AVERAGES = CHUNK * 300

# Samples outside these limits are refused. No unit of time comes near them, and ratios of samples within stay finite.
MIN_SAMPLE = 1e-100
MAX_SAMPLE = 1e100

# Verdicts in arrays are these indices.
_VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_SLOWER, _FASTER, _EQUAL, _UNDECIDED = range(4)


class _Look(NamedTuple):
    """Many comparisons after the same number of rounds, a row or an element of each array for each of them."""

    levels: Levels

    ratios: Floats
    counts: NDArray[np.bool_]
    location: Floats
    deviation: Floats
    t_p: Floats
    flip_p: Floats
    sign_p: Floats
    verdict: NDArray[np.int64]

    @property
    def rounds(self) -> int:
        return len(self.ratios[0])


def judge_pairs(pairs: ArrayLike, *, margin: float = MARGIN, looks: Sequence[int] = LOOKS) -> Comparison:
    """Judge (old, new) samples in time order, both in the same unit.

    Rounds after the deciding look, or after the last one, are ignored. Fewer rounds than the first look stay undecided.
    Raises ValueError for fewer than two pairs, for a sample that is not a finite number above zero, and as
    `check_margin` does.
    """
    return judge_many([pairs], margin=margin, looks=looks)[0]


def judge_many(
    blocks: Sequence[ArrayLike], *, margin: float = MARGIN, looks: Sequence[int] = LOOKS, share: float = 1.0
) -> list[Comparison]:
    """Judge many lists of pairs as `judge_pairs` does, in their order; lists of equal length are computed together.

    `share` is the part of each test's level to use, when another test has the rest. Raises ValueError as `judge_pairs`.
    """
    judged: dict[int, Comparison] = {}
    for place, look, row in _find_looks(blocks, margin=margin, looks=looks, share=share):
        judged[place] = _make_comparison(look, row, margin=margin, looks=looks)
    return [judged[place] for place in range(len(blocks))]


def count_verdicts(
    blocks: Sequence[ArrayLike], *, margin: float = MARGIN, looks: Sequence[int] = LOOKS
) -> Counter[Verdict]:
    """Count the verdicts that `judge_many` would give, faster, without intervals. Raises ValueError as it does."""
    return Counter(_VERDICTS[look.verdict[row]] for _, look, row in _find_looks(blocks, margin=margin, looks=looks))


def judge_unpaired(old: ArrayLike, new: ArrayLike, *, margin: float = MARGIN) -> Comparison:
    """Judge samples that were not measured side by side, such as those of two files or of different hardware.

    Raises ValueError when an arm has fewer than two samples or one that is not a finite number above zero, and as
    `check_margin` does.
    """
    check_margin(margin)
    arms = [_read_samples(arm) for arm in (old, new)]
    return unpaired.judge(arms[0], arms[1], margin=margin)


def is_decided(comparison: Comparison) -> bool:
    """Whether the verdict is anything but undecided: `not comparable` counts as decided."""
    return comparison.verdict != "undecided"


def check_margin(margin: float) -> None:
    """Raise ValueError unless the margin is a fraction from 0 to below 1."""
    if not (isfinite(margin) and 0.0 <= margin < 1.0):
        raise ValueError(f"The margin is {margin}: give a fraction from 0 up to 1, such as 0.02 for 2 %.")


def _compute_log_ratios(pairs: ArrayLike) -> Floats:
    values = np.asarray(pairs, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != 2:
        raise ValueError(f"Pairs have the shape {values.shape}: give a list of [old, new].")
    samples = _read_samples(values)
    return statistics.log_ratios(samples[:, 0], samples[:, 1])


def _read_samples(samples: ArrayLike) -> Floats:
    values = np.asarray(samples, dtype=np.float64)
    if len(values) < 2:
        raise ValueError(f"{len(values)} launch of an arm shows no spread: give at least 2, and 8 for a verdict.")
    if not ((values >= MIN_SAMPLE) & (values <= MAX_SAMPLE)).all():
        raise ValueError("A sample is not a finite number above zero: give the p50 of each process launch.")
    return values


def _find_looks(
    blocks: Sequence[ArrayLike], *, margin: float, looks: Sequence[int], share: float = 1.0
) -> Iterator[tuple[int, _Look, int]]:
    """Find the look that decides each block, or its last: yield the block's place, the look, and the row in it."""
    check_margin(margin)
    ratios = [_compute_log_ratios(pairs) for pairs in blocks]
    for places in group_by(range(len(ratios)), lambda place: len(ratios[place])).values():
        size = max(1, min(CHUNK, 2 * _AVERAGES // max(1, len(ratios[places[0]]) ** 2)))
        for start in range(0, len(places), size):
            chunk = places[start : start + size]
            rows = np.stack([ratios[place] for place in chunk])
            for member, look, row_of_look in _take_looks(rows, margin=margin, looks=looks, share=share):
                yield chunk[member], look, row_of_look


def _take_looks(
    ratios: Floats, *, margin: float, looks: Sequence[int], share: float
) -> Iterator[tuple[int, _Look, int]]:
    """Take the looks in turn, each at the rows that no look before has decided."""
    available = ratios.shape[1]
    due = [rounds for rounds in looks if rounds <= available] or [available]
    still_open = np.arange(len(ratios))
    for place, rounds in enumerate(due):
        levels = look_levels.levels_at(place, share=share)
        look = _take_look(ratios[still_open, :rounds], levels, margin=margin, may_decide=rounds in looks)
        stays = look.verdict == _UNDECIDED
        for row in np.flatnonzero(~stays | (rounds == due[-1])):
            yield int(still_open[row]), look, int(row)
        still_open = still_open[stays]


def _take_look(ratios: Floats, levels: Levels, *, margin: float, may_decide: bool) -> _Look:
    rounds, places = ratios.shape[1], range(len(ratios))
    trims = rounds >= FLIP_FROM_ROUNDS
    counts = flips.mark_counting_pairs(ratios) if trims else np.ones(ratios.shape, dtype=np.bool_)
    ones = np.ones(len(ratios))
    look = _Look(
        levels=levels,
        ratios=ratios,
        counts=counts,
        location=statistics.hodges_lehmann(np.where(counts, ratios, np.nan)),
        deviation=np.nanstd(np.where(counts, ratios, np.nan), axis=1, ddof=1),
        t_p=statistics.paired_t_p(ratios),
        flip_p=np.array([flips.sign_flip_p(ratios[row, counts[row]]) for row in places]) if trims else ones,
        sign_p=statistics.sign_p(ratios) if rounds >= SIGN_FROM_ROUNDS else ones,
        verdict=np.full(len(ratios), _UNDECIDED),
    )
    if may_decide:
        edge = statistics.log_edge(margin)
        significant = (look.t_p < levels.t) | (look.flip_p < levels.flip) | (look.sign_p < levels.sign)
        look.verdict[[abs(look.location[row]) < edge and _is_equal(look, row, edge) for row in places]] = _EQUAL
        look.verdict[significant & (look.location > edge)] = _SLOWER
        look.verdict[significant & (look.location < -edge)] = _FASTER
    return look


def _is_equal(look: _Look, row: int, edge: float) -> bool:
    """Whether the test whose interval is shown rejects a change as large as the margin on both sides."""
    if look.rounds < FLIP_FROM_ROUNDS:
        low, high = _compute_t_interval(look.ratios[row], look.levels.equality)
        return -edge < low and high < edge
    counting = look.ratios[row, look.counts[row]]
    return all(flips.rejects_change(counting, change, level=look.levels.equality) for change in (-edge, edge))


def _choose_test(look: _Look, row: int) -> tuple[float, float, str]:
    """Choose the test to show: the most significant where the look decided, else t or, from 12 rounds on, sign-flip.

    Return p divided by the test's level, p, and the test's name.
    """
    levels = look.levels
    tests = [(look.t_p, levels.t, T_TEST), (look.flip_p, levels.flip, FLIP_TEST), (look.sign_p, levels.sign, SIGN_TEST)]
    results = [(float(p[row]) / level, float(p[row]), test) for p, level, test in tests]
    if look.verdict[row] in (_SLOWER, _FASTER):
        return min(results)
    return results[1] if look.rounds >= FLIP_FROM_ROUNDS else results[0]


def _compute_interval(look: _Look, row: int, test: str) -> tuple[float, float, float]:
    """Compute low, high and level of the 95 % interval, by inverting the test that is shown."""
    ratios = look.ratios[row]
    if test == SIGN_TEST:
        rank, level = statistics.sign_interval_rank(look.rounds, INTERVAL_LEVEL)
        ordered = np.sort(ratios)
        return float(ordered[rank - 1]), float(ordered[-rank]), level
    if test == FLIP_TEST:
        return *flips.sign_flip_interval(ratios[look.counts[row]], INTERVAL_LEVEL), INTERVAL_LEVEL
    return *_compute_t_interval(ratios, INTERVAL_LEVEL), INTERVAL_LEVEL


def _compute_t_interval(row: Floats, level: float) -> tuple[float, float]:
    reach = float(row.std(ddof=1)) / sqrt(len(row)) * float(special.stdtrit(len(row) - 1, (1.0 + level) / 2.0))
    return float(row.mean()) - reach, float(row.mean()) + reach


def _make_comparison(look: _Look, row: int, *, margin: float, looks: Sequence[int]) -> Comparison:
    verdict = _VERDICTS[look.verdict[row]]
    # before the first look the spread is too uncertain to say that no number of rounds will decide
    planned = looks if look.rounds >= looks[0] else looks[: look_levels.PLANNED]
    later = [more for more in planned if look.rounds < more <= power.MAX_ROUNDS]
    location, deviation = float(look.location[row]), float(look.deviation[row])
    needed: int | None = look.rounds
    if verdict == "undecided":
        needed = power.rounds_to_decide(location, deviation, margin, looks=later)
        if needed is None and look.rounds < looks[0]:
            needed = planned[-1]
    excess, p, test = _choose_test(look, row)
    low, high, level = _compute_interval(look, row, test)
    return Comparison(
        verdict=verdict,
        ratio=exp(location),
        ci_low=exp(min(low, location)),
        ci_high=exp(max(high, location)),
        ci_level=level,
        rounds_used=look.rounds,
        p=p,
        margin=margin,
        smallest_detectable=power.smallest_detectable(deviation, look.rounds, margin),
        rounds_needed=needed,
        test=test,
        p_total=min(1.0, TOTAL_LEVEL * excess),
        set_aside=look.rounds - int(look.counts[row].sum()),
    )
