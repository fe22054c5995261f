"""Shares with intervals, and whether a variant lost accuracy on the same samples."""

import numpy as np
import pytest

from farm.rules.quality import accuracy


def outcomes(both: int, only_old: int, only_new: int, neither: int) -> tuple[list[bool], list[bool]]:
    pairs = [(True, True)] * both + [(True, False)] * only_old + [(False, True)] * only_new + [(False, False)] * neither
    return [old for old, _ in pairs], [new for _, new in pairs]


def test_a_share_has_its_wilson_interval() -> None:
    found = accuracy.estimate_share([True] * 81 + [False] * 182)
    # Newcombe (1998), table I: 81 of 263
    assert (round(found.ci_low, 4), round(found.ci_high, 4)) == (0.2553, 0.3662)


def test_a_share_needs_samples() -> None:
    with pytest.raises(ValueError, match="no samples"):
        accuracy.estimate_share([])


def test_a_paired_difference_has_newcombes_interval() -> None:
    # his example of 36, 12, 2 and 0 of 50, method 10
    found = accuracy.compare_shares(*outcomes(36, 2, 12, 0))
    assert found.value == pytest.approx(0.2)
    assert (found.ci_low, found.ci_high) == pytest.approx((0.0569, 0.3404), abs=1e-4)


def test_mcnemars_test_is_exact() -> None:
    found = accuracy.compare_shares(*outcomes(500, 12, 2, 26))
    assert found.p == pytest.approx(0.012939453125)
    assert (found.change, found.only_old, found.only_new) == ("lower", 12, 2)


def test_the_same_answers_show_no_difference() -> None:
    found = accuracy.compare_shares(*outcomes(100, 0, 0, 5))
    assert (found.value, found.p, found.change) == (0.0, 1.0, "no difference shown")
    assert found.ci_low <= 0 <= found.ci_high


def test_perfect_answers_have_an_interval_too() -> None:
    found = accuracy.compare_shares(*outcomes(50, 0, 0, 0))
    assert found.ci_low < 0 < found.ci_high


def test_a_gain_is_higher() -> None:
    assert accuracy.compare_shares(*outcomes(10, 0, 20, 5)).change == "higher"


def test_errors_are_compared_pair_by_pair() -> None:
    old = np.linspace(1, 2, 50)
    found = accuracy.compare_errors(old, old + 0.1 + 0.01 * np.sin(np.arange(50)))
    assert found.change == "higher"
    assert found.ci_low < 0.1 < found.ci_high
    assert (found.only_old, found.only_new) == (None, None)


def test_errors_without_spread_need_no_test() -> None:
    assert accuracy.compare_errors([1.0, 2.0], [1.0, 2.0]).change == "no difference shown"
    assert accuracy.compare_errors([1.0, 2.0], [2.0, 3.0]).p == 0.0


@pytest.mark.parametrize(("old", "new"), [([True], [True, False]), ([], [])])
def test_samples_that_cannot_be_paired_are_refused(old: list[bool], new: list[bool]) -> None:
    with pytest.raises(ValueError, match="cannot be paired"):
        accuracy.compare_shares(old, new)


def test_one_error_shows_no_spread() -> None:
    with pytest.raises(ValueError, match="at least two"):
        accuracy.compare_errors([1.0], [2.0])


def test_the_pareto_front_holds_what_nothing_beats() -> None:
    points = [(2.0, 0.98), (1.0, 0.97), (1.5, 0.96), (3.0, 0.98), (1.0, 0.95)]
    assert accuracy.pareto_front(points) == [1, 0]


def test_errors_of_no_sample_are_refused() -> None:
    with pytest.raises(ValueError, match="no samples to judge"):
        accuracy.estimate_mean_error([])


def test_what_is_beaten_in_everything_is_left_out_and_equals_stay() -> None:
    costs = [(1.0, 5.0, -0.9), (2.0, 5.0, -0.9), (0.5, 9.0, -0.8), (1.0, 5.0, -0.9)]
    assert accuracy.find_undominated(costs) == [0, 2, 3]
