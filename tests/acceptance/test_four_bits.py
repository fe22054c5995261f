"""Weights in 4 bits through a whole farm: made by the prepare worker, measured by an agent, or refused in words."""

from typing import Any

import pytest

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from tests.acceptance.conftest import LiveFarm
from tests.conftest import MODELS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

# two threads, as in test_run
MATRIX: dict[str, Any] = {
    "budget": "glance",
    "matrix": {
        "runtime": ["onnxruntime==1.31.1"],
        "batch": [1],
        "precision": ["fp32", "int4:block=32"],
        "threads": [2],
    },
}


def by_precision(document: dict[str, Any]) -> dict[str, Cell]:
    cells = Document.model_validate(document).cells
    return {cell.precision: cell for cell in cells if cell.twin_of is None}


def test_a_variant_in_four_bits_is_made_stored_and_measured(farm: LiveFarm) -> None:
    # at a glance nothing is traced
    document = farm.submit(MODELS / "encoder_dyn.onnx", {**MATRIX, "budget": "quick"})
    plain, few = (by_precision(document)[name] for name in ("fp32", "int4"))
    assert (plain.status, few.status) == ("done", "done"), few.reason
    assert few.digest != plain.digest
    # what the worker left in the store is what the agent measured
    assert few.model_bytes is not None
    assert plain.model_bytes is not None
    assert 0 < few.model_bytes < 0.6 * plain.model_bytes
    assert few.executed["CPUExecutionProvider"].get("MatMulNBits", 0) > 0
    assert "MatMulNBits" not in plain.executed["CPUExecutionProvider"]
    assert few.p50_ms is not None
    assert few.parity.verdict != "not_measured"
    [compared] = [one for one in document["comparisons"] if one["axis"] == "precision"]
    assert {compared["baseline"], compared["candidate"]} == {plain.id, few.id}
    assert "int4" in farm.command("results", str(document["run"])).stdout


def test_a_model_without_a_matmul_is_refused_in_the_words_of_the_worker_and_its_other_cells_go_on(farm: LiveFarm):
    cells = by_precision(farm.submit(MODELS / "cnn_dyn.onnx", MATRIX))
    assert cells["fp32"].status == "done"
    refused = cells["int4"]
    assert (refused.status, refused.p50_ms) == ("refused", None)
    assert "int4" in refused.reason.text
