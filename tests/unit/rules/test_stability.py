"""“Unstable” is said only where a verdict is at risk: a table of what was measured and whether it is said."""

from typing import Any

import pytest

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.planning.estimates import OUT_OF_TIME
from farm.rules.presenting.stability import (
    NO_ROUNDS,
    describe_rounds_needed,
    find_unstable,
    mark_continued,
    may_more_rounds_decide,
)
from tests.documents import make_cell, make_comparison

UNDECIDED = ("undecided", 1.01, 0.95, 1.07)
LARGE = ("slower", 1.24, 1.21, 1.26)
SMALL = ("slower", 1.04, 1.03, 1.05)
FASTER = ("faster", 0.5, 0.49, 0.51)
JUST_FASTER = ("faster", 0.9, 0.86, 0.97)
EQUAL = ("equal", 1.001, 0.995, 1.006)
NOTHING = ("not comparable", None, None, None)
OTHER_HARDWARE = ("not comparable", 3.0, 2.0, 4.0)


def cell(name: str = "c1", **changes: Any) -> Cell:
    return make_cell(name, **{"p50_ms": 1.0, "p50_ci_ms": (0.99, 1.01), "is_stable": False, **changes})


def compared(verdict: str, ratio: float | None, low: float | None, high: float | None, *, of: str = "c1") -> Comparison:
    ends = {"ci_low": low, "ci_high": high}
    return make_comparison(verdict, ratio, baseline="c0", candidate=of, smallest_detectable=0.03, **ends)


@pytest.mark.parametrize(
    ("made", "is_said"),
    [
        ((UNDECIDED,), True),
        ((SMALL,), True),
        ((JUST_FASTER,), True),
        ((LARGE, UNDECIDED), True),
        ((LARGE,), False),
        ((FASTER,), False),
        ((EQUAL,), False),
        ((OTHER_HARDWARE,), False),
        ((NOTHING,), False),
        ((), False),
    ],
)
def test_a_cell_that_did_not_settle_is_unstable_where_its_verdicts_are_at_risk(
    made: tuple[tuple[str, float, float, float], ...], is_said: bool
) -> None:
    assert find_unstable([cell()], [compared(*one) for one in made]) == ({"c1"} if is_said else set())


@pytest.mark.parametrize("is_stable", [True, None])
def test_a_cell_that_settled_or_did_not_say_is_never_called_unstable(is_stable: bool | None) -> None:
    assert find_unstable([cell(is_stable=is_stable, p50_ci_ms=None)], [compared(*UNDECIDED)]) == set()


@pytest.mark.parametrize(("interval", "is_said"), [((0.9, 1.1), True), (None, True), ((0.96, 1.04), False)])
def test_alone_a_cell_is_judged_by_its_own_interval(interval: tuple[float, float] | None, is_said: bool) -> None:
    assert find_unstable([cell(p50_ci_ms=interval)], []) == ({"c1"} if is_said else set())


def test_a_cell_without_latency_is_at_risk_and_comparisons_of_others_are_not_its_own() -> None:
    unmeasured = cell().model_copy(update={"p50_ms": None})
    assert find_unstable([unmeasured, cell(name="c2")], [compared(*UNDECIDED, of="c9")]) == {"c1"}


@pytest.mark.parametrize(
    ("made", "is_use"),
    [
        ([], True),
        ([make_comparison()], True),
        ([make_comparison("undecided", 1.01, rounds_needed=24)], True),
        ([make_comparison("undecided", None)], True),
        ([make_comparison("undecided", 1.0, smallest_detectable=0.03)], False),
        (
            [
                make_comparison("undecided", 1.0, smallest_detectable=0.03),
                make_comparison("undecided", 1.01, rounds_needed=24),
            ],
            True,
        ),
        (
            [
                make_comparison("undecided", 1.0, smallest_detectable=0.03),
                make_comparison("undecided", 1.01, axis="twin", rounds_needed=24),
            ],
            False,
        ),
    ],
)
def test_more_rounds_are_no_use_where_all_that_is_undecided_stays_so(made: list[Comparison], is_use: bool) -> None:
    assert may_more_rounds_decide(made) == is_use


def test_a_pair_that_is_measured_on_advises_no_rounds_that_are_asked_for() -> None:
    advised = compared(*UNDECIDED).model_copy(update={"rounds_needed": 14, "reason": f"Noisy. {OUT_OF_TIME}"})
    told = mark_continued(advised, max_rounds=16)
    assert (told.rounds_needed, told.reason) == (None, "Noisy. It is measured on, up to 16 rounds.")


def test_a_pair_that_is_decided_stays_as_it_is() -> None:
    decided = compared(*EQUAL)
    assert mark_continued(decided, max_rounds=16) is decided


def test_what_no_number_of_rounds_decides_says_so_where_the_button_is_missing() -> None:
    """A page had neither the button nor a word why."""
    lost = make_comparison("undecided", 1.0, smallest_detectable=0.03)
    assert (describe_rounds_needed(lost), may_more_rounds_decide([lost])) == (NO_ROUNDS, False)
    # too few rounds for a verdict, or more of them under way, are no reason to give up
    for open_still in (lost.model_copy(update={"smallest_detectable": None}), mark_continued(lost, max_rounds=16)):
        assert (describe_rounds_needed(open_still), may_more_rounds_decide([open_still])) == ("", True)
    wanted = make_comparison("undecided", 1.01, smallest_detectable=0.03, rounds_needed=24)
    assert describe_rounds_needed(wanted) == "about 24 rounds in all would decide"
    assert not describe_rounds_needed(make_comparison("slower", 1.2))
