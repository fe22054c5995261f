"""Versions of a model in one block on a real farm: the run's page, the outputs' verdict, a gate against a version."""

import json
from pathlib import Path

import httpx2
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from farm.contract.document import Document
from tests.acceptance.conftest import LiveFarm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]
# two threads: samples of one are dropped, and their pairs with them, while other tests keep the cores busy
MATRIX = {"budget": "quick", "models": "previous", "matrix": {"provider": ["cpu"], "threads": [2]}}


def twin(path: Path, *, factor: float = 1.0) -> Path:
    """The convolutions with their first weights times a factor, and other names inside."""
    model = onnx.load(Path(__file__).parents[1] / "models/cnn_dyn.onnx")
    weights = model.graph.initializer[0]
    weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights) * np.float32(factor), weights.name))
    for number, node in enumerate(model.graph.node):
        node.name = f"{path.parent.name}_{number}"
    path.parent.mkdir()
    onnx.save(model, path)
    return path


def test_an_equal_version_is_never_slower_or_faster_and_a_broken_one_fails_the_gate(
    farm: LiveFarm, tmp_path: Path
) -> None:
    farm.upload(twin(tmp_path / "base" / "twins.onnx"))
    document = Document.model_validate(farm.submit(twin(tmp_path / "equal" / "twins.onnx"), MATRIX))
    first, second = (cell for cell in document.cells if cell.twin_of is None)
    assert [(cell.model, cell.status) for cell in (first, second)] == [("twins v1", "done"), ("twins v2", "done")]
    (comparison,) = (found for found in document.comparisons if found.axis == "model")
    assert (comparison.baseline, comparison.candidate) == (first.id, second.id)
    assert comparison.verdict in ("equal", "undecided")
    assert [(beside.cell, beside.verdict) for beside in second.engines] == [(first.id, "pass")]
    with httpx2.Client(base_url=farm.url, follow_redirects=True, timeout=60) as browser:
        farm.sign_in(browser)
        assert "beside twins@1" in browser.get(f"/runs/{document.run}/").text
    broken, report = twin(tmp_path / "broken" / "twins.onnx", factor=np.nan), tmp_path / "gate.json"
    words = ("gate", str(broken), "--against", "twins@2", "--server", farm.url, "--threads", "2")
    done = farm.command(*words, "--fail-on", "parity,failed", "--json", str(report), check=False)
    assert done.returncode == 1, done.stderr
    assert "changes from" in done.stderr
    judged = Document.model_validate(json.loads(report.read_text()))
    assert [cell.model for cell in judged.cells if cell.twin_of is None] == ["twins v2", "twins v3"]
