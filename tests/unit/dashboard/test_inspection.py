"""What pages read from a version's inspection: pure, in words."""

from collections.abc import Mapping

import pytest

from dashboard.reading.inspection import Inspection as Shown
from dashboard.reading.inspection import make_inspection
from farm.rules.runtimes.models import GenaiFacts
from farm.workshop.inspection import Inspection


def inspected(found: Mapping[str, object]) -> Shown:
    return make_inspection(Inspection.model_validate({"ok": True, **found}))


def test_an_inspection_is_shown_with_its_findings_explained() -> None:
    found = inspected(
        {
            "opsets": {"": 17, "com.microsoft": 1},
            "ir_version": 8,
            "nodes": 60,
            "nodes_below": 4,
            "parameters": 1_051_904,
            "parameters_bytes": 4_207_616,
            "batch": "N",
            "inputs": [{"name": "x", "dtype": "float32", "shape": ["N", 3]}],
            "outputs": [{"name": "y", "dtype": "float32", "shape": None}],
            "operators": {"MatMul": 4, "Add": 9},
            "findings": [
                {"id": "training_mode", "detail": "Dropout_1 drops values.", "count": 2, "where": ["Dropout_1"]},
                {"id": "brand_new", "detail": "Something."},
            ],
        }
    )
    shown = {fact.name: fact.text for fact in found.facts}
    assert shown["Opset"] == "ai.onnx 17, com.microsoft 1"
    assert shown["Nodes"] == "60 and 4 below"
    assert shown["Parameters"] == "1.05 M in 4.21 MB"
    assert shown["Batch"] == "dynamic (N)"
    known, unknown = found.findings
    assert known.title == "Operators in training mode"
    assert known.detail == "Dropout_1 drops values. (2 places)"
    assert unknown.title == "brand new"
    ports, kinds = found.tables
    assert [row[3].text for row in ports.rows] == ["[N, 3]", "unknown rank"]
    assert [row[0].text for row in kinds.rows] == ["Add", "MatMul"]


def test_an_inspection_says_of_a_decoder_what_it_is_or_what_is_missing() -> None:
    ids: dict[str, object] = {"name": "input_ids", "dtype": "int64", "shape": ["batch", "sequence"]}
    scores: dict[str, object] = {"name": "logits", "dtype": "float32", "shape": ["batch", "sequence", 99]}
    past: dict[str, object] = {"name": "past_0", "dtype": "float32", "shape": [2, "batch", 4, "past", 8]}
    present: dict[str, object] = {**past, "name": "present_0"}
    paired = inspected({"inputs": [ids, past], "outputs": [scores, present]})
    assert {fact.name: fact.text for fact in paired.facts}["Generates"] == (
        "a decoder with past: 1 layer, 4 heads of 8, vocabulary 99"
    )
    alone = inspected({"inputs": [ids, past], "outputs": [scores]})
    assert "past_0 has no present output" in {fact.name: fact.text for fact in alone.facts}["Generates"]


@pytest.mark.parametrize(("batch", "text"), [(4, "fixed at 4"), (None, "the first dimension is not a batch")])
def test_an_old_or_sparse_inspection_is_shown_as_far_as_it_goes(batch: int | None, text: str) -> None:
    found = inspected({"batch": batch, "parameters": 900, "parameters_bytes": 3600})
    shown = {fact.name: fact.text for fact in found.facts}
    assert shown["Batch"] == text
    assert shown["Parameters"] == "900 in 3.60 kB"
    assert found.findings == []


LLAMA = GenaiFacts(type="llama", vocabulary=1000, context=512)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (LLAMA.model_dump(), LLAMA.words),
        ({"type": "llama", "problem": "It names a file that is missing."}, "It names a file that is missing."),
    ],
)
def test_a_configuration_of_onnxruntime_genai_is_said_in_a_line(told: dict[str, object], text: str) -> None:
    facts = {fact.name: fact.text for fact in inspected({"genai": told}).facts}
    assert facts["With onnxruntime-genai"] == text
