"""int4: made by ONNX Runtime's own tool, of whatever has a MatMul by stored weights, and refused of the rest."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from farm.workshop.child import reference
from farm.workshop.samples import builders as samples
from tests.unit.workshop import making
from tests.unit.workshop.test_variants import done, problem, variant

RANDOM = np.random.default_rng(4)


def drawn(name: str, *shape: int) -> onnx.TensorProto:
    return making.weight(name, RANDOM.standard_normal(shape).astype(np.float32))


def model_of(nodes: list[onnx.NodeProto], *weights: onnx.TensorProto) -> onnx.ModelProto:
    return making.model(nodes, [making.port("x", ["batch", 64])], [making.port("y", ["batch", 64])], weights=weights)


def matmul(**changes: Any) -> onnx.ModelProto:
    return model_of([helper.make_node("MatMul", ["x", "w"], ["y"], name="only", **changes)], drawn("w", 64, 64))


def attributes(model: onnx.ModelProto) -> list[dict[str, Any]]:
    found = [node for node in model.graph.node if node.op_type == "MatMulNBits"]
    return [{one.name: one.i for one in node.attribute} for node in found]


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float((one * other).sum() / np.sqrt((one * one).sum() * (other * other).sum()))


@pytest.mark.parametrize("block", [16, 32, 64, 128, 256])
def test_weights_are_kept_in_blocks_of_each_size(block: int, tmp_path: Path) -> None:
    folder = making.save(matmul(), tmp_path / "in")
    made, history = done(folder, tmp_path / "out", precision="int4", options={"block": str(block)})
    assert attributes(made) == [{"K": 64, "N": 64, "bits": 4, "block_size": block}]
    assert (made.ir_version, [(one.domain, one.version) for one in made.opset_import]) == (
        8, [("com.microsoft", 1)],
    )  # fmt: skip
    assert history == [
        f"Quantised with onnxruntime 1.31.1: int4, weights of 1 MatMul in blocks of {block}, with zero points."
    ]
    x = {"x": RANDOM.standard_normal((3, 64)).astype(np.float32)}
    plain, few = (reference.run_reference(place / "model.onnx", x)[0]["y"] for place in (folder, tmp_path / "out"))
    assert 0.97 < cosine(plain, few) < 0.99999


def test_what_was_asked_for_stands_in_the_model_and_in_its_history(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
        helper.make_node("MatMul", ["h", "v"], ["y"], name="last"),
    ]
    folder = making.save(model_of(nodes, drawn("w", 64, 64), drawn("v", 64, 64)), tmp_path / "in")
    options = {"symmetric": "true", "accuracy-level": "4", "exclude-nodes": "last"}
    made, history = done(folder, tmp_path / "out", precision="int4", options=options)
    assert attributes(made) == [{"K": 64, "N": 64, "bits": 4, "block_size": 32, "accuracy_level": 4}]
    assert [len(node.input) for node in made.graph.node] == [3, 2]
    assert history[0].endswith("weights of 1 MatMul in blocks of 32, symmetric, accuracy level 4, without last.")
    _, text = problem(folder, tmp_path / "no", precision="int4", options={"exclude-nodes": "lost"})
    assert text == "Unknown node in exclude-nodes 'lost': did you mean 'last'?"


def test_weights_of_constants_and_weights_that_two_share_are_stored_once(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Constant", [], ["w"], value=drawn("", 64, 64)),
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
    ]
    made, _ = done(making.save(model_of(nodes), tmp_path / "in"), tmp_path / "out", precision="int4")
    assert len(attributes(made)) == 2
    assert sorted(one.name for one in made.graph.initializer) == ["w_Q4", "w_scales", "w_zero_points"]


def test_the_sample_decoder_is_an_eighth_in_its_weights_and_says_what_stayed(tmp_path: Path) -> None:
    samples.write_model("decoder", tmp_path / "in")
    answer = variant(tmp_path / "in", tmp_path / "out", main="decoder.onnx", precision="int4")["answer"]
    (coverage,) = [one for one in answer["coverage"] if one["op_type"] == "MatMul"]
    assert (coverage["all"], len(coverage["kept_float"])) == (17, 4)
    before, after = ((tmp_path / place / "decoder.onnx").stat().st_size for place in ("in", "out"))
    assert after < 0.5 * before


@pytest.mark.parametrize("model", [making.relu(), model_of([helper.make_node("MatMul", ["x", "x"], ["y"])])])
def test_a_model_without_a_matmul_by_stored_weights_is_refused(model: onnx.ModelProto, tmp_path: Path) -> None:
    code, text = problem(making.save(model, tmp_path / "in"), tmp_path / "out", precision="int4")
    assert code == "nothing_quantised"
    assert text.startswith("The model has no MatMul by stored weights, all that int4 takes")


def test_weights_that_the_tool_does_not_take_are_a_sentence(tmp_path: Path) -> None:
    doubles = making.weight("w", np.zeros((64, 64)))
    double = onnx.TensorProto.DOUBLE
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    ports = [making.port("x", ["n", 64], double)], [making.port("y", ["n", 64], double)]
    folder = making.save(making.model([node], *ports, weights=[doubles]), tmp_path / "in")
    code, text = problem(folder, tmp_path / "out", precision="int4")
    assert code == "quantising_failed"
    assert text.startswith("The quantising tool of onnxruntime 1.31.1 damaged the model: ")


def test_four_bits_are_not_made_of_four_bits(tmp_path: Path) -> None:
    done(making.save(matmul(), tmp_path / "in"), tmp_path / "out", precision="int4")
    assert problem(tmp_path / "out", tmp_path / "again", precision="int4")[0] == "already_quantised"
