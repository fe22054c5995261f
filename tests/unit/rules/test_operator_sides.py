"""One estimate a line: what is written of an operator's change lies in its own interval, in whatever is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.figures.operators import draw_operators, name_sides
from farm.contract.document_comparisons import OperatorChange
from farm.rules.comparing.sides import swap_sides
from farm.rules.presenting.changed_operators import format_operator_times, format_type_times
from farm.rules.reporting.operator_changes import make_operator_changes
from farm.rules.tracing.attribution import attribute_traces, group_by_type
from farm.rules.wording.numbers import MINUS, THIN
from tests.documents import NEW, make_cell, make_comparison
from tests.unit.rules.making import make_operator, make_trace

ROUNDS = st.lists(st.tuples(st.floats(0.5, 5000.0), st.floats(0.5, 5000.0)), min_size=5, max_size=20)


def change_of(rounds: list[tuple[float, float]]) -> OperatorChange:
    """What a document says of one operator, by its time in each trace of both arms."""
    old, new = (
        [make_trace(arm, [make_operator("mm", times[arm])], trace_round=number) for number, times in enumerate(rounds)]
        for arm in (0, 1)
    )
    (change,) = make_operator_changes(attribute_traces(old, new).nodes)
    return change


def number(text: str) -> float:
    return float(text.replace(THIN, "").replace(MINUS, "-"))


def written(change: OperatorChange) -> tuple[list[float], float, list[float]]:
    """Both times, if any, the change and its interval, as the table of a page has them."""
    figure = draw_operators(make_comparison(operators=[change]), name_sides(make_cell(), make_cell("c2", runtime=NEW)))
    (row,) = figure.table.rows
    texts = [entry.text for entry in row]
    return (
        [number(text) for text in texts[2:4] if text],
        number(texts[4]),
        [number(end) for end in texts[5].split(" to ")],
    )


@given(ROUNDS)
def test_a_change_of_an_operator_lies_in_its_interval_and_so_do_the_times_beside_it(
    rounds: list[tuple[float, float]],
) -> None:
    change = change_of(rounds)
    for told in (change, swap_sides(make_comparison(operators=[change])).operators[0]):
        assert told.change_low_us is not None
        assert told.change_high_us is not None
        assert told.change_low_us <= told.moved_us <= told.change_high_us
        times, moved, (low, high) = written(told)
        assert low <= moved <= high
        if times:
            old, new = times
            assert told.change_low_us - 1e-6 <= new - old <= told.change_high_us + 1e-6
        assert bool(times) == bool(format_operator_times(told))


def test_medians_that_are_apart_otherwise_than_their_pairs_are_left_out() -> None:
    """+2.0 µs stood beside an interval from +1.0 to +4.0, and of the next operator −9.0 beside +1.0 to +20."""
    change = change_of([(100.0, 101.0), (90.0, 91.0), (10.0, 11.0), (200.0, 230.0), (300.0, 330.0), (95.0, 96.0)])
    assert change.moved_us == 1.0
    moved = change.model_copy(update={"candidate_us": 150.0})
    assert format_operator_times(moved) == ""
    assert written(moved)[0] == []


def test_medians_that_are_apart_against_the_change_are_left_out() -> None:
    """`7.18 → 6.70 µs` stood beside +0.263 µs, as its interval, from −3.74 to +0.943, had room for it."""
    slower = OperatorChange(
        node="hidden", op_type="FusedGemm", baseline_us=7.18, candidate_us=6.70, change_us=0.263, change_low_us=-3.74,
        change_high_us=0.943,
    )  # fmt: skip
    assert written(slower)[:2] == ([], 0.263)
    assert format_operator_times(slower.model_copy(update={"change_us": -0.263})) == "7.18 → 6.70 µs"


@pytest.mark.parametrize(("own", "expected"), [({}, 5.0), ({"change_low_us": 6.0, "change_high_us": 9.0}, 6.0)])
def test_a_change_of_before_is_the_difference_of_the_medians_as_far_as_its_interval_goes(
    own: dict[str, float], expected: float
) -> None:
    change = OperatorChange(node="a", op_type="MatMul", baseline_us=10.0, candidate_us=15.0, **own)
    assert change.moved_us == expected


def test_times_of_a_type_that_go_against_its_change_are_told_by_the_change() -> None:
    one = OperatorChange(node="a", op_type="MatMul", baseline_us=10.0, candidate_us=15.0, change_us=5.0)
    (straight,), (against,) = (group_by_type([change]) for change in (one, one.model_copy(update={"change_us": -1.0})))
    assert (format_type_times(straight), format_type_times(against)) == (
        "1 node, 10.0 → 15.0 µs",
        f"1 node, {MINUS}1.00 µs",
    )
