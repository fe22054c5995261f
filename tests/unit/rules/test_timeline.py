"""One inference of a trace as a timeline."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.rules.tracing.timeline import MAX_NAME, parse_timeline


def run_event(start: int, length: int) -> dict[str, Any]:
    return {"cat": "Session", "name": "model_run", "ts": start, "dur": length, "tid": 1}


def node(name: str, start: int, length: int, *, tid: int = 1, op: str = "MatMul") -> dict[str, Any]:
    args = {"op_name": op, "provider": "CPUExecutionProvider"}
    return {"cat": "Node", "name": f"{name}_kernel_time", "ts": start, "dur": length, "tid": tid, "args": args}


def trace(*lengths: int) -> list[dict[str, Any]]:
    """Runs of these lengths, 1,000 µs apart, each with one node that fills half of it."""
    found = []
    for number, length in enumerate(lengths):
        found += [run_event(1000 * number, length), node(f"n{number}", 1000 * number, length // 2)]
    return found


def test_the_run_of_median_length_is_taken_among_those_that_had_warmed_up() -> None:
    found = parse_timeline(trace(900, 900, 900, 100, 300, 200))
    assert (found.runs, found.number, found.duration_us) == (3, 6, 200)
    (span,) = found.spans
    assert (span.name, span.start_us, span.duration_us, span.provider) == ("n5", 0, 100, "CPUExecutionProvider")


def test_nodes_inside_control_flow_lie_below_it_and_are_counted_once() -> None:
    events = [
        run_event(0, 100), node("loop", 10, 60, op="Loop"), node("a", 12, 20), node("b", 32, 30), node("after", 70, 20),
    ]  # fmt: skip
    found = parse_timeline(events)
    assert [(one.name, one.depth, one.self_us) for one in found.spans] == [
        ("loop", 0, 10), ("a", 1, 20), ("b", 1, 30), ("after", 0, 20),
    ]  # fmt: skip
    assert found.in_nodes_us == 80


def test_threads_have_lanes_of_their_own() -> None:
    found = parse_timeline([run_event(0, 100), node("a", 0, 50, tid=7), node("b", 10, 50, tid=9)])
    assert [(one.name, one.lane, one.depth) for one in found.spans] == [("a", 0, 0), ("b", 1, 0)]


def test_a_trace_in_a_mapping_and_strange_events_are_read_as_far_as_they_go() -> None:
    strange = [None, 5, {"name": 3}, {"name": "x"}, {"name": "model_run", "ts": "1", "dur": None}, node("late", 900, 5)]
    strange += [{"name": "model_run", "ts": -4, "dur": 3}, {**node("n", 1, 2), "args": "none"}]
    found = parse_timeline({"traceEvents": [*strange, run_event(0, 10)]})
    assert [(one.name, one.op_type) for one in found.spans] == [("n", "")]


def test_endless_names_are_cut() -> None:
    assert len(parse_timeline([run_event(0, 10), node("x" * 5000, 1, 2)]).spans[0].name) == MAX_NAME


@pytest.mark.parametrize("nothing", [None, 5, "text", {}, [], [node("a", 0, 5)], {"traceEvents": 3}])
def test_a_trace_without_a_run_has_no_timeline(nothing: object) -> None:
    assert parse_timeline(nothing) is None


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["name", "ts", "dur", "args", "traceEvents"]), inner)))  # fmt: skip  # noqa: E501
def test_any_json_is_a_timeline_or_none(value: object) -> None:
    parse_timeline([value, run_event(0, 10)])
    parse_timeline(value)
