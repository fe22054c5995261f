"""`onnxfarm compare BASE.onnx NEW.onnx`: real runtimes measure both in one block; what cannot be, in a sentence."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from typer.testing import CliRunner, Result

from farm.contract.document import Document
from onnxfarm.main import app
from tests.integration.worker.making import MODELS

pytestmark = pytest.mark.usefixtures("shortened")

BASE = MODELS / "relu_op13_ir7.onnx"


def compare(home: Path, *words: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, words), "--home", str(home)])


def twin(path: Path, *, factor: float = 1.0) -> Path:
    """The model with its first weights times a factor, and other names inside."""
    model = onnx.load(MODELS / "cnn_dyn.onnx")
    weights = model.graph.initializer[0]
    weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights) * np.float32(factor), weights.name))
    for number, node in enumerate(model.graph.node):
        node.name = f"exported_{number}"
    onnx.save(model, path)
    return path


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("factor", "tolerance", "outputs"),
    [(1.0, ["--tolerance", "y=0.001"], "pass"), (1.001, [], "not_measured"), (np.nan, [], "fail")],
    ids=["exported again", "retrained", "broken"],
)
def test_two_models_are_measured_side_by_side_and_their_outputs_judged(
    home: Path, tmp_path: Path, factor: float, tolerance: list[str], outputs: str
) -> None:
    new = twin(tmp_path / "new.onnx", factor=factor)
    result = compare(home, MODELS / "cnn_dyn.onnx", new, "--ort", "1.31.1", "--threads", 2, *tolerance, "--json")
    assert result.exit_code == 0, result.stderr
    document = Document.model_validate(json.loads(result.stdout))
    assert [(cell.model, cell.status, cell.block) for cell in document.cells] == [
        ("cnn_dyn", "done", "b1"),
        ("new", "done", "b1"),
    ]
    (comparison,) = document.comparisons
    assert (comparison.axis, comparison.baseline, comparison.candidate) == ("model", "c1", "c2")
    assert comparison.rounds > 0
    assert [pair.verdict for pair in document.cells[1].engines] == [outputs]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_models_of_another_fixed_batch_are_compared_by_time_alone_which_is_said(home: Path) -> None:
    result = compare(home, MODELS / "cnn_fixed_b1.onnx", MODELS / "cnn_fixed_b4.onnx", "--threads", 2, "--json")
    assert "They take different inputs" in result.stderr
    document = Document.model_validate(json.loads(result.stdout))
    assert [cell.engines for cell in document.cells] == [[], []]
    assert document.comparisons[0].items_ratio is not None


@pytest.mark.parametrize(
    ("old", "new", "words", "told"),
    [
        (BASE, "old.json", [], "give two models, or two files"),
        ("old.json", "new.json", ["--ort", "1.31.1"], "leave out the options that measure"),
        ("old.json", "new.json", ["--seed", 3], "leave out the options that measure"),
        (BASE, BASE, ["--margin", 0.1], "--margin is for two files"),
        (BASE, BASE, ["--recipe", "top1"], "--evaluation"),
        (BASE, BASE, [], "are the same model"),
        (BASE, "missing.onnx", [], "missing.onnx"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(
    home: Path, old: object, new: object, words: list[object], told: str
) -> None:
    result = compare(home, old, new, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr.splitlines()[-1]
