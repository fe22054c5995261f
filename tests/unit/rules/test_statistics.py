"""The arithmetic under the verdicts, against SciPy and against counting every possibility."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from farm.rules.comparing import signed_ranks, statistics


def rows(count: int, rounds: int, *, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.2, 1.0, size=(count, rounds))


@pytest.mark.parametrize("rounds", [2, 5, 8, 24])
def test_the_t_test_gives_what_scipy_gives(rounds: int) -> None:
    ratios = rows(20, rounds)
    np.testing.assert_allclose(statistics.paired_t_p(ratios), stats.ttest_1samp(ratios, 0.0, axis=1).pvalue, rtol=1e-9)


def test_a_row_without_spread_is_certain_unless_it_is_all_zero() -> None:
    assert statistics.paired_t_p(np.array([[0.0] * 8, [0.5] * 8])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("rounds", [2, 7, 24])
def test_the_sign_test_gives_what_scipy_gives(rounds: int) -> None:
    ratios = rows(20, rounds)
    positive = np.count_nonzero(ratios > 0.0, axis=1)
    expected = [stats.binomtest(int(hits), rounds).pvalue for hits in positive]
    np.testing.assert_allclose(statistics.sign_p(ratios), expected, rtol=1e-9)


def test_a_zero_speaks_for_neither_side() -> None:
    without, with_zeros = np.array([[1.0, 2.0, 3.0, -1.0]]), np.array([[1.0, 2.0, 3.0, -1.0, 0.0, 0.0]])
    assert statistics.sign_p(without)[0] == statistics.sign_p(with_zeros)[0]
    assert statistics.sign_p(np.zeros((1, 5)))[0] == 1.0


@pytest.mark.parametrize(("rounds", "level"), [(24, 0.95), (12, 0.95)])
def test_the_interval_of_the_sign_test_holds_what_it_does_not_reject(rounds: int, level: float) -> None:
    row = np.sort(rows(1, rounds, seed=3))
    rank, attained = statistics.sign_interval_rank(rounds, level)
    low = row[0, rank - 1]
    assert attained == level
    assert statistics.sign_p(row - (low + 1e-9))[0] > 1.0 - level
    assert statistics.sign_p(row - (low - 1e-9))[0] <= 1.0 - level


def test_the_location_is_the_median_of_all_averages_of_two() -> None:
    row = rows(1, 7)[0]
    averages = [(row[i] + row[j]) / 2.0 for i in range(7) for j in range(i, 7)]
    assert statistics.hodges_lehmann(row[np.newaxis])[0] == pytest.approx(np.median(averages))


def test_a_pair_that_does_not_count_has_no_part_in_the_location() -> None:
    row = rows(1, 7)
    padded = np.concatenate([row, [[np.nan]]], axis=1)
    assert statistics.hodges_lehmann(padded)[0] == statistics.hodges_lehmann(row)[0]


@pytest.mark.parametrize(("rounds", "level"), [(8, 0.95), (12, 0.975), (24, 0.95)])
def test_the_interval_holds_exactly_the_shifts_that_the_test_does_not_reject(rounds: int, level: float) -> None:
    row = rows(1, rounds, seed=3)
    averages = statistics.walsh_averages(row)
    rank, attained = signed_ranks.interval_rank(rounds, level)
    low, high = averages[0, rank - 1], averages[0, -rank]

    def p(shift: float) -> float:
        return float(stats.wilcoxon(row[0] - shift, method="exact").pvalue)

    assert attained == level
    for inside, outside in ((low + 1e-9, low - 1e-9), (high - 1e-9, high + 1e-9)):
        assert p(inside) > 1.0 - level
        assert p(outside) <= 1.0 - level


@pytest.mark.parametrize("rounds", [2, 3, 5])
def test_too_few_rounds_for_the_level_get_the_widest_interval_and_its_true_level(rounds: int) -> None:
    assert signed_ranks.interval_rank(rounds, 0.95) == (1, pytest.approx(1.0 - 2.0 ** (1 - rounds)))


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    ratios = np.random.default_rng(4).normal(0.0, 1.0, size=(20_000, 12))
    averages = statistics.walsh_averages(ratios)
    rank, _ = signed_ranks.interval_rank(12, 0.95)
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
