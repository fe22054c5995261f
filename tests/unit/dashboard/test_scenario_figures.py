"""Figures of a scenario: memory over inferences and latency by shape, each with its table."""

from typing import Any

import pytest
from django.test import RequestFactory

from dashboard.figures import scenarios
from dashboard.views import charts
from farm.contract.document_cells import Cell
from farm.rules.presenting.times import BY_CLOCK, Times
from farm.rules.wording import numbers
from tests.documents import make_comparison, make_document
from tests.unit.rules.test_cell_axes import cell
from tests.unit.rules.test_generations import generated

MEMORY = [
    {"name": f"memory {n}", "launches": 8, "metrics": {"inferences": 125.0 * n, "resident_bytes": 70e6 + n}}
    for n in range(1, 9)
]
SHAPES: list[dict[str, Any]] = [
    {"name": "seq=64", "launches": 8, "metrics": {"p50_ms": 2.0, "n": 500.0}},
    {"name": "seq=4", "launches": 8, "metrics": {"p50_ms": 0.5, "n": 500.0}},
]


def test_a_cell_without_phases_has_no_figures() -> None:
    assert scenarios.draw_figures(cell()) == []


def test_memory_is_drawn_over_inferences_under_what_was_found() -> None:
    text = "Memory settles: 0.00 MiB in 1,000 inferences."
    (figure,) = scenarios.draw_figures(cell(phases=MEMORY, scenario_text=text))
    assert figure.title == "Memory settles: 0.00 MiB in 1,000 inferences"
    (line,) = figure.data
    assert line["x"] == [125.0 * n for n in range(1, 9)]
    assert [row[0].text for row in figure.table.rows] == [numbers.fixed(125 * n, 0) for n in range(1, 9)]


def test_the_time_per_token_is_drawn_along_the_sequence() -> None:
    phases: list[dict[str, Any]] = [
        {"name": "prefill", "launches": 8, "metrics": {"prefill_ms": 4.0}},
        {"name": "tokens 2 to 9", "launches": 8, "metrics": {"position": 132.5, "tpot_ms": 0.25}},
        {"name": "tokens 10 to 17", "launches": 8, "metrics": {"position": 140.5, "tpot_ms": 0.5}},
    ]
    (figure,) = scenarios.draw_figures(cell(phases=phases))
    assert figure.title == "Time per token from 0.250 ms to 0.500 ms along the sequence"
    assert figure.data[0]["x"] == [132.5, 140.5]
    assert [row[0].text for row in figure.table.rows] == ["tokens 2 to 9", "tokens 10 to 17"]


def test_shapes_stand_from_the_fastest_to_the_slowest() -> None:
    _, figure = scenarios.draw_figures(cell(phases=[*MEMORY, *SHAPES]))
    assert figure.title == "p50 from 0.500 ms at seq=4 to 2.00 ms at seq=64"
    assert [row[0].text for row in figure.table.rows] == ["seq=4", "seq=64"]


def test_a_load_is_a_curve_over_its_rates_with_the_bound() -> None:
    told = {"goodput_per_s": 100.0, "cpu_ms": 1.0, "late_ms": 0.003, "n": 700.0}
    curve = [
        {
            "name": f"{rate:g} per s",
            "launches": 8,
            "metrics": {"rate_per_s": rate, "p50_ms": p50, "p99_ms": p99, **told},
        }
        for rate, p50, p99 in ((200.0, 2.0, 30.0), (100.0, 1.0, 5.0))
    ]
    loaded = cell(scenario="load:bound=20ms", scenario_text="Keeps it.", phases=curve)
    figure, goodput, processor = scenarios.draw_figures(loaded)
    assert figure.title == "Keeps it"
    assert [(line["name"], line["x"], line["y"]) for line in figure.data] == [
        ("p50", [100.0, 200.0], [1.0, 2.0]),
        ("p99", [100.0, 200.0], [5.0, 30.0]),
    ]
    assert [(one["y0"], one["y1"]) for one in figure.layout["shapes"]] == [(20.0, 20.0)]
    assert [row[2].text for row in figure.table.rows] == ["5.00", "30.0"]
    assert [line["y"] for line in (*goodput.data, *processor.data)] == [[100.0, 100.0], [1.0, 1.0]]
    assert goodput.layout["shapes"] == [
        {"type": "line", "x0": 0, "y0": 0, "x1": 200.0, "y1": 200.0, "line": goodput.layout["shapes"][0]["line"]}
    ]
    first, second = scenarios.make_panels(loaded, BY_CLOCK)
    assert (first.table, second.table) == (figure.table, None)
    assert [one.name for one in second.figures] == ["goodput", "processor"]
    plain, *_ = scenarios.draw_figures(cell(scenario="load:rate=100", phases=curve[1:]))
    assert plain.layout["shapes"] == []


TOLD = {"p50_ms": 1.0, "p99_ms": 5.0, "goodput_per_s": 100.0, "cpu_ms": 1.0, "late_ms": 0.003, "n": 700.0}


def loaded(name: str, runtime: str, most: float) -> Cell:
    phases = [
        {"name": f"{rate:g} per s", "launches": 8, "metrics": {"rate_per_s": rate, **TOLD}} for rate in (most / 2, most)
    ]
    told = {"scenario": "load:bound=20ms", "phases": phases, "metrics": {"max_rate_per_s": {"value": most}}}
    return cell(name, runtime=runtime, **told)


def test_a_run_s_loads_stand_in_one_chart_by_what_tells_its_cells_apart() -> None:
    two = [loaded("c1", "onnxruntime==1.29.0", 200.0), loaded("c2", "onnxruntime==1.31.1", 300.0)]
    drawn = scenarios.list_run_figures(
        [*two, two[0].model_copy(update={"id": "c1.twin", "twin_of": "c1"})], "/{}".format
    )
    assert list(drawn) == ["rates", "goodput", "processor"]
    figure = drawn["rates"]()
    assert figure.title == "Keeps the bound up to at least 200 per s (1.29.0) and up to at least 300 per s (1.31.1)"
    assert [one.name for one in figure.key] == ["1.29.0", "1.31.1"]
    assert [head.text for head in figure.table.heads][:2] == ["Cell", "per s"]
    assert [(row[0].text, row[0].href, row[1].text) for row in figure.table.rows][2:] == [
        ("1.31.1", "/c2", "150"),
        ("1.31.1", "/c2", "300"),
    ]
    assert figure.data[0]["customdata"] == ["/c1", "/c1"]
    assert [line["name"] for line in drawn["goodput"]().data] == ["1.29.0", "1.31.1"]
    assert scenarios.is_about(two, "rates")
    assert scenarios.is_about([*two, cell("c1.twin", twin_of="c1")], "rates")
    assert not scenarios.is_about([*two, cell("c3")], "rates")
    assert not scenarios.is_about([], "rates")


def test_a_run_s_memory_and_minutes_are_a_line_a_cell() -> None:
    points = [{"at_s": 60.0 * n, "span_s": 60.0, "p50_ms": 1.0 + n, "p90_ms": 2.0, "n": 100} for n in range(4)]
    worked = {"sustained": {"points": points, "throttle_s": 60.0, "text": "Throttles."}, "scenario": "sustained:4"}
    growing = {"metrics": {"growth_bytes_per_1000": {"value": 2e6, "low": 1e6, "high": 3e6}}}
    first = cell(phases=MEMORY, **worked)
    second = cell("c2", runtime="onnxruntime==1.31.1", phases=MEMORY, **growing, **worked)
    drawn = scenarios.list_run_figures([first, second], "/{}".format)
    assert list(drawn) == ["memory-course", "sustained"]
    assert drawn["memory-course"]().title == "Memory grows in 1 of 2 cells: 1.31.1"
    lasting = drawn["sustained"]()
    assert lasting.title == "2 of 2 cells throttled: 1.29.0"
    assert lasting.data[0]["x"] == [1.0, 2.0, 3.0, 4.0]
    assert [row[0].text for row in lasting.table.rows] == ["1.29.0"] * 4 + ["1.31.1"] * 4
    (alone,) = scenarios.list_run_figures([cell(**worked)], "/{}".format).values()
    assert alone().title == "Throttles"
    settled = {"metrics": {"growth_bytes_per_1000": {"value": 0.0, "low": 0.0, "high": 0.0}}}
    unsure = {"metrics": {"growth_bytes_per_1000": {"value": 0.0, "low": -1e6, "high": 1e6}}}
    two = [cell(phases=MEMORY, **settled), cell("c2", threads=2, phases=MEMORY, **unsure)]
    (quiet,) = scenarios.list_run_figures(two, "/{}".format).values()
    assert quiet().title == "Memory settles in 1 of 2 cells"
    # 8 bytes are no slope
    low, high = quiet().layout["yaxis"]["range"]
    assert high - low >= 8.0


def opened(wanted: str, *cells: Cell) -> charts.Chart:
    """What a run's page shows where its address asks for this chart."""
    request = RequestFactory().get("/", {"chart": wanted} if wanted else {})
    return charts.make_chart(request, None, make_document(*cells), "/{}".format)


def test_a_run_opens_with_the_chart_of_what_all_its_cells_did_and_shows_its_table() -> None:
    load = loaded("c1", "onnxruntime==1.29.0", 200.0)
    shown = opened("", load)
    assert (shown["chart"], shown["table_open"]) == ("rates", True)
    assert [tab.name for tab in shown["tabs"]][:4] == ["rates", "goodput", "processor", "comparisons"]
    beside_single = opened("", load, cell("c2"))
    assert (beside_single["chart"], "table_open" in beside_single) == ("latency", False)
    assert opened("goodput", load, cell("c2"))["figure"].name == "goodput"
    assert "rates" in [tab.name for tab in opened("memory", load)["tabs"]]


def test_a_run_without_scenarios_has_no_tab_of_theirs() -> None:
    shown = opened("rates", cell())
    assert shown["chart"] == "latency"
    assert not {chart.name for chart in scenarios.CHARTS} & {tab.name for tab in shown["tabs"]}


def test_a_generation_has_one_length_of_the_clock_that_its_verdict_rests_on() -> None:
    cells = [generated(), generated("c2", runtime="onnxruntime==1.31.1", cpu_p50_ms=2.0)]
    pair = make_comparison("slower", 2.0, verdict_from="processor")
    drawn = scenarios.list_run_figures(cells, "/{}".format, [pair])
    figure = drawn["phases"]()
    assert figure.title == "A generation takes 21.0 ms (1.29.0) to 28.0 ms (1.31.1) of processor time"
    assert figure.layout["xaxis"]["title"]["text"] == "ms of processor time of one generation"
    lengths = [(row[-2].value, row[-1].value) for row in figure.table.rows]
    assert [tokens * whole / 1000.0 for whole, tokens in lengths] == pytest.approx([8, 8])
    assert "by the clock" not in scenarios.list_run_figures(cells, "/{}".format)["phases"]().title
    alone = scenarios.draw_figures(cells[0], Times(frozenset({"c1"})))
    assert alone[0].title == "21.0 ms of processor time a generation, 48 % of it the prompt"
