"""The trimmed sign-flip test, against counting every flip, and what trimming may and may not do."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.rules.comparing import flips, statistics


def row(pairs: int, *, change: float = 0.0, spread: float = 0.02, seed: int = 1) -> np.ndarray:
    return np.round(np.random.default_rng(seed).normal(change, spread, size=pairs), statistics.DECIMALS)


def counted(values: np.ndarray) -> float:
    """p by counting all flips."""
    units = np.rint(values * 10.0**statistics.DECIMALS).astype(np.int64)
    sums = np.array([int(np.dot(np.abs(units), signs)) for signs in product([-1, 1], repeat=len(units))])
    return float(np.mean(np.abs(sums) >= abs(int(units.sum()))))


@pytest.mark.parametrize("pairs", [1, 2, 7, 10, 13])
@pytest.mark.parametrize("change", [0.0, 0.01, -0.03])
def test_p_is_the_share_of_flips_with_as_large_a_sum(pairs: int, change: float) -> None:
    values = row(pairs, change=change)
    assert flips.sign_flip_p(values) == pytest.approx(counted(values))


@pytest.mark.parametrize(
    "values",
    [[0.0] * 10, [0.01] * 10, [0.01, -0.01] * 5, [0.02, 0.01, 0.01, -0.02, 0.0, 0.03, 0.01, -0.01, 0.02, 0.01]],
)
def test_ties_and_zeros_are_counted_like_any_other_sum(values: list[float]) -> None:
    assert flips.sign_flip_p(np.array(values)) == pytest.approx(counted(np.array(values)))


def test_pairs_above_three_times_the_median_size_are_set_aside_whatever_their_sign() -> None:
    values = np.array([[0.01] * 10 + [0.03, -0.0301]])
    assert flips.mark_counting_pairs(values).tolist() == [[True] * 11 + [False]]


@given(st.lists(st.floats(-1.0, 1.0, allow_nan=False), min_size=10, max_size=24), st.data())
def test_trimming_knows_no_sign(values: list[float], data: st.DataObject) -> None:
    signs = data.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=len(values), max_size=len(values)))
    one, other = np.array([values]), np.array([values]) * np.array(signs)
    assert flips.mark_counting_pairs(one).tolist() == flips.mark_counting_pairs(other).tolist()


def test_a_row_that_would_keep_fewer_than_ten_pairs_keeps_all() -> None:
    values = np.array([[0.0] * 9 + [1.0] * 3, [0.01] * 12])
    assert flips.mark_counting_pairs(values).all()


# of a clock in coarse steps: the chance goes in steps too
COARSE = np.array([0.01] * 2 + [0.02] * 6 + [0.03] * 5)


@pytest.mark.parametrize(
    ("values", "level"),
    [
        *((row(pairs, change=0.03, seed=3), level) for pairs, level in ((10, 0.95), (16, 0.975), (24, 0.95))),
        (COARSE, 0.95),
    ],
)
def test_the_interval_ends_where_the_test_begins_to_reject(values: np.ndarray, level: float) -> None:
    low, high = flips.sign_flip_interval(values, level)
    reach = high - low
    for inside, outside in ((low + 0.01 * reach, low - 0.01 * reach), (high - 0.01 * reach, high + 0.01 * reach)):
        assert not flips.rejects_change(values, inside, level=level)
        assert flips.rejects_change(values, outside, level=level)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    ratios = np.random.default_rng(4).normal(0.0, 1.0, size=(2_000, 12))
    ends = [flips.sign_flip_interval(one, 0.95) for one in ratios]
    assert 0.935 <= np.mean([low <= 0.0 <= high for low, high in ends]) <= 0.97


def test_pairs_of_one_ratio_have_an_interval_without_width() -> None:
    assert flips.sign_flip_interval(np.array([0.05] * 12), 0.95) == (0.05, 0.05)
