"""What a launch does once in some milliseconds: judged by the fastest launches of both arms too."""

from math import comb

import numpy as np
import pytest

from farm.rules.comparing import fastest, verdicts
from farm.rules.comparing.comparisons import TOTAL_LEVEL, Comparison

# one launch of each arm is slow by half, so that the t test sees nothing
OLD = (5.0, 5.1, 7.9, 5.2, 5.05, 5.15, 5.3, 5.25)
NEW = (6.1, 6.3, 6.2, 6.0, 9.2, 6.15, 6.25, 6.05)
MARGIN = 0.1


def judged(old: tuple[float, ...], new: tuple[float, ...], *, margin: float = MARGIN) -> Comparison:
    (found,) = fastest.judge_many([list(zip(old, new, strict=True))], margin=margin)
    return found


def test_a_fifth_more_is_called_after_eight_rounds_with_a_slow_launch_in_each_arm() -> None:
    found = judged(OLD, NEW)
    assert verdicts.judge_pairs(list(zip(OLD, NEW, strict=True)), margin=MARGIN).verdict == "undecided"
    assert (found.verdict, found.test, found.rounds_used, found.rounds_needed) == ("slower", fastest.TEST, 8, 8)
    # seven old launches come before the first new one
    assert found.p == pytest.approx(2 * comb(8, 7) / comb(16, 7))
    assert found.p_total < TOTAL_LEVEL
    # the fastest new launch against the five fastest old ones, and the other way around
    assert (found.ci_low, found.ci_high) == pytest.approx((6.0 / 5.2, 6.2 / 5.0))
    assert found.ci_low < found.ratio < found.ci_high


def test_swapped_arms_mirror_the_verdict() -> None:
    there, back = judged(OLD, NEW), judged(NEW, OLD)
    assert (back.verdict, back.p) == ("faster", there.p)
    assert (back.ratio, back.ci_low, back.ci_high) == pytest.approx(
        (1 / there.ratio, 1 / there.ci_high, 1 / there.ci_low)
    )


@pytest.mark.parametrize(
    ("old", "new", "margin"),
    [
        # five old ones before the first new one are no evidence
        ((5.0, 5.1, 7.9, 7.2, 5.05, 5.15, 5.3, 7.25), NEW, MARGIN),
        # more than a fifth is of no consequence
        (OLD, NEW, 0.3),
        (OLD[:7], NEW[:7], MARGIN),
        (OLD, OLD, 0.0),
    ],
)
def test_what_the_fastest_do_not_show_is_left_to_the_pairs(
    old: tuple[float, ...], new: tuple[float, ...], margin: float
) -> None:
    found = judged(old, new, margin=margin)
    assert found.test != fastest.TEST
    assert found.verdict in ("undecided", "equal")


def test_the_clearer_test_of_the_first_look_is_shown() -> None:
    calm = tuple(100.0 + 0.1 * number for number in range(8))
    assert judged(calm, tuple(2.0 * one for one in calm)).test == verdicts.T_TEST


def test_the_first_look_is_final_however_many_rounds_follow() -> None:
    found = judged(OLD * 3, NEW[:8] + OLD * 2)
    assert (found.verdict, found.rounds_used) == ("slower", 8)


def test_things_that_do_not_differ_are_called_in_one_of_a_hundred_over_all_looks() -> None:
    """With a margin of 0, and one launch in ten slow: 24 rounds have three quarters of it at the first look."""
    dice = np.random.default_rng(4)
    noise = 0.1 * dice.normal(size=(2000, 24, 2)) + np.where(dice.random((2000, 24, 2)) < 0.1, 0.5, 0.0)
    found = fastest.judge_many(list(np.exp(noise)), margin=0.0)
    assert sum(one.verdict in ("slower", "faster") for one in found) <= 1.5 * TOTAL_LEVEL * len(found)
    assert sum(one.test == fastest.TEST for one in found) > 0
