"""Figures of a closer look, of cold start and of memory: findings, limits, what stays when points are left out."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dashboard.figures import cell_bars, samples, theme, timelines, warm_up
from dashboard.figures.figure import Figure, spread_places
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.tracing.timeline import Span, Timeline
from tests.unit.dashboard.conftest import address

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
LIMIT = 300_000
STYLESHEET = Path(theme.__file__).parents[1] / "static/dashboard/farm.css"


def span(number: int, *, provider: str = CPU, length: float = 10.0, depth: int = 0) -> Span:
    name = f"/encoder/layers.{number}/attention/self/MatMul"
    return Span(name, f"Op{number % 9}", provider, 10.0 * number, length, length, depth)


def traced(*spans: Span) -> Timeline:
    return Timeline(runs=10, number=5, duration_us=10.0 * len(spans) + 5, spans=spans)


def figures(document: Document) -> list[Figure]:
    mixed = traced(*(span(number, provider=CUDA if number % 3 else CPU) for number in range(30)))
    launches = [(number, [2.0] * 3 + [1.0] * 97) for number in range(8)]
    return [
        timelines.draw_timeline(mixed), timelines.draw_placement(mixed),
        warm_up.draw_warm_up(launches),
        cell_bars.draw_cold_start(document.cells, address), cell_bars.draw_memory(document.cells, address),
    ]  # fmt: skip


def test_each_has_a_finding_a_summary_and_a_table_as_wide_as_its_head(document: Document) -> None:
    known = set(re.findall(r"--([a-z0-9-]+):", STYLESHEET.read_text()))
    for figure in figures(document):
        assert figure.title, figure.name
        assert figure.summary.endswith("."), figure.name
        assert figure.table.rows, figure.name
        assert all(len(row) == len(figure.table.heads) for row in figure.table.rows), figure.name
        assert json.loads(figure.json)["data"], figure.name
        assert set(re.findall(r'"@([a-z0-9-]+)', figure.json)) <= known, figure.name


def test_the_largest_timeline_stays_light_and_keeps_its_longest_nodes() -> None:
    spans = [span(number, length=5.0) for number in range(20_000)]
    spans[777] = span(777, length=9999.0)
    figure = timelines.draw_timeline(traced(*spans))
    assert len(figure.json.encode()) < LIMIT
    drawn = [length for series in figure.data for length in series["x"]]
    assert len(drawn) == timelines.MAX_BARS
    assert max(drawn) == 9999.0
    assert "18" in figure.summary
    assert "shortest nodes are not drawn" in figure.summary
    assert len(figure.table.rows) == timelines.MAX_ROWS
    assert "19" in figure.table.caption
    assert figure.zooms


def test_a_timeline_says_which_types_of_operators_take_the_time() -> None:
    figure = timelines.draw_timeline(traced(span(0), span(1, length=30.0)))
    assert figure.title == "Op1 takes 120 % of a traced inference, Op0 40 %"
    inside = timelines.draw_timeline(traced(span(0), span(1, depth=1)))
    assert inside.layout["yaxis"]["ticktext"] == ["nodes", "inside"]


@pytest.mark.parametrize(
    "figure", [timelines.draw_timeline("Why."), timelines.draw_placement("Why."), timelines.draw_timeline(traced())]
)
def test_what_cannot_be_drawn_is_a_sentence(figure: Figure) -> None:
    assert figure.empty.endswith(".")
    assert figure.data == []


def test_a_timeline_says_that_tracing_adds_time_and_how_long_the_inference_takes_without() -> None:
    figure = timelines.draw_timeline(traced(span(0), span(1)), untraced_ms=0.018)
    assert "traced" in figure.layout["xaxis"]["title"]["text"]
    assert figure.note.startswith("Tracing adds time")
    assert figure.note.endswith("This inference took 25 µs; p50 without tracing is 18 µs.")
    assert timelines.draw_timeline(traced(span(0))).note.startswith("Tracing adds time")


def test_a_cell_on_one_provider_has_a_sentence_for_a_map() -> None:
    figure = timelines.draw_placement(traced(span(0), span(1)))
    assert figure.empty == "All 2 executed nodes of the main graph ran on CPU, one after another."
    assert len(figure.table.rows) == 1


def test_switches_between_providers_are_counted_and_lie_end_to_end() -> None:
    spans = [span(0), span(1, provider=CUDA), span(2, provider=CUDA), span(3), span(4, depth=1, provider=CUDA)]
    figure = timelines.draw_placement(traced(*spans))
    assert figure.title == "2 switches between CPU and CUDA in one inference"
    cpu, cuda = figure.data
    assert (cpu["base"], cpu["x"], cuda["base"], cuda["x"]) == ([0.0, 30.0], [10.0, 10.0], [10.0], [20.0])


def test_a_slow_beginning_is_told_and_no_extreme_is_lost() -> None:
    values = [3.0] * 600 + [1.0] * 5400
    values[4321] = 50.0
    figure = warm_up.draw_warm_up([(number, values) for number in range(24)])
    assert figure.title == "The first tenth of a launch is 200 % slower than its last half"
    assert len(figure.data) == warm_up.MAX_LAUNCHES
    assert all(max(line["y"]) == 50.0 for line in figure.data)
    assert sum(len(line["x"]) for line in figure.data) <= warm_up.MAX_POINTS
    assert len(figure.json.encode()) < LIMIT
    assert len(figure.table.rows) == 24


def test_one_outlier_flattens_neither_the_launches_nor_their_timings(by_id: dict[str, Cell]) -> None:
    timings = [1.0, 1.1] * 100
    figure = warm_up.draw_warm_up([(0, [*timings, 90.0])])
    assert figure.layout["yaxis"]["range"][1] < 3
    assert figure.note.endswith("Above the axis: 1, up to 90.0 ms.")
    assert "Above" not in warm_up.draw_warm_up([(0, timings)]).note
    far = by_id["b1-a0"].model_copy(
        update={"samples_ms": [1.0, 1.1, 1.0, 30.0], "p50_ms": 1.05, "p50_ci_ms": (1.0, 30.0)}
    )
    figure = samples.draw_samples(far)
    assert figure.layout["yaxis"]["range"][1] < 3
    assert "up to 30.0" in figure.note
    assert figure.picture.count("h0") == 3


def test_a_steady_launch_is_called_settled_and_too_few_timings_are_said() -> None:
    assert warm_up.draw_warm_up([(0, [1.0] * 50)]).title.startswith("Settled")
    assert "No launch has the 10 timings" in warm_up.draw_warm_up([(0, [1.0] * 3)]).empty


def test_cold_start_and_memory_lead_to_cells_and_name_the_ends(document: Document) -> None:
    start, peak = figures(document)[3:]
    assert [series["name"] for series in start.data] == ["import", "session creation", "first inference"]
    assert start.title.startswith("Until the first answer: ")
    assert start.data[0]["customdata"][0].startswith("/runs/1/cells/")
    assert peak.title.startswith("From ")
    assert peak.data[0]["customdata"][0][0].startswith("/runs/1/cells/")
    assert not [row for row in start.table.rows if row[0].text.endswith("twin")]


@pytest.mark.parametrize("make", [cell_bars.draw_cold_start, cell_bars.draw_memory])
def test_many_cells_leave_the_middle_to_the_table(make: Any, by_id: dict[str, Cell]) -> None:
    cell = by_id["b1-a0"]
    many = [
        cell.model_copy(update={"id": f"c{n}", "batch": n, "peak_memory_bytes": n * 10**6, "session_ms": float(n)})
        for n in range(1, 2001)
    ]
    figure = make(many, address)
    assert len(figure.data[0]["x"]) == 40
    assert {"batch 1", "batch 2000"} <= set(figure.data[0]["y"])
    assert len(figure.table.rows) == 2000
    assert len(figure.json.encode()) < LIMIT
    assert make([], address).empty.endswith(".")


def test_spread_keeps_the_ends_and_the_order() -> None:
    values = [5.0, 1.0, 9.0, 3.0, 7.0, 2.0]
    assert spread_places(values, most=9) == [0, 1, 2, 3, 4, 5]
    assert spread_places(values, most=2) == [1, 2]
    assert {1, 2} <= set(spread_places(values, most=4))
