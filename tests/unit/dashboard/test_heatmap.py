from dashboard.reading.heatmap import Place, heat_map
from farm.contract.document import Cell, Document
from tests.unit.dashboard.conftest import address


def place_of(document: Document, labels: tuple[str, ...], column: str, **how: str) -> Place:
    drawn = heat_map(document.cells, document.comparisons, address, **how)
    row = next(row for row in drawn.rows if row.labels == labels)
    return row.places[drawn.columns.index(column)]


def test_columns_are_the_runtimes_and_rows_the_axes_that_vary(document: Document) -> None:
    drawn = heat_map(document.cells, document.comparisons, address)
    assert drawn.columns == ["1.29.0", "1.31.1", "openvino 1.24.1"]
    assert [axis.name for axis in drawn.row_axes] == ["provider", "batch", "precision"]
    assert drawn.rows[0].labels == ("CPU", "batch 1", "fp32")


def test_a_slower_cell_has_its_sign_its_size_and_a_deeper_colour(document: Document) -> None:
    place = place_of(document, ("CPU", "batch 1", "fp32"), "1.31.1")
    assert place.sign is not None
    assert (place.sign.mark, place.sign.word) == ("▲", "24 % slower")
    assert place.tone == "s3"
    assert place.href == "/runs/1/cells/b1-a1/"
    assert "95 % interval +23 to +25 %, 8 rounds" in place.title


def test_the_first_column_is_the_baseline_and_an_equal_cell_has_no_colour(document: Document) -> None:
    baseline = place_of(document, ("CPU", "batch 1", "fp32"), "1.29.0")
    assert baseline.sign is not None
    assert (baseline.sign.word, baseline.tone) == ("baseline", "")
    equal = place_of(document, ("CPU", "batch 8", "int8-dynamic"), "1.31.1")
    assert equal.sign is not None
    assert equal.sign.word.startswith("equal, ")
    assert equal.tone == ""


def test_refused_and_crashed_cells_show_their_sign_and_reason(document: Document) -> None:
    refused = place_of(document, ("OpenVINO", "batch 1", "fp32"), "1.31.1")
    assert refused.sign is not None
    assert (refused.sign.mark, refused.tone) == ("⊘", "off")
    assert "onnxruntime-openvino has it" in refused.title
    crashed = place_of(document, ("OpenVINO", "batch 8", "fp32"), "openvino 1.24.1")
    assert crashed.sign is not None
    assert crashed.sign.mark == "✕"


def test_a_point_that_the_matrix_does_not_have_is_empty(document: Document) -> None:
    place = place_of(document, ("OpenVINO", "batch 8", "fp32"), "1.29.0")
    assert (place.href, place.tone, place.sign) == ("", "none", None)


def test_a_metric_colours_by_magnitude(document: Document) -> None:
    low = place_of(document, ("CPU", "batch 1", "int8-dynamic"), "1.29.0", metric="p50")
    high = place_of(document, ("CPU", "batch 8", "fp32"), "1.31.1", metric="p50")
    assert (low.tone, high.tone) == ("r1", "r5")
    assert low.sign is None
    memory = place_of(document, ("CPU", "batch 1", "fp32"), "1.29.0", metric="memory")
    assert memory.value == "97.5 MB"


def test_cells_of_one_value_share_the_lightest_colour(by_id: dict[str, Cell]) -> None:
    drawn = heat_map([by_id["b1-a0"]], [], address, metric="p50")
    assert drawn.rows[0].places[0].tone == "r1"
    assert drawn.column_axis.name == "runtime"


def test_more_work_along_the_columns_is_no_slowdown(document: Document) -> None:
    drawn = heat_map(document.cells, document.comparisons, address, columns="batch")
    assert drawn.columns == ["batch 1", "batch 8"]
    place = place_of(document, ("CPU", "fp32", "1.29.0"), "batch 8", columns="batch")
    assert place.sign is not None
    assert (place.sign.word, place.tone) == ("×8.07 the time", "")
    other = place_of(document, ("CPU", "fp32", "1.31.1"), "batch 8", columns="batch")
    assert other.sign is not None
    assert other.sign.word == "not compared"


def test_an_unknown_axis_or_metric_falls_back_to_the_usual_ones(document: Document) -> None:
    drawn = heat_map(document.cells, document.comparisons, address, columns="colour", metric="beauty")
    assert (drawn.column_axis.name, drawn.metric.name) == ("runtime", "verdict")


def test_open_cells_wait_or_breathe(by_id: dict[str, Cell]) -> None:
    blank = {"p50_ms": None, "samples_ms": []}
    open_ = [by_id["b1-a0"].model_copy(update=blank), by_id["b1-a1"].model_copy(update=blank)]
    drawn = heat_map(open_, [], address, states={"b1-a0": "running", "b1-a1": "waiting"})
    running, waiting = drawn.rows[0].places
    assert (running.tone, waiting.tone) == ("running", "")
    assert running.sign is not None
    assert running.sign.word == "running"


def test_a_running_cell_shows_the_median_of_its_launches_so_far(by_id: dict[str, Cell]) -> None:
    one = by_id["b1-a0"].model_copy(update={"p50_ms": 1.92, "p50_ci_ms": None, "samples_ms": [1.91, 1.93]})
    place = heat_map([one], [], address, states={one.id: "running"}).rows[0].places[0]
    assert place.sign is not None
    assert (place.value, place.sign.word, place.tone) == ("1.92 ms", "2 rounds so far", "running")


def test_many_columns_make_the_map_compact(by_id: dict[str, Cell]) -> None:
    one = by_id["b1-a0"]
    many = [one.model_copy(update={"id": f"c{n}", "runtime": f"onnxruntime==1.{n}.0"}) for n in range(9)]
    assert heat_map(many, [], address).is_compact


def test_an_empty_run_has_an_empty_map() -> None:
    assert heat_map([], [], address).rows == []


def test_a_comparison_without_figures_shows_why(document: Document) -> None:
    blank = document.comparisons[0].model_copy(
        update={"ratio": None, "verdict": "not comparable", "reason": "The driver differs."}
    )
    drawn = heat_map(document.cells, [blank], address)
    place = drawn.rows[0].places[1]
    assert place.sign is not None
    assert (place.sign.word, place.title) == ("not comparable", "The driver differs.")
