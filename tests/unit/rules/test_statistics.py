"""The arithmetic under the verdicts, against SciPy and against counting every possibility."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from farm.rules.comparing import statistics


def rows(count: int, rounds: int, *, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.2, 1.0, size=(count, rounds))


@pytest.mark.parametrize("rounds", [2, 5, 8, 24])
def test_the_t_test_gives_what_scipy_gives(rounds: int) -> None:
    ratios = rows(20, rounds)
    np.testing.assert_allclose(statistics.paired_t_p(ratios), stats.ttest_1samp(ratios, 0.0, axis=1).pvalue, rtol=1e-9)


def test_a_row_without_spread_is_certain_unless_it_is_all_zero() -> None:
    assert statistics.paired_t_p(np.array([[0.0] * 8, [0.5] * 8])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("rounds", [6, 12, 16, 24])
def test_the_signed_rank_test_gives_what_scipy_gives(rounds: int) -> None:
    ratios = rows(20, rounds)
    ours = statistics.signed_rank_p(ratios, statistics.walsh_averages(ratios))
    np.testing.assert_allclose(ours, stats.wilcoxon(ratios, axis=1, method="exact").pvalue, rtol=1e-9)


@pytest.mark.parametrize(
    "row",
    [
        [1.0, 1.0, 2.0, -1.0, 3.0, -2.0, 0.5],
        [0.0, 0.0, 1.0, 2.0, 3.0, -4.0, 5.0],
        [0.0, 1.0, 1.0, 1.0, 1.0],
        [0.0, 0.0, 0.0],
    ],
)
def test_ties_and_zeros_are_judged_over_every_flip_of_their_own_signs(row: list[float]) -> None:
    ratios = np.array([row])
    sizes = np.abs(row)
    ranks = stats.rankdata(sizes) * (sizes > 0.0)
    flips = [float(np.dot(ranks, flip)) for flip in product([0, 1], repeat=len(row))]
    observed = float(ranks[np.array(row) > 0.0].sum())
    below = np.mean(np.array(flips) <= observed)
    above = np.mean(np.array(flips) >= observed)
    p = statistics.signed_rank_p(ratios, statistics.walsh_averages(ratios))[0]
    assert p == pytest.approx(min(1.0, 2.0 * min(below, above)))


def test_a_zero_never_makes_a_change_look_more_certain() -> None:
    row = [1.0, 2.0, 3.0, 4.0, 5.0, -0.5]
    without, with_zero = np.array([row]), np.array([[*row, 0.0]])
    p = [statistics.signed_rank_p(ratios, statistics.walsh_averages(ratios))[0] for ratios in (without, with_zero)]
    assert p[1] >= p[0]


def test_the_location_is_the_median_of_all_averages_of_two() -> None:
    row = rows(1, 7)[0]
    averages = [(row[i] + row[j]) / 2.0 for i in range(7) for j in range(i, 7)]
    located = statistics.hodges_lehmann(statistics.walsh_averages(row[np.newaxis]))
    assert located[0] == pytest.approx(np.median(averages))


@pytest.mark.parametrize(("rounds", "level"), [(8, 0.95), (12, 0.975), (24, 0.95)])
def test_the_interval_holds_exactly_the_shifts_that_the_test_does_not_reject(rounds: int, level: float) -> None:
    row = rows(1, rounds, seed=3)
    averages = statistics.walsh_averages(row)
    rank, attained = statistics.interval_rank(rounds, level)
    low, high = averages[0, rank - 1], averages[0, -rank]

    def p(shift: float) -> float:
        moved = row - shift
        return float(statistics.signed_rank_p(moved, statistics.walsh_averages(moved))[0])

    assert attained == level
    for inside, outside in ((low + 1e-9, low - 1e-9), (high - 1e-9, high + 1e-9)):
        assert p(inside) > 1.0 - level
        assert p(outside) <= 1.0 - level


@pytest.mark.parametrize("rounds", [2, 3, 5])
def test_too_few_rounds_for_the_level_get_the_widest_interval_and_its_true_level(rounds: int) -> None:
    assert statistics.interval_rank(rounds, 0.95) == (1, pytest.approx(1.0 - 2.0 ** (1 - rounds)))


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    ratios = np.random.default_rng(4).normal(0.0, 1.0, size=(20_000, 12))
    averages = statistics.walsh_averages(ratios)
    rank, _ = statistics.interval_rank(12, 0.95)
    covered = np.mean((averages[:, rank - 1] <= 0.0) & (averages[:, -rank] >= 0.0))
    assert 0.95 <= covered < 0.965


@pytest.mark.parametrize(("olds", "news"), [(2, 2), (5, 5), (8, 12), (24, 24)])
def test_the_rank_sum_test_gives_what_scipy_gives(olds: int, news: int) -> None:
    rng = np.random.default_rng(5)
    old, new = rng.normal(size=olds), rng.normal(0.5, 1.0, size=news)
    expected = stats.mannwhitneyu(old, new, method="exact").pvalue
    assert statistics.rank_sum_p(old, new) == pytest.approx(expected)


def test_tied_samples_are_judged_over_every_split_of_their_own_ranks() -> None:
    old, new = np.array([1.0, 2.0, 2.0, 3.0]), np.array([2.0, 3.0, 3.0, 4.0, 5.0])
    ranks = stats.rankdata(np.concatenate([old, new]))
    sums = np.array([sum(chosen) for chosen in combinations(ranks, len(new))])
    observed = ranks[len(old) :].sum()
    expected = min(1.0, 2.0 * min(np.mean(sums <= observed), np.mean(sums >= observed)))
    assert statistics.rank_sum_p(old, new) == pytest.approx(expected)


def test_the_rank_sum_interval_matches_its_test() -> None:
    tail = stats.mannwhitneyu(np.arange(8), np.arange(8) + 100.0, method="exact").pvalue
    assert statistics.rank_sum_interval_rank(8, 8, 1.0 - tail)[0] == 1
    assert statistics.rank_sum_interval_rank(3, 3, 0.95) == (1, pytest.approx(0.9))


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (10, 10), (3, 125), (700, 100_000)])
def test_the_interval_of_a_rate_gives_what_scipy_gives(hits: int, trials: int) -> None:
    expected = stats.binomtest(hits, trials).proportion_ci(0.95, method="exact")
    assert statistics.clopper_pearson(hits, trials) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(("hits", "trials"), [(1, 0), (-1, 5), (6, 5)])
def test_what_is_no_rate_is_refused(hits: int, trials: int) -> None:
    with pytest.raises(ValueError, match=f"{hits} of {trials} is not a rate"):
        statistics.clopper_pearson(hits, trials)


def test_equal_ratios_are_ties_whatever_the_unit() -> None:
    old = np.array([0.1, 0.3, 0.7, 1.1, 1.3])
    ratios = [statistics.log_ratios(unit * old, unit * old * 1.05) for unit in (1.0, 1e-3, 1e6)]
    assert len(np.unique(np.concatenate(ratios))) == 1
