"""`onnxfarm diverge`: real runtimes, the node named, a part that shows it; a sentence for what cannot be asked."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner, Result

from farm.contract.divergence import DivergenceDocument
from farm.contract.document import Document
from farm.rules.presenting import parities
from onnxfarm.main import app
from tests.integration.worker.making import MODELS

QDQ, QDQ_INPUTS = MODELS / "qdq_bias.onnx", MODELS / "qdq_bias.inputs.npz"
RELU = MODELS / "relu_op13_ir7.onnx"


def diverge(home: Path, *words: object) -> Result:
    return CliRunner().invoke(app, ["diverge", *map(str, words), "--home", str(home)])


def document(path: Path) -> DivergenceDocument:
    found: dict[str, Any] = json.loads(path.read_text())
    return DivergenceDocument.model_validate(found)


@pytest.mark.slow
def test_between_two_releases_the_node_is_named_and_the_part_shows_it_again(home: Path, tmp_path: Path) -> None:
    out, answer = tmp_path / "part", tmp_path / "answer.json"
    words = ["--ort", "1.21.1", "--against", "1.20.1", "--inputs", QDQ_INPUTS]
    result = diverge(home, QDQ, *words, "--out", out, "--json", answer)
    assert result.exit_code == 0, result.stderr
    said = document(answer)
    assert said.output is not None
    graph = onnx.load(QDQ).graph
    names = {node.name: node for node in graph.node}
    assert said.found.node in names
    assert said.found.tensor in names[said.found.node].output
    # the bias is added by the convolution, and a part without it cannot show the difference
    assert "conv" in said.found.part.nodes
    assert said.found.part.shows_it
    assert said.found.part.look.violations > 0
    assert said.found.look.candidate.minimum is not None
    assert said.found.node in result.stderr
    cut = onnx.load(out / said.found.part.main)
    assert [node.name for node in cut.graph.node] == list(said.found.part.nodes)
    assert len(cut.graph.node) < len(graph.node)
    # the command that is given shows it from the written files alone
    given = [str(out / word) if (out / word).is_file() else word for word in shlex.split(said.found.part.command)[2:]]
    again = diverge(home, *given, "--strict")
    assert again.exit_code == 1, again.stderr
    assert "--strict" in again.stderr


@pytest.mark.slow
def test_without_optimisations_there_is_nothing_to_find(home: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    words = ["--ort", "1.31.1", "--level", "disable", "--inputs", QDQ_INPUTS, "--json", answer, "--strict"]
    result = diverge(home, QDQ, *words)
    assert result.exit_code == 0, result.stderr
    said = document(answer)
    assert (said.found, said.candidate.optimization) == (None, "disable")
    assert "no optimisations" in said.reference
    assert "agrees" in said.sentence


@pytest.mark.slow
def test_a_variant_is_compared_with_its_original_by_the_tolerance_that_is_given(home: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    words = ["--ort", "1.31.1", "--precision", "fp16", "--atol", "1e-9", "--rtol", "0", "--json", answer]
    result = diverge(home, MODELS / "cnn_dyn.onnx", *words)
    assert result.exit_code == 0, result.stderr
    said = document(answer)
    # the first weights that were rounded
    assert said.found.op_type == "Conv"
    # a part of the original is not run as a variant of it
    assert not said.found.part.shows_it
    assert (said.atol, said.rtol) == (1e-9, 0.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ort", "1.99.9"], "1.99.9 does not exist"),
        (["--ort", "1.31.1,1.29.0"], "one is compared at a time"),
        (["--ort", "1.31.1", "--against", "newest"], "'newest'"),
        (["--ort", "1.31.1", "--provider", "cpux"], "did you mean 'cpu'"),
        (["--ort", "1.31.1", "--level", "most"], "'most'"),
        (["--ort", "1.31.1", "--precision", "int9"], "Unknown precision 'int9'"),
        (["--ort", "1.31.1", "--inputs", "no-such-file.npz"], "no-such-file.npz"),
        (["--ort", "1.31.1", "--inputs", str(QDQ_INPUTS)], "qdq_bias.inputs.npz"),
        (["--ort", "1.31.1", "--shape", "seq"], "NAME=SIZE"),
        (["--ort", "1.31.1", "--threads", "0"], "'0'"),
        (["--ort", "1.31.1", "--atol", "-1"], "--atol"),
        (["--ort", "1.31.1", "--out", str(RELU)], "--out"),
    ],
)
def test_an_option_that_cannot_be_used_is_told_in_one_sentence(home: Path, options: list[str], words: str) -> None:
    result = diverge(home, RELU, *options)
    assert result.exit_code == 2, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert words in lines[0]


def test_a_model_that_the_runtime_refuses_is_told(home: Path) -> None:
    result = diverge(home, MODELS / "relu_op26_ir13.onnx", "--ort", "1.15.1")
    assert result.exit_code == 2
    assert "opset" in result.stderr


def test_inputs_that_the_model_fails_on_are_told(home: Path, tmp_path: Path) -> None:
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, wrong=np.zeros(3, np.float32))
    result = diverge(home, RELU, "--ort", "1.31.1", "--inputs", inputs)
    assert result.exit_code == 2
    assert "lack 'x'" in result.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("shortened", "two_rounds")
def test_bench_catches_a_change_of_one_quantum_between_runtimes_and_names_the_node(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    words = ["bench", QDQ, "--ort", "1.20.1,1.21.1", "--inputs", QDQ_INPUTS, "--json", out, "--home", home, "--diverge"]
    # two threads: one is measured again and again while other tests keep the cores busy
    result = CliRunner().invoke(app, [str(word) for word in [*words, "--threads", 2]])
    assert result.exit_code == 0, result.stderr
    found = Document.model_validate_json(out.read_text())
    ((old, new, pair),) = parities.find_changed_outputs(found)
    assert (str(old.runtime), str(new.runtime)) == ("onnxruntime==1.20.1", "onnxruntime==1.21.1")
    quantum = float(onnx.numpy_helper.to_array(stored_in(QDQ, "y_scale")))
    assert 0 < pair.outputs[0].violations < 2048
    assert pair.outputs[0].max_abs == pytest.approx(quantum, rel=1e-4)
    assert "The outputs changed between 1.20.1 and 1.21.1" in found.sentence
    assert pair.text in result.stdout
    # the node is named, in the document and on the screen; the command that asks for it by itself is there, too
    assert pair.node in {node.name for node in onnx.load(QDQ).graph.node}
    assert "conv" in pair.divergence
    assert pair.divergence in " ".join(result.stdout.split())
    assert pair.command.startswith("onnxfarm diverge qdq_bias.onnx --ort 1.21.1 --against 1.20.1")


def stored_in(model: Path, name: str) -> onnx.TensorProto:
    return next(tensor for tensor in onnx.load(model).graph.initializer if tensor.name == name)
