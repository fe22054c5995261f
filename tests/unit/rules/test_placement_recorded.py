"""Placement findings of recorded traces: what ran the same is no change, and what did not stays found.

placements.jsonl holds what `tests.bench.placements` traced: a classifier of the package rapidocr-onnxruntime, and the
convolutional model of tests/models stamped with two opsets.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell, OperatorTime
from farm.rules.changes import gate, watch_rounds
from farm.rules.tracing.executions import count_kernels, histogram_to_counts
from farm.rules.tracing.placement import compare_cell_placements, compare_placements
from tests.documents import make_cell, make_comparison, make_document

CPU, OTHER = "CPUExecutionProvider", "CUDAExecutionProvider"
RECORDED = [json.loads(line) for line in Path(__file__).with_name("placements.jsonl").read_text().splitlines()[1:]]
SIDES = {"old": Runtime.of("onnxruntime==1.0"), "new": Runtime.of("onnxruntime==2.0")}
CLASSIFIER, CONVOLUTIONS = "ch_ppocr_mobile_v2.0_cls_infer", "cnn_fixed_b1"


def traced(model: str, release: str) -> list[OperatorTime]:
    (line,) = [line for line in RECORDED if (line["model"], line["release"]) == (model, release)]
    return [
        OperatorTime(node=node, covers=covers, op_type=op_type, provider=provider, time_us=1.0)
        for op_type, provider, node, *covers in line["executed"]
    ]


def cell(name: str, operators: Sequence[OperatorTime]) -> Cell:
    return make_cell(name, runtime=f"onnxruntime=={name}", operators=list(operators), copies=0)


def document(old: Sequence[OperatorTime], new: Sequence[OperatorTime]) -> Document:
    pair = make_comparison("equal", 1.0, baseline="1.0", candidate="2.0")
    return make_document(cell("1.0", old), cell("2.0", new), comparisons=[pair])


def gated(old: Sequence[OperatorTime], new: Sequence[OperatorTime]) -> gate.GateAnswer:
    return gate.judge_gate(
        document(old, new),
        old=Runtime.of("onnxruntime==1.0"),
        new=Runtime.of("onnxruntime==2.0"),
        fail_on=["placement"],
    )


def test_the_gate_passes_where_both_releases_executed_the_same_operators() -> None:
    old, new = traced(CLASSIFIER, "1.29.0"), traced(CLASSIFIER, "1.31.1")
    assert count_kernels(old) == count_kernels(new)
    answer = gated(old, new)
    assert (answer.is_passed, answer.findings) == (True, ())


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_which_is_by_time_says_nothing(seed: int) -> None:
    dice = random.Random(seed)
    for model, release in ((CLASSIFIER, "1.29.0"), (f"{CONVOLUTIONS}, opset 21", "1.24.4")):
        rows = traced(model, release)
        shuffled = dice.sample(rows, len(rows))
        assert compare_placements(rows, shuffled) == []


def test_no_finding_names_a_layout_copy_as_a_fusion() -> None:
    whole = traced(CLASSIFIER, "1.29.0")
    dropped = [row for row in whole if row.op_type not in ("ReorderInput", "ReorderOutput")]
    assert [change.sentence() for change in compare_placements(whole, dropped)] == []
    moved = [row.model_copy(update={"provider": OTHER}) for row in whole]
    assert "Reorder" not in " ".join(change.sentence() for change in compare_placements(whole, moved))


@pytest.mark.parametrize(
    "fused", [(f"{CONVOLUTIONS}, opset 21", "1.24.4"), (f"{CONVOLUTIONS}, opset 22", "1.25.1")], ids=" on ".join
)
def test_fusions_that_a_stamp_costs_fail_the_gate(fused: tuple[str, str]) -> None:
    old, new = traced(*fused), traced(f"{CONVOLUTIONS}, opset 22", "1.24.4")
    assert not gated(old, new).is_passed
    gone = [change for change in compare_placements(old, new) if change.kind == "fusion_gone"]
    lost = {node for change in gone for node in change.nodes}
    assert lost >= {"node_Conv_144", "node_add", *(f"node_relu{end}" for end in ("", "_1", "_2", "_3", "_4", "_5"))}
    assert {change.kind for change in compare_placements(new, old)} == {"fusion_new"}


def test_a_fusion_that_one_of_many_nodes_loses_is_found_under_the_copy_that_ended_it() -> None:
    old = traced(CLASSIFIER, "1.29.0")
    # HardSigmoid@4 is executed by a Conv whose result a ReorderOutput hands on
    apart = [
        OperatorTime(node=node, op_type=kind, provider=CPU, time_us=1.0)
        for node, kind in (("Conv@30", "Conv"), ("HardSigmoid@4", "HardSigmoid"))
    ]
    new = [*(row for row in old if row.node != "HardSigmoid@4"), *apart]
    (change,) = [change for change in compare_placements(old, new) if "HardSigmoid@4" in change.nodes]
    assert (change.kind, change.nodes, change.before) == ("fusion_gone", ("Conv@30", "HardSigmoid@4"), "Conv")
    assert not gated(old, new).is_passed


def test_a_node_that_falls_back_to_the_processor_fails_the_gate_and_alerts() -> None:
    new = traced(CLASSIFIER, "1.31.1")
    old = [row.model_copy(update={"provider": OTHER}) if row.node == "Softmax@0" else row for row in new]
    answer = gated(old, new)
    assert [finding.text.partition(": ")[2] for finding in answer.failures] == [
        f"Identity@0, Softmax@0 moved from {OTHER} to {CPU}."
    ]
    judged = watch_rounds.judge(document(old, new), watch_rounds.Rule(), **SIDES)
    assert [finding.kind for finding in judged.findings] == ["placement"]


def test_copies_between_host_and_device_are_found_though_they_are_no_operators_of_the_model() -> None:
    rows = traced(CLASSIFIER, "1.31.1")
    copy = OperatorTime(node="Softmax@0", op_type="MemcpyToHost", provider=OTHER, time_us=1.0)
    (change,) = compare_placements(rows, [*rows, copy], copies=(0, 1))
    assert (change.kind, change.is_worse) == ("copies", True)


def test_a_transpose_beside_the_operator_that_it_serves_is_a_copy_and_one_by_itself_is_not() -> None:
    conv = OperatorTime(node="conv", op_type="Conv", provider=CPU, time_us=1.0)
    transpose = conv.model_copy(update={"op_type": "Transpose"})
    assert count_kernels([conv, transpose]) == count_kernels([conv])
    assert len(count_kernels([conv, transpose.model_copy(update={"node": "turned"})])) == 2


def test_a_change_elsewhere_gives_nodes_that_ran_alike_no_finding() -> None:
    old, rest = traced(CLASSIFIER, "1.29.0"), traced(CLASSIFIER, "1.31.1")
    new = [row.model_copy(update={"provider": OTHER}) if row.node == "Softmax@0" else row for row in rest]
    assert {node for change in compare_placements(old, new) for node in change.nodes} == {"Softmax@0", "Identity@0"}


def test_rows_that_a_document_has_no_room_for_make_no_finding() -> None:
    old, whole = traced(CLASSIFIER, "1.29.0"), traced(CLASSIFIER, "1.31.1")
    cut = [row for row in whole if not (row.node == "BatchNormalization@12" and row.op_type == "Conv")]
    assert compare_placements(old, cut) != []
    sides = [
        cell("1.0", old).model_copy(update={"executed": histogram_to_counts(count_kernels(old))}),
        cell("2.0", cut).model_copy(update={"executed": histogram_to_counts(count_kernels(whole))}),
    ]
    assert compare_cell_placements(*sides) == []
