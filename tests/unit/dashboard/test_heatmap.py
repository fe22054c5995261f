import re

import pytest
from django.template.loader import render_to_string
from django.test import RequestFactory

from dashboard.reading.heatmap import draw_layout
from dashboard.reading.heatmap_fields import METRICS, Field
from dashboard.reading.heatmap_layout import make_layout
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from tests.unit.dashboard.conftest import address
from tests.unit.dashboard.draw_heat_map import make_heat_map


def place_of(document: Document, labels: tuple[str, ...], column: str, **how: str) -> Field:
    found = make_heat_map(document.cells, document.comparisons, address, **how)
    row = next(row for row in found.rows if row.labels == labels)
    return row.fields[found.columns.index(column)]


def test_columns_are_the_runtimes_and_rows_the_axes_that_vary(document: Document) -> None:
    found = make_heat_map(document.cells, document.comparisons, address)
    assert found.columns == ["1.29.0", "1.31.1", "openvino 1.24.1"]
    assert [axis.name for axis in found.row_axes] == ["provider", "batch", "precision"]
    assert found.rows[0].labels == ("CPU", "batch 1", "fp32")


def test_a_slower_cell_has_its_sign_its_size_and_a_deeper_colour(document: Document) -> None:
    place = place_of(document, ("CPU", "batch 1", "fp32"), "1.31.1")
    assert (place.sign.mark, place.sign.word) == ("▲", "24 % slower")
    assert place.tone == "s3"
    assert place.href == "/runs/1/cells/b1-a1/"
    assert "95 % interval 23–25 %; 8 rounds" in place.title


def test_the_first_column_is_the_baseline_and_an_equal_cell_has_no_colour(document: Document) -> None:
    baseline = place_of(document, ("CPU", "batch 1", "fp32"), "1.29.0")
    assert (baseline.sign.word, baseline.tone) == ("baseline", "")
    equal = place_of(document, ("CPU", "batch 8", "int8-dynamic"), "1.31.1")
    assert equal.sign.word.startswith("equal, ")
    assert equal.tone == ""


def test_refused_and_crashed_cells_show_their_sign_and_reason(document: Document) -> None:
    refused = place_of(document, ("OpenVINO", "batch 1", "fp32"), "1.31.1")
    assert (refused.sign.mark, refused.tone) == ("⊘", "off")
    assert "onnxruntime-openvino has it" in refused.title
    assert place_of(document, ("OpenVINO", "batch 8", "fp32"), "openvino 1.24.1").sign.mark == "✕"


def test_rows_that_were_refused_stand_below_those_that_are_measured(document: Document) -> None:
    why = Reason(code=ReasonCode.OPSET_TOO_NEW, text="opset 30 is too new.")
    refused_cell = {"status": CellStatus.REFUSED, "p50_ms": None, "reason": why}
    cells = [cell.model_copy(update=refused_cell) if cell.batch == 1 else cell for cell in document.cells]
    rows = make_heat_map(cells, document.comparisons, address).rows
    measured = [any(place.value for place in row.fields) for row in rows]
    assert set(measured) == {True, False}
    assert measured == sorted(measured, reverse=True)


def test_a_point_that_the_matrix_does_not_have_is_empty(document: Document) -> None:
    place = place_of(document, ("OpenVINO", "batch 8", "fp32"), "1.29.0")
    assert (place.href, place.tone, place.sign) == ("", "none", None)


def test_a_metric_colours_by_magnitude(document: Document) -> None:
    low = place_of(document, ("CPU", "batch 1", "int8-dynamic"), "1.29.0", metric="p50")
    high = place_of(document, ("CPU", "batch 8", "fp32"), "1.31.1", metric="p50")
    assert (low.tone, high.tone) == ("r1", "r5")
    assert low.sign is None
    memory = place_of(document, ("CPU", "batch 1", "fp32"), "1.29.0", metric="memory")
    assert memory.value == "93 MiB"


def test_the_key_names_the_values_of_the_lightest_and_the_darkest_colour(document: Document) -> None:
    found = make_heat_map(document.cells, document.comparisons, address, metric="p50")
    shown = [(place.tone, place.value) for row in found.rows for place in row.fields]
    assert ("r1", found.ends[0]) in shown
    assert ("r5", found.ends[1]) in shown
    assert make_heat_map(document.cells, document.comparisons, address).ends == []


def test_cells_of_one_value_share_the_lightest_colour(by_id: dict[str, Cell]) -> None:
    found = make_heat_map([by_id["b1-a0"]], [], address, metric="p50")
    assert found.rows[0].fields[0].tone == "r1"
    assert found.column_axis.name == "runtime"


def test_more_work_along_the_columns_is_no_slowdown(document: Document) -> None:
    found = make_heat_map(document.cells, document.comparisons, address, columns="batch")
    assert found.columns == ["batch 1", "batch 8"]
    place = place_of(document, ("CPU", "fp32", "1.29.0"), "batch 8", columns="batch")
    assert (place.sign.word, place.tone) == ("equal, 0.9 % fewer items/s", "")
    other = place_of(document, ("CPU", "fp32", "1.31.1"), "batch 8", columns="batch")
    assert other.sign.word == "compared by runtime"
    alone = document.model_copy(update={"comparisons": []})
    assert place_of(alone, ("CPU", "fp32", "1.31.1"), "batch 8", columns="batch").sign.word == "not compared"


def test_an_unknown_axis_or_metric_falls_back_to_the_usual_ones(document: Document) -> None:
    found = make_heat_map(document.cells, document.comparisons, address, columns="colour", metric="beauty")
    assert (found.column_axis.name, found.metric.name) == ("runtime", "verdict")


def test_open_cells_wait_or_breathe(by_id: dict[str, Cell]) -> None:
    blank = {"p50_ms": None, "samples_ms": []}
    open_ = [by_id["b1-a0"].model_copy(update=blank), by_id["b1-a1"].model_copy(update=blank)]
    found = make_heat_map(open_, [], address, states={"b1-a0": "measuring", "b1-a1": "queued"})
    running, waiting = found.rows[0].fields
    assert (running.tone, waiting.tone) == ("running", "")
    assert (running.sign.word, waiting.sign.word) == ("measuring", "queued")


def test_a_running_cell_shows_the_median_of_its_launches_so_far(by_id: dict[str, Cell]) -> None:
    one = by_id["b1-a0"].model_copy(update={"p50_ms": 1.92, "p50_ci_ms": None, "samples_ms": [1.91, 1.93]})
    place = make_heat_map([one], [], address, states={one.id: "measuring"}).rows[0].fields[0]
    assert (place.value, place.sign.word, place.tone) == ("1.92 ms", "2 rounds so far", "running")


def test_a_live_map_says_of_which_clock_its_times_are_and_has_one_of_them(by_id: dict[str, Cell]) -> None:
    """0.294 ms by the clock became 0.320 of processor time, and neither said which."""
    calm = by_id["b1-a0"].model_copy(update={"samples_ms": [1.9, 1.9], "cpu_p50_ms": 1.8, "disturbed_samples": 0})
    busy = by_id["b1-a1"].model_copy(
        update={"samples_ms": [9.0, 9.0], "p50_ms": 9.0, "cpu_p50_ms": 2.0, "disturbed_samples": 2}
    )
    states = {"b1-a0": "measuring", "b1-a1": "measuring"}
    assert make_heat_map([calm], [], address, states=states).so_far == "by the clock"
    both = make_heat_map([calm, busy], [], address, states=states)
    assert both.so_far == "processor time"
    assert [place.value for row in both.rows for place in row.fields] == ["1.80 ms", "2.00 ms"]
    assert make_heat_map([calm, busy], [], address).so_far == ""


def test_many_columns_make_the_map_compact(by_id: dict[str, Cell]) -> None:
    one = by_id["b1-a0"]
    many = [one.model_copy(update={"id": f"c{n}", "runtime": Runtime.of(f"onnxruntime==1.{n}.0")}) for n in range(9)]
    assert make_heat_map(many, [], address).is_compact


def test_an_empty_run_has_an_empty_map() -> None:
    assert make_heat_map([], [], address).rows == []


def test_a_comparison_without_figures_shows_why(document: Document) -> None:
    blank = document.comparisons[0].model_copy(
        update={"ratio": None, "verdict": "not comparable", "reason": "The driver differs."}
    )
    found = make_heat_map(document.cells, [blank], address)
    place = found.rows[0].fields[1]
    assert (place.sign.word, place.title) == ("not comparable", "The driver differs.")


def many_cells(document: Document, by_id: dict[str, Cell], rows: int) -> tuple[list[Cell], list[Comparison]]:
    """So many batches on two runtimes; of every tenth batch the newer runtime is slower, the more the larger it is."""
    cells, compared = [], []
    for number in range(1, rows + 1):
        for runtime in ("1.29.0", "1.31.1"):
            named = {"id": f"{runtime}-{number}", "batch": number, "runtime": Runtime.of(f"onnxruntime=={runtime}")}
            cells.append(by_id["b1-a0"].model_copy(update=named))
        pair = {"baseline": f"1.29.0-{number}", "candidate": f"1.31.1-{number}", "axis": "runtime"}
        verdict = (
            {"verdict": "equal", "ratio": 1.0} if number % 10 else {"verdict": "slower", "ratio": 1 + number / 100}
        )
        compared.append(document.comparisons[0].model_copy(update=pair | verdict))
    return cells, compared


def test_a_large_map_is_shown_in_parts_that_together_have_every_row(document: Document, by_id: dict[str, Cell]) -> None:
    cells, compared = many_cells(document, by_id, rows=100)
    laid = make_layout(cells, compared)
    parts = [draw_layout(laid, address, part=number) for number in range(1, 5)]
    told = [part.part for part in parts if part.part is not None]
    assert {(one.paginator.num_pages, one.paginator.count) for one in told} == {(4, 100)}
    assert [(one.start_index(), one.end_index()) for one in told] == [(1, 30), (31, 60), (61, 90), (91, 100)]
    assert {row.labels for part in parts for row in part.rows} == {(f"batch {number}",) for number in range(1, 101)}
    assert sorted(cell.id for part in parts for cell in part.cells) == sorted(cell.id for cell in cells)


def test_a_large_map_begins_with_the_largest_slowdowns(document: Document, by_id: dict[str, Cell]) -> None:
    first = make_heat_map(*many_cells(document, by_id, rows=100), address)
    batches = [row.labels[0] for row in first.rows]
    assert batches[:11] == [*(f"batch {number}" for number in range(100, 0, -10)), "batch 1"]


@pytest.mark.parametrize(("asked", "shown"), [(-3, 1), (0, 1), (4, 4), (5, 4), (10**6, 4)])
def test_a_part_that_is_not_there_is_the_nearest_one(
    document: Document, by_id: dict[str, Cell], asked: int, shown: int
) -> None:
    part = draw_layout(make_layout(*many_cells(document, by_id, rows=100)), address, part=asked).part
    assert part.number == shown


def test_a_part_leads_to_the_parts_beside_it(document: Document, by_id: dict[str, Cell], rf: RequestFactory) -> None:
    drawn = draw_layout(make_layout(*many_cells(document, by_id, rows=100)), address, part=2)
    text = render_to_string("dashboard/parts/run_map.html", {"map": drawn, "metrics": METRICS}, rf.get("/runs/1/"))
    assert "Rows 31–60 of 100, largest slowdowns first." in text
    assert re.findall(r'href="(\?rows=\d)#map"', text) == ["?rows=1", "?rows=3"]


def test_a_map_of_fifty_rows_is_whole_in_the_order_of_its_axes(document: Document, by_id: dict[str, Cell]) -> None:
    whole = make_heat_map(*many_cells(document, by_id, rows=50), address)
    assert whole.part is None
    assert [row.labels[0] for row in whole.rows] == [f"batch {number}" for number in range(1, 51)]


def test_a_cell_of_a_busy_machine_shows_its_processor_time_from_its_first_round_on(by_id: dict[str, Cell]) -> None:
    busy = {"p50_ms": 61.0, "samples_ms": [119.0, 3.33], "disturbed_samples": 2, "cpu_p50_ms": 3.05}
    alone = next(iter(by_id.values())).model_copy(update=busy)
    for states in ({}, {alone.id: "measuring"}):
        ((place,),) = (row.fields for row in make_heat_map([alone], [], address, states=states).rows)
        assert place.value == "3.05 ms"
