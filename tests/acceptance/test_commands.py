"""The command line from a model to results, on a farm with a real agent."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.acceptance.conftest import LiveFarm
from tests.conftest import MODELS

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]
# two threads: a sample of one is measured again and again while other tests keep the cores busy
ONE_CELL = "budget: quick\nmatrix:\n  runtime: [1.31.1]\n  batch: [2]\n  threads: [2]\n"
ONE_OF_TWO = "budget: quick\nmatrix:\n  runtime: [1.15.1, 1.31.1]\n  threads: [2]\n"


def test_a_submitted_run_is_followed_timed_out_cancelled_and_read(farm: LiveFarm, tmp_path: Path) -> None:
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(ONE_CELL)
    words = ["submit", str(MODELS / "cnn_dyn.onnx"), "--matrix", str(matrix), "--name", "followed"]
    late = farm.command(*words, "--wait", "--timeout", "0.001", check=False)
    assert late.returncode == 4, late.stderr
    assert "it goes on" in late.stderr
    started = farm.command(*words)
    run = started.stdout.strip()
    assert f"Run {run}: " in farm.command("status", run).stdout
    farm.command("cancel", run)
    farm.command("cancel", run)
    assert "cancelled" in farm.command("status", run).stdout
    assert json.loads(farm.command("status", run, "--json").stdout)["outcome"] == "cancelled"
    assert run in farm.command("status").stdout
    rows = list(csv.DictReader(io.StringIO(farm.command("results", run, "--csv").stdout)))
    assert rows[0]["status"] in ("cancelled", "done")


def test_waiting_ends_with_the_table_and_a_document_that_others_can_read(farm: LiveFarm, tmp_path: Path) -> None:
    matrix, document = tmp_path / "matrix.yaml", tmp_path / "run.json"
    matrix.write_text(ONE_OF_TWO)
    words = ["submit", str(MODELS / "relu_op22_ir10.onnx"), "--matrix", str(matrix), "--wait", "--json", str(document)]
    strict = farm.command(*words, "--strict", check=False)
    assert strict.returncode == 1, strict.stderr
    assert "--strict" in strict.stderr.strip().splitlines()[-1]
    assert "⊘ refused" in strict.stderr
    assert "opset" in strict.stderr
    written = json.loads(document.read_text())
    assert written["schema"] == "onnxfarm.bench/1"
    statuses = {cell["runtime"]: cell["status"] for cell in written["cells"]}
    assert statuses == {"onnxruntime==1.15.1": "refused", "onnxruntime==1.31.1": "done"}
