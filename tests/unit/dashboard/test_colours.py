"""One colour a thing, on all pages: releases, providers, precisions, operators; whatever else is drawn beside them."""

import re
from pathlib import Path

import pytest

from dashboard.figures import cell_bars, colours, latency, ratios, theme, throughput
from farm.contract.cells import Runtime
from farm.contract.document_cells import Cell
from farm.rules.cells.recipes import PRECISIONS
from farm.rules.runtimes.provider_table import PROVIDERS
from farm.rules.runtimes.releases import ONNXRUNTIME
from tests.unit.dashboard.conftest import address

CPU, OPENVINO = "CPUExecutionProvider", "OpenVINOExecutionProvider"
FIGURES = Path(theme.__file__).parent


def release(minor: int) -> Runtime:
    return Runtime.of(f"onnxruntime==1.{minor}.0")


def test_seven_releases_in_a_row_have_seven_colours_and_every_one_its_own() -> None:
    row = [release(minor) for minor in range(25, 32)]
    assert len({colours.runtime_colour(one) for one in row}) == 7
    assert colours.runtime_colour(Runtime.of("onnxruntime==1.29.0")) == "@series-1"
    assert colours.runtime_colour(Runtime.of("onnxruntime==1.31.1")) == "@series-2"
    assert colours.runtime_colour(Runtime.of("nightly")) in {f"@series-{slot}" for slot in range(1, 8)}


@pytest.mark.parametrize("minor", range(15, 25))
def test_releases_that_share_a_colour_have_different_marks(minor: int) -> None:
    assert colours.runtime_colour(release(minor)) == colours.runtime_colour(release(minor + 7))
    assert colours.runtime_mark(release(minor)) != colours.runtime_mark(release(minor + 7))


def test_of_the_newest_releases_no_two_look_alike() -> None:
    newest = [Runtime.of(f"onnxruntime=={version}") for version in ONNXRUNTIME[ONNXRUNTIME.index("1.25.0") :]]
    assert len({(colours.runtime_colour(one), colours.runtime_mark(one)) for one in newest}) == len(newest)


@pytest.mark.parametrize(
    "together",
    [
        (CPU, "CUDAExecutionProvider", "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider"),
        (CPU, OPENVINO, "XnnpackExecutionProvider", "DmlExecutionProvider"),
        (CPU, "QNNExecutionProvider", "XnnpackExecutionProvider", "ACLExecutionProvider"),
        (CPU, "CoreMLExecutionProvider", "XnnpackExecutionProvider", "WebGpuExecutionProvider"),
        (CPU, "MIGraphXExecutionProvider", "ROCMExecutionProvider"),
    ],
)
def test_providers_that_run_one_model_together_have_different_colours(together: tuple[str, ...]) -> None:
    assert len({colours.provider_colour(name) for name in together}) == len(together)


def test_every_provider_and_precision_that_the_farm_knows_has_a_colour_and_a_stranger_keeps_one() -> None:
    assert {colours.provider_colour(one.name) for one in PROVIDERS} <= {
        theme.OTHER,
        *(f"@series-{n}" for n in range(1, 8)),
    }
    assert len({colours.precision_colour(name) for name in PRECISIONS}) == len(PRECISIONS)
    assert colours.provider_colour("ExampleExecutionProvider") == colours.provider_colour("ExampleExecutionProvider")


def test_an_operator_keeps_its_colour_unless_a_larger_one_has_it() -> None:
    assert colours.assign_operator_colours(["MatMul", "Add"]) == {"MatMul": "@series-1", "Add": "@series-5"}
    assert colours.assign_operator_colours(["Add", "MatMul"]) == {"MatMul": "@series-1", "Add": "@series-5"}
    assert colours.assign_operator_colours(["Gemm", "MatMul"])["Gemm"] == "@series-1"
    seven = colours.assign_operator_colours([f"Op{number}" for number in range(9)])
    assert len(set(seven.values())) == len(seven) == 7


def test_lines_named_by_their_precisions_or_providers_have_the_colours_of_these() -> None:
    assert colours.assign_name_colours(["int8-dynamic", "fp32"]) == [
        colours.precision_colour("int8-dynamic"),
        colours.precision_colour("fp32"),
    ]
    assert colours.assign_name_colours(["CPU", "OpenVINO"]) == [theme.OTHER, colours.provider_colour(OPENVINO)]
    assert colours.assign_name_colours([f"batch {n}" for n in range(9)])[6:] == ["@series-7", theme.OTHER, theme.OTHER]


def test_a_release_has_the_same_colour_in_every_chart_of_a_run(by_id: dict[str, Cell]) -> None:
    both = [by_id["b1-a0"], by_id["b1-a1"]]
    own = [colours.runtime_colour(cell.runtime) for cell in both]
    assert [one["marker"]["color"] for one in latency.draw_latency(both, [], address).data] == own
    assert [one["line"]["color"] for one in throughput.draw_throughput(both, address).data] == own
    assert cell_bars.draw_memory(both, address).data[0]["marker"]["color"] == own


def test_cells_of_one_release_are_told_apart_by_provider_or_precision(by_id: dict[str, Cell]) -> None:
    plain = by_id["b1-a0"]
    int8, openvino = (
        plain.model_copy(update={"precision": "int8-dynamic"}),
        plain.model_copy(update={"provider": OPENVINO}),
    )
    assert colours.choose_cell_colour([plain, int8])(int8) == colours.precision_colour("int8-dynamic")
    assert colours.choose_cell_colour([plain, openvino, int8])(openvino) == colours.provider_colour(OPENVINO)
    assert colours.choose_cell_colour([plain])(plain) == colours.runtime_colour(plain.runtime)


def test_of_many_releases_seven_are_coloured_the_rest_is_grey(by_id: dict[str, Cell]) -> None:
    many = [by_id["b1-a0"].model_copy(update={"id": f"c{n}", "runtime": release(n)}) for n in range(15, 31)]
    drawn = latency.draw_latency(many, [], address).data
    coloured = [one["name"] for one in drawn if one["marker"]["color"] != theme.OTHER]
    assert coloured == ["1.15.0", *(f"1.{minor}.0" for minor in range(25, 31))]
    lines = [many[0].model_copy(update={"id": f"t{n}", "threads": n, "throughput": float(n)}) for n in range(1, 13)]
    drawn = throughput.draw_throughput(lines, address).data
    assert sum(one["line"]["color"] != theme.OTHER for one in drawn) == 7
    assert drawn[0]["line"]["color"] == theme.OTHER


def test_a_batch_that_a_line_was_not_measured_with_is_a_gap(by_id: dict[str, Cell]) -> None:
    first, second = by_id["b1-a0"], by_id["b1-a1"]
    cells = [
        one.model_copy(update={"id": f"{one.id}-{batch}", "batch": batch, "throughput": 100.0 + batch})
        for one, batches in ((first, (1, 2, 4)), (second, (1, 4)))
        for batch in batches
    ]
    whole, broken = throughput.draw_throughput(cells, address).data
    assert whole["y"] == [101.0, 102.0, 104.0]
    assert (broken["x"], broken["y"], broken["connectgaps"]) == (["1", "2", "4"], [101.0, None, 104.0], False)
    assert broken["customdata"][1] == ""


def test_no_figure_assigns_a_series_colour_itself() -> None:
    """Series by number stand in colours.py; targets of Across hardware, which no other page draws, in pareto.py."""
    named = {path.name for path in FIGURES.glob("*.py") if re.search(r"@series-(\{|\d)", path.read_text())}
    assert named == {"colours.py", "pareto.py"}
    assert ratios.NAME
