"""The axes of a cell are one table: whatever names, sorts or shows cells takes every entry of it."""

import csv
import io
from typing import Any

import pytest
from rich.console import Console

from dashboard import axes as pages
from farm.contract.cells import CellSpec, Recipe, Runtime, SessionSettings, Workload
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells import axes, label
from farm.rules.cells.axes import AXES, BY_NAME, MATRIX_AXES, NO_DEFAULT, Axis
from farm.rules.cells.matrices import build_matrix
from farm.rules.findings import cell_pairs
from farm.rules.presenting import sentences
from farm.rules.presenting.spreadsheets import make_csv
from onnxfarm.here import matching_cells
from onnxfarm.screen import show
from tests.documents import CPU, make_cell, make_document

# for each axis what another cell may have, and how that reads on its own; an axis without an entry fails here
OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "model": ({"model": "decoder", "model_sha256": "1" * 64}, "decoder"),
    "hardware": ({"hardware": "arm"}, "arm"),
    "node": ({"node": "pi"}, "pi"),
    "provider": ({"provider": "TensorrtExecutionProvider"}, "TensorRT"),
    "provider_options": ({"provider_options": {"streams": "2", "device": "1"}}, "device=1 streams=2"),
    "policy": ({"policy": "prefer-npu"}, "policy prefer-npu"),
    "call": ({"call": "run"}, "session.run"),
    "batch": ({"batch": 8}, "batch 8"),
    "shapes": ({"shapes": {"sequence": 64}}, "sequence=64"),
    "precision": ({"precision": "int8-dynamic"}, "int8-dynamic"),
    "opset": ({"opset": 21}, "opset 21"),
    "threads": ({"threads": 4}, "4 threads"),
    "optimization": ({"optimization": "basic"}, "optimization basic"),
    "session": ({"session": {"name": "quiet", "spinning": False}}, "session quiet"),
    "concurrency": ({"concurrency": 4}, "4 streams"),
    "scenario": ({"scenario": "sustained:10"}, "sustained 10 min"),
    "memory-limit-mb": ({"memory_limit_mb": 1024}, "memory limit 1,024 MiB"),
    "runtime": ({"runtime": "onnxruntime-openvino==1.24.1"}, "openvino 1.24.1"),
}
every_axis = pytest.mark.parametrize("axis", AXES, ids=[axis.name for axis in AXES])


def cell(name: str = "c1", **changes: Any) -> Cell:
    known = {"digest": "0" * 64, "model_sha256": "0" * 64, "opset": 17, "session": {"name": "default"}}
    measured = {"active_providers": [CPU], "node": "bench-1", "p50_ms": 1.0}
    return make_cell(name, **(known | measured | changes))


def other(axis: Axis) -> Cell:
    return cell("c2", **OTHERS[axis.name][0])


@every_axis
def test_a_value_reads_the_same_wherever_it_stands_on_its_own(axis: Axis) -> None:
    assert axis.label(other(axis)) == OTHERS[axis.name][1]


@every_axis
def test_two_cells_that_differ_along_an_axis_are_told_apart_by_it_on_pages(axis: Axis) -> None:
    cells = [cell(), other(axis)]
    assert axis in pages.varying_axes(cells)
    assert OTHERS[axis.name][1] in label.label_along(cells[1], pages.varying_axes(cells))
    assert len(pages.places(cells, [axis])) == 2


@every_axis
def test_an_axis_reads_fields_that_a_document_has(axis: Axis) -> None:
    assert set(axis.fields) <= set(Cell.model_fields)
    assert axis.short(cell()) != axis.short(other(axis))


def test_what_goes_without_saying_is_not_said() -> None:
    usual = cell(batch=None)
    assert label.describe_cell(usual, AXES, without=("model", "node", "hardware")) == (
        "CPU, fp32, opset 17, 1 thread, 1.29.0"
    )
    assert BY_NAME["session"].is_default(cell(session={}))


@every_axis
def test_a_comparison_along_an_axis_names_its_sides_by_it(axis: Axis) -> None:
    pair = Comparison(
        baseline="c1", candidate="c2", axis=axis.name, verdict="slower", ratio=1.2, ci_low=1.1, ci_high=1.3, margin=0.02
    )
    text = sentences.comparison_sentence(pair, {"c1": cell(), "c2": other(axis)})
    named = "ONNX Runtime 1.24.1 (onnxruntime-openvino)" if axis.name == "runtime" else OTHERS[axis.name][1]
    sign = "▲ more items/s" if axis.name == "batch" else "▲ slower"
    assert text.startswith(f"{sign}: {named} runs ")


@pytest.mark.parametrize("axis", label.WORKLOAD, ids=[axis.name for axis in label.WORKLOAD])
def test_a_sentence_and_a_series_say_what_a_cell_is_measured_with(axis: Axis) -> None:
    said = OTHERS[axis.name][1]
    assert said in label.workload_label(other(axis)).split(", ")
    assert said in cell_pairs.series_label(other(axis)).split(", ")
    assert said not in label.workload_label(other(axis), without=axis.name)
    assert said in sentences.cell_sentence(other(axis))


@every_axis
def test_every_axis_is_a_column_of_the_csv_file(axis: Axis) -> None:
    usual, changed = csv.DictReader(io.StringIO(make_csv(make_document(cell(), other(axis)))))
    assert usual[axis.name] != changed[axis.name]


@every_axis
def test_every_axis_that_varies_is_a_column_of_the_terminal(axis: Axis) -> None:
    text = io.StringIO()
    show(make_document(cell(), other(axis)), console=Console(file=text, width=160, color_system=None))
    assert axis.heading.lower() in next(line for line in text.getvalue().splitlines() if "p50" in line)
    assert axis.short(other(axis)) in text.getvalue()


@every_axis
def test_what_a_cell_measures_keeps_it_apart_from_others_when_documents_are_compared(axis: Axis) -> None:
    old, new = (one.model_dump(mode="json") for one in (cell(), other(axis)))
    matches, *_ = matching_cells.match_cells([old], [new])
    may_differ = {"model", "runtime", "opset"}
    assert bool(matches) == (axis.name in may_differ or not axis.is_setting)


def test_every_setting_is_an_axis_of_a_matrix_and_stands_in_copied_matrices() -> None:
    parts = {"provider_options": "provider"}
    settings = {parts.get(axis.name, axis.name) for axis in AXES if axis.is_setting} - {"model"}
    assert settings | {"hardware"} == set(MATRIX_AXES)
    spec = CellSpec(
        artifact_sha256="0" * 64, hardware="arm", runtime=Runtime(distribution="onnxruntime", version="1.29.0"),
        recipe=Recipe(opset=21),
        workload=Workload(batch=8, shapes={"sequence": 64}, concurrency=4, scenario="sustained:10"),
        session=SessionSettings(
            threads=4, optimization="basic", spinning=False, policy="prefer-npu", memory_limit_mb=64, call="run"
        ),
    )  # fmt: skip
    assert set(build_matrix([spec])) == set(MATRIX_AXES)
    assert set(build_matrix([CellSpec(artifact_sha256="0" * 64, runtime=spec.runtime)])) == {
        axis.name for axis in AXES if axis.is_setting and axis.default is NO_DEFAULT and axis.name != "model"
    }


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"past_sequence_length": 256, "sequence_length": 1}, "1 token behind 256"),
        (
            {"past_decoder_sequence_length": 8, "encoder_sequence_length": 64},
            "encoder_sequence_length=64 past_decoder_sequence_length=8",
        ),
        ({"past_length": 0, "seq": 64, "total_length": 64}, "64 tokens behind 0"),
        ({"p": 256, "past + sequence": 257, "sequence": 1}, "p=256 past + sequence=257 sequence=1"),
        ({"past": 256, "past + sequence": 300, "sequence": 1}, "past=256 past + sequence=300 sequence=1"),
        ({"past": 256, "encoder": 64, "sequence": 1}, "encoder=64 past=256 sequence=1"),
        ({}, ""),
    ],
)
def test_lengths_of_a_decoder_are_said_in_words(sizes: dict[str, int], words: str) -> None:
    assert axes.format_sizes(sizes) == words
