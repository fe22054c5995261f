"""One quantity a line: what a reader divides gives the change that stands beside it, in whatever is written."""

import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from farm.contract.cells import CellSpec, Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.changes import gate, gate_comment, gate_reports, report
from farm.rules.changes.report import Case
from farm.rules.comparing.quantities import change_of
from farm.rules.findings.kinds import CHECKS
from farm.rules.presenting import sentences
from farm.rules.presenting.key_results import find_key_result
from farm.rules.presenting.lines import (
    BUSY,
    PROCESSOR,
    ComparisonLine,
    format_outside_times,
    is_busy,
    make_comparison_line,
    outside_us,
)
from farm.rules.presenting.times import format_latency
from farm.rules.wording.numbers import THIN
from farm.rules.wording.vocabulary import sign_of
from onnxfarm import screen
from tests.unit.dashboard.draw_heat_map import make_heat_map
from tests.unit.rules.test_sentences import cell, compared

OLD, NEW = "onnxruntime==1.29.0", "onnxruntime==1.31.1"
TIMES = st.floats(0.001, 1000.0)
# `0.520 → 0.880 ms`, as a line writes two values
PAIR = re.compile(rf"([0-9{THIN}.]+) → ([0-9{THIN}.]+) (?:ms|items/s)")


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Two cells and their comparison, of which ratio, medians and the cells' own figures need not agree."""
    by = draw(st.sampled_from(["wall", "processor"]))
    batches = draw(st.sampled_from([(1, 1), (1, 8)]))
    ratio = draw(st.floats(0.05, 20.0))
    low, high = ratio / draw(st.floats(1.0001, 1.5)), ratio * draw(st.floats(1.0001, 1.5))
    is_of_batches = batches[0] != batches[1]
    clocks = [(draw(TIMES), draw(TIMES)) for _ in batches]
    sides = [
        cell(name, runtime=runtime, batch=batch, p50_ms=wall, cpu_p50_ms=cpu, throughput=1000 * batch / wall)
        for name, runtime, batch, (wall, cpu) in zip(
            ("c1", "c2"), (OLD, OLD if is_of_batches else NEW), batches, clocks, strict=True
        )
    ]
    old = draw(TIMES)
    new = old * ratio * draw(st.sampled_from([1.0, 1.0, 1.3, 0.5]))
    known = {"name": "p50_ms", "unit": "ms", "verdict": "slower", "margin": 0.02, "rounds": 8, "p": 0.001}
    metric = {**known, "baseline": old, "candidate": new, "ratio": ratio, "ci_low": low, "ci_high": high}
    axis = "batch" if is_of_batches else "runtime"
    verdict = "undecided" if low <= 1.0 <= high else "slower" if ratio > 1.0 else "faster"
    comparison = compared(
        axis=axis, ratio=ratio, ci_low=low, ci_high=high, verdict=verdict, verdict_from=by, rounds=8,
        metrics=draw(st.sampled_from([[metric], []])),
    )  # fmt: skip
    return _document(sides, comparison)


def _document(cells: list[Cell], comparison: Comparison) -> Document:
    return Document(machine={}, seed=0, cells=cells, comparisons=[comparison], sentence="")


def _value(text: str) -> float:
    return float(text.replace(THIN, ""))


def _values_written_so(text: str) -> tuple[float, float]:
    """The least and the largest value that is written as this text: half a unit of its last digit to each side."""
    whole, _, decimals = text.replace(THIN, "").partition(".")
    unit = 10.0 ** -len(decimals) if decimals else 10.0 ** (len(whole) - len(whole.rstrip("0")))
    return _value(text) - 0.5001 * unit, _value(text) + 0.5001 * unit


def _line(document: Document) -> tuple[ComparisonLine, tuple[float, float, float]]:
    cells = {cell.id: cell for cell in document.cells}
    figures = change_of(document.comparisons[0], cells).figures
    assert figures is not None
    return make_comparison_line(document.comparisons[0], cells), figures


@given(documents())
def test_the_values_of_a_line_divided_give_its_change_or_it_says_why_they_are_left_out(document: Document) -> None:
    line, (_, low, high) = _line(document)
    if line.sides is None:
        assert line.why or not document.comparisons[0].metrics
    else:
        old, new = map(_value, line.sides)
        assert low <= new / old <= high
        assert not line.why
    assert (PROCESSOR in line.quantity) == (document.comparisons[0].verdict_from == "processor")
    assert line.quantity in line.details


@given(documents())
def test_no_terminal_page_or_gate_writes_two_values_beside_a_change_that_they_do_not_give(document: Document) -> None:
    _, (_, low, high) = _line(document)
    text = io.StringIO()
    for width in (80, 200):
        screen.show(document, console=Console(file=text, width=width, force_terminal=False))
    printed = text.getvalue()
    answer = gate.judge_gate(document, old=Runtime.of(OLD), new=Runtime.of(NEW), fail_on=CHECKS)
    table = gate_reports.as_markdown(answer, document)
    row = [line.split(" | ") for line in table.splitlines() if line.startswith("| CPU")]
    gated = [f"{cells[2].removesuffix(' ms')} → {cells[3]}" for cells in row if cells[2]]
    for old, new in PAIR.findall("\n".join([printed, *gated])):
        assert low <= _value(new) / _value(old) <= high


@given(documents())
def test_what_leaves_the_farm_says_the_verdict_s_own_change_and_no_values_that_give_another(document: Document) -> None:
    line, (_, low, high) = _line(document)
    (comparison,) = document.comparisons
    if comparison.axis != "runtime":
        return
    old, new = document.cells
    case = Case(document, old, new, CellSpec(artifact_sha256="a" * 64, runtime=new.runtime), "m.onnx", "It changed.")
    issue = report.render_issue(case).splitlines()
    answer = gate.judge_gate(document, old=Runtime.of(OLD), new=Runtime.of(NEW), fail_on=CHECKS)
    comment = gate_comment.as_comment(answer, document, gate_comment.GateCall("m", "onnxfarm gate", 1.0)).splitlines()
    rows = [row.split(" | ") for row in (*issue, *comment)]
    told = [row[1] for row in rows if row[0].startswith("| onnxruntime==")]
    (compared_row,) = [row for row in rows if len(row) == 5 and row[0].startswith("| `CPU")]
    for before, after in (told, compared_row[1:3]):
        assert bool(before) == bool(after) == (line.sides is not None)
        if before:
            assert low <= _value(after.removesuffix(" ms")) / _value(before.removesuffix(" ms")) <= high
    (changed,) = [text for text in issue if text.startswith("Change: ")]
    for said in (changed.removeprefix("Change: "), compared_row[3]):
        assert said.startswith(line.change.text if line.change.is_decided else (line.change.word, line.change.interval))
    assert sign_of(line.change.word).word in compared_row[4]
    strict = gate.judge_gate(document, old=Runtime.of(OLD), new=Runtime.of(NEW), fail_on=["slower"])
    tests = gate_reports.as_junit(strict, document)
    assert ("<failure" in tests) == (comparison.verdict == "slower")
    assert ("<skipped" in tests) == (comparison.verdict == "undecided")


@given(documents())
def test_the_fields_of_a_heat_map_divided_give_the_change_that_stands_in_them(document: Document) -> None:
    _, (_, low, high) = _line(document)
    (row,) = make_heat_map(document.cells, document.comparisons, lambda cell: f"/{cell}/").rows
    values = [re.match(rf"[0-9{THIN}.]+", place.value) for place in row.fields]
    if all(values) and "the time" not in (row.fields[1].sign.word if row.fields[1].sign else ""):
        (least_old, most_old), (least_new, most_new) = (_values_written_so(found[0]) for found in values if found)
        # but for the digits that a field leaves out: 4.5249 and 36.199 items/s are 4.52 and 36.2 at exactly 8.0
        assert low <= most_new / least_old
        assert least_new / most_old <= high


def test_the_time_of_the_clock_never_stands_beside_a_change_of_processor_time() -> None:
    """0.52 → 0.88 ms beside "+59 %" was of two clocks: the wall's medians, the processor's change."""
    old, new = cell(p50_ms=0.52, cpu_p50_ms=0.5), cell("c2", runtime=NEW, p50_ms=0.88, cpu_p50_ms=0.795)
    comparison = compared(ratio=1.59, ci_low=1.57, ci_high=1.61, verdict_from="processor", metrics=[])
    line, _ = _line(_document([old, new], comparison))
    assert (line.quantity, line.values, line.change.text) == (PROCESSOR, "0.500 → 0.795 ms", "59 % slower")


@pytest.mark.parametrize(
    ("told", "is_led_by_processor_time"),
    [
        ({"p50_ms": 137.0, "cpu_p50_ms": 44.8, "disturbed_samples": 6}, True),
        ({"p50_ms": 45.0, "cpu_p50_ms": 44.8, "disturbed_samples": 6}, False),
        ({"p50_ms": 137.0, "cpu_p50_ms": 44.8, "disturbed_samples": 1}, False),
        ({"p50_ms": 137.0, "cpu_p50_ms": None, "disturbed_samples": 6}, False),
    ],
)
def test_a_lone_cell_on_a_busy_machine_leads_with_its_processor_time(
    told: dict[str, float | None], is_led_by_processor_time: bool
) -> None:
    alone = cell(p50_ci_ms=None, **told)
    lead = find_key_result(Document(machine={}, seed=0, cells=[alone], comparisons=[]))
    assert is_busy(alone) == is_led_by_processor_time == (BUSY in sentences.cell_sentence(alone))
    assert format_latency(alone).endswith("of CPU time") == is_led_by_processor_time
    assert (lead.p50_ms, lead.quantity) == ((44.8, "processor") if is_led_by_processor_time else (told["p50_ms"], ""))


@pytest.mark.parametrize(
    ("told", "cells"),
    [
        ({"metrics": []}, []),
        ({"metrics": [], "verdict_from": "rate"}, [cell(), cell("c2", runtime=NEW)]),
        ({"metrics": [], "axis": "batch"}, [cell(p50_ms=0.0), cell("c2", batch=8)]),
    ],
)
def test_a_line_has_no_values_where_the_document_has_none_of_its_quantity(told: dict[str, Any], cells: list[Cell]):
    line = make_comparison_line(compared(**told), {one.id: one for one in cells})
    assert (line.sides, line.values, line.why) == (None, "", "")


@pytest.mark.parametrize(
    ("figures", "outside"),
    [
        ({"p50_ms": 1.9, "unaccounted_us": 40.0}, 40.0),
        ({"p50_ms": 1.9, "unaccounted_us": 13_234.0}, None),
        # beside other programs by processor time: 41 ms of the clock, of which 18.2 are its own
        (
            {
                "p50_ms": 41.0,
                "cpu_p50_ms": 18.2,
                "samples_ms": [41.0] * 8,
                "disturbed_samples": 8,
                "unaccounted_us": 2e4,
            },
            None,
        ),
        ({"p50_ms": None, "unaccounted_us": 40.0}, 40.0),
        ({"p50_ms": 1.9, "unaccounted_us": None}, None),
    ],
)
def test_what_is_in_no_operator_is_never_more_than_the_inference_that_was_timed(
    figures: dict[str, object], outside: float | None
) -> None:
    assert outside_us(cell(**figures)) == outside


@pytest.mark.parametrize(
    ("spent", "words"), [((40.0, 41.2), "40.0 → 41.2 µs"), ((40.0, None), ""), ((40.0,), ""), ((40.0, 9e6), "left out")]
)
def test_time_in_no_operator_is_told_of_both_sides_or_left_out(spent: tuple[float | None, ...], words: str) -> None:
    told = format_outside_times([cell(unaccounted_us=us, p50_ms=1.0) for us in spent])
    assert told.startswith(words) if words else not told
