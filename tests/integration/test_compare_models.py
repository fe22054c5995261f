"""`onnxfarm compare BASE.onnx NEW.onnx`: real runtimes measure both in one block; what cannot be, in a sentence."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from typer.testing import CliRunner, Result

from farm.contract.document import Document
from onnxfarm.here import workbench
from onnxfarm.main import app
from tests.integration.worker.making import MODELS

pytestmark = pytest.mark.usefixtures("shortened")

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org")
BASE = MODELS / "relu_op13_ir7.onnx"


@pytest.fixture(autouse=True)
def _two_rounds() -> Iterator[None]:
    """As a gate with `--rounds 2`: nothing here asserts how sure a comparison is, which takes up to 24."""
    with mock.patch.object(workbench, "select_comparisons", partial(workbench.select_comparisons, rounds=2)):
        yield


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


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (np.nan, 1)], ids=["exported again", "broken"])
def test_a_gate_against_the_model_of_a_commit_passes_an_equal_one_and_fails_a_broken_one(
    home: Path, tmp_path: Path, factor: float, code: int
) -> None:
    model = tmp_path / "encoder.onnx"
    model.write_bytes((MODELS / "cnn_dyn.onnx").read_bytes())
    # what the commit holds is a pointer
    lfs = [["lfs", "install", "--local"], ["lfs", "track", "*.onnx"]] if shutil.which("git-lfs") else []
    for words in (
        ["init", "-q"],
        *lfs,
        ["add", "-A"],
        [*AUTHOR, "commit", "-qm", "base"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    twin(model, factor=factor)
    junit = tmp_path / "gate.xml"
    words = ["gate", model, "--against", "git:HEAD", "--tolerance", "y=0.001", "--fail-on", "parity,failed"]
    options = ["--ort", "1.31.1", "--threads", 2, "--rounds", 8, "--junit", junit, "--home", home]
    result = CliRunner().invoke(app, [str(word) for word in (*words, *options)])
    assert result.exit_code == code, result.stderr
    assert junit.read_text().count("<failure") == code


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Say what is compared"),
        (["--against", BASE, "--baseline", "1.29.0"], "leave out --baseline"),
        (["--baseline", "1.29.0", "--candidate", "1.31.1", "--ort", "1.31.1"], "--ort is for --against"),
        (["--against", "git:HEAD"], "git:HEAD cannot be read"),
    ],
)
def test_a_gate_of_two_models_is_refused_in_a_sentence_where_it_cannot_be(
    home: Path, tmp_path: Path, words: list[object], told: str
) -> None:
    model = tmp_path / "relu.onnx"
    model.write_bytes(BASE.read_bytes())
    result = CliRunner().invoke(app, ["gate", str(model), *map(str, words), "--home", str(home)])
    assert result.exit_code == 2, result.output
    assert told in result.stderr.splitlines()[-1]


def test_a_gate_of_an_unchanged_model_passes_at_once(home: Path) -> None:
    result = CliRunner().invoke(app, ["gate", str(BASE), "--against", str(BASE), "--home", str(home)])
    assert result.exit_code == 0, result.output
    assert "byte for byte, and nothing was measured" in result.stderr
