"""Slow launches are counted apart from the verdict, and a change of their share is a finding of its own."""

import numpy as np
import pytest
from scipy import stats

from farm.rules.comparing import slow_launches


def pairs(slow_before: int, slow_after: int, *, launches: int = 24) -> list[tuple[float, float]]:
    samples = np.exp(0.01 * np.random.default_rng(2).normal(size=(launches, 2)))
    samples[:slow_before, 0] *= 1.7
    samples[launches - slow_after :, 1] *= 1.7
    return [(float(old), float(new)) for old, new in samples]


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 7), (7, 0), (3, 5), (24, 24), (1, 12)])
def test_p_is_that_of_fishers_exact_test(first: int, second: int) -> None:
    expected = stats.fisher_exact([[first, 24 - first], [second, 24 - second]]).pvalue
    assert slow_launches.fisher_p(first, second, launches=24) == pytest.approx(expected)


def test_launches_far_above_the_median_of_their_arm_are_counted() -> None:
    counted = slow_launches.count_slow_launches(pairs(2, 3))
    assert (counted.baseline, counted.candidate, counted.launches) == (2, 3, 24)
    assert not counted.is_finding


def test_a_new_runtime_with_more_slow_launches_is_a_finding_though_its_median_is_the_same() -> None:
    counted = slow_launches.count_slow_launches(pairs(0, 9))
    assert counted.is_finding
    assert slow_launches.describe_slow_launches(counted, set_aside=9, rounds=24) == (
        "9 of 24 rounds fell on a slow launch and were set aside. Slow launches became more frequent: 0 of 24 before, "
        "9 of 24 after (Fisher's exact test, p = 0.0016)."
    )


def test_fewer_slow_launches_are_a_finding_too() -> None:
    assert "became less frequent" in slow_launches.describe_slow_launches(
        slow_launches.count_slow_launches(pairs(9, 0)), set_aside=0, rounds=24
    )


def test_launches_that_differ_widely_from_each_other_are_not_called_slow() -> None:
    samples = np.exp(0.3 * np.random.default_rng(5).normal(size=(24, 2)))
    counted = slow_launches.count_slow_launches([(float(old), float(new)) for old, new in samples])
    assert counted.baseline + counted.candidate <= 1


def test_where_nothing_is_slow_nothing_is_said() -> None:
    assert (
        slow_launches.describe_slow_launches(slow_launches.count_slow_launches(pairs(0, 0)), set_aside=0, rounds=24)
        == ""
    )
