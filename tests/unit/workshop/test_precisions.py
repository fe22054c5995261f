"""Half precision and static INT8: made from the trained digit classifier, and every bad form of calibration data."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from farm.workshop import arrays
from farm.workshop.child import calibration, quantised, reference
from farm.workshop.child.variants import make_variant
from farm.workshop.problems import Problem
from farm.workshop.samples import builders as samples
from farm.workshop.samples import digits
from tests.unit.workshop import making


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    samples.write_model("digits", folder)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return arrays.write_npz(tmp_path_factory.mktemp("data") / "calibration.npz", digits.make_calibration_data())


def variant(folder: Path, out: Path, **recipe: Any) -> dict[str, Any]:
    payload = {"folder": str(folder), "main": "digits.onnx", "out": str(out), "opset": None, "options": {}}
    return make_variant({**payload, **recipe})


def done(folder: Path, out: Path, **recipe: Any) -> tuple[onnx.ModelProto, list[str]]:
    answer = variant(folder, out, **recipe)
    assert "answer" in answer, answer
    return onnx.load(out / "digits.onnx"), answer["answer"]["history"]


def accuracy(path: Path) -> float:
    evaluation = digits.make_evaluation_data()
    scores = reference.run_reference(path, {"x": evaluation["x"]})[0]["y"]
    return float((scores.argmax(1) == evaluation["labels"]).mean())


def test_half_precision_keeps_inputs_and_outputs_and_halves_the_file(classifier: Path, tmp_path: Path) -> None:
    made, history = done(classifier, tmp_path, precision="fp16")
    assert made.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
    assert {tensor.data_type for tensor in made.graph.initializer} == {TensorProto.FLOAT16}
    assert history[0].startswith("Converted to float16: inputs and outputs stay float32;")
    assert (tmp_path / "digits.onnx").stat().st_size < 0.55 * (classifier / "digits.onnx").stat().st_size
    assert accuracy(tmp_path / "digits.onnx") > 0.97


def test_half_precision_can_take_float16_inputs_and_leave_operators_alone(classifier: Path, tmp_path: Path) -> None:
    options = {"keep-io": "false", "block-ops": "Gemm"}
    made, history = done(classifier, tmp_path, precision="fp16", options=options)
    assert made.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT16
    assert "inputs and outputs are float16 too, Gemm stay float32" in history[0]


def test_a_model_without_float_weights_has_no_half_precision(tmp_path: Path) -> None:
    making.save(making.relu(), tmp_path / "in", "digits.onnx")
    answer = variant(tmp_path / "in", tmp_path, precision="fp16")
    assert answer["problem"]["code"] == "nothing_halved"


def test_static_int8_takes_unsigned_activations_and_signed_weights_on_x86(classifier: Path, data: Path, tmp_path: Path):
    made, history = done(classifier, tmp_path, precision="int8-qdq", calibration=str(data))
    assert quantised.is_quantised(made)
    assert quantised.list_signed_activations(made) == []
    assert (made.ir_version, made.opset_import[0].version) == (8, 17)
    assert "activations uint8, weights int8, ranges by minmax" in history[0]
    assert history[1] == "Calibrated with 512 samples of calibration.npz."
    assert accuracy(tmp_path / "digits.onnx") > 0.96


def test_static_int8_takes_both_signed_on_arm(classifier: Path, data: Path, tmp_path: Path) -> None:
    made, _ = done(classifier, tmp_path, precision="int8-qdq", calibration=str(data), options={"activation": "int8"})
    assert quantised.list_signed_activations(made)


def test_static_int8_can_be_asked_per_channel_without_some_nodes(classifier: Path, data: Path, tmp_path: Path) -> None:
    options = {"per-channel": "true", "exclude-nodes": "conv1", "calibration": "percentile"}
    made, history = done(classifier, tmp_path, precision="int8-qdq", calibration=str(data), options=options)
    axes = [a.i for node in made.graph.node for a in node.attribute if a.name == "axis" and "Linear" in node.op_type]
    assert axes
    assert "ranges by percentile, per channel, without conv1" in history[0]


def test_static_int8_in_operator_form_has_operators_of_its_own(classifier: Path, data: Path, tmp_path: Path) -> None:
    made, _ = done(classifier, tmp_path, precision="int8-qoperator", calibration=str(data))
    assert "QLinearConv" in {node.op_type for node in made.graph.node}


def test_without_calibration_data_random_samples_are_marked_as_such(classifier: Path, tmp_path: Path) -> None:
    _, history = done(classifier, tmp_path, precision="int8-qdq")
    assert "random samples, not with real data" in history[1]


def test_weights_that_an_exporter_wrote_as_constants_are_quantised_too(tmp_path: Path) -> None:
    weight = making.weight("", np.linspace(-1, 1, 64 * 8, dtype=np.float32).reshape(64, 8))
    nodes = [helper.make_node("Constant", [], ["w"], value=weight), helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = making.model(nodes, [making.port("x", ["batch", 64])], [making.port("y", ["batch", 8])])
    after, _ = done(making.save(model, tmp_path / "bundle", "digits.onnx"), tmp_path, precision="int8-dynamic")
    assert "MatMulInteger" in {node.op_type for node in after.graph.node}


def feeds(model: onnx.ModelProto, tmp_path: Path, **inputs: np.ndarray) -> tuple[calibration.Feeds, list[str]]:
    return calibration.make_feeds(model, arrays.write_npz(tmp_path / "c.npz", inputs))


def test_few_samples_are_warned_about_and_some_advised_against(tmp_path: Path) -> None:
    _, few = feeds(making.linear(), tmp_path, x=np.zeros((99, 4), np.float32))
    assert few[1] == "Warning: 99 samples are few; take at least 100, better 500."
    _, some = feeds(making.linear(), tmp_path, x=np.zeros((499, 4), np.float32))
    assert some[1].startswith("Advice: 500 samples or more")
    _, enough = feeds(making.linear(), tmp_path, x=np.zeros((500, 4), np.float32))
    assert len(enough) == 1


def test_samples_are_cut_along_the_batch(tmp_path: Path) -> None:
    found, _ = feeds(making.linear(), tmp_path, x=np.zeros((70, 4), np.float32), labels=np.zeros(70, np.int64))
    assert [feed["x"].shape for feed in found] == [(32, 4), (32, 4), (6, 4)]


def test_a_fixed_batch_gets_whole_batches_only(tmp_path: Path) -> None:
    found, history = feeds(making.relu(), tmp_path, x=np.zeros((5, 4), np.float32))
    assert [feed["x"].shape for feed in found] == [(2, 4), (2, 4)]
    assert history[0] == "Calibrated with 4 samples of c.npz."


def test_without_a_batch_samples_lie_along_one_more_axis(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    model = making.model([node], [making.port("x", ["rows", 4]), ], [making.port("y", None)])  # fmt: skip
    found, _ = feeds(model, tmp_path, x=np.zeros((3, 7, 4), np.float32))
    assert [feed["x"].shape for feed in found] == [(7, 4)] * 3


def test_a_sample_that_is_one_number_is_an_array_of_rank_0(tmp_path: Path) -> None:
    model = making.model([helper.make_node("Relu", ["x"], ["y"])], [making.port("x", [])], [making.port("y", [])])
    found, _ = feeds(model, tmp_path, x=np.ones(3, np.float32))
    assert [reference.run_reference(model.SerializeToString(), feed)[0]["y"] for feed in found] == [1.0] * 3


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"z": np.zeros((9, 4), np.float32)}, "lack the input 'x'"),
        ({"x": np.zeros((9, 4), np.float32), "z": np.zeros((8, 4), np.float32)}, "different numbers of samples: 8, 9"),
        ({"x": np.zeros((0, 4), np.float32)}, "hold 0 samples"),
        ({"x": np.zeros((9, 4), np.float64)}, "is float64, the model takes float32"),
        ({"x": np.zeros((9, 5), np.float32)}, "has the shape [9, 5]"),
        ({"x": np.zeros((9, 4), np.float32), "z": np.zeros((9, 4), np.float32)}, "hold 'z', which is not an input"),
    ],
)
def test_calibration_data_that_do_not_fit_are_refused(inputs: dict[str, np.ndarray], words: str, tmp_path: Path):
    with pytest.raises(Problem, match=words.replace("[", r"\[").replace("]", r"\]")):
        feeds(making.linear(), tmp_path, **inputs)


def test_fewer_samples_than_a_fixed_batch_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="give at least 2"):
        feeds(making.relu(), tmp_path, x=np.zeros((1, 4), np.float32))


def test_calibration_data_that_are_no_archive_are_refused(tmp_path: Path) -> None:
    (tmp_path / "c.npz").write_bytes(b"nothing")
    with pytest.raises(Problem, match=r"c\.npz is not an \.npz archive"):
        calibration.make_feeds(making.linear(), tmp_path / "c.npz")
