"""How far a model can be converted, found before anybody asks for it."""

from pathlib import Path
from typing import cast

import numpy as np
from onnx import TensorProto, helper

from farm.workshop import orders
from farm.workshop.child.opset_range import find_opset_range
from farm.workshop.child.variants import make_variant
from farm.workshop.samples import builders as samples
from tests.unit.workshop import making


def reached(folder: Path, main: str = "model.onnx") -> dict[str, object]:
    answer = find_opset_range({"folder": str(folder), "main": main})
    assert "answer" in answer, answer
    return cast(dict[str, object], answer["answer"])


def test_plain_operators_reach_the_newest_set_that_a_runtime_loads(tmp_path: Path) -> None:
    samples.write_model("digits", tmp_path)
    found = reached(tmp_path, "digits.onnx")
    assert (found["highest"], found["above"]) == (28, "")


def test_the_operator_that_stops_a_conversion_is_named_and_is_what_stops_the_variant(tmp_path: Path) -> None:
    node = helper.make_node("LayerNormalization", ["x", "scale"], ["y"], axis=-1)
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [4], np.ones(4, np.float32))
    model = making.model([node], [making.port("x", [2, 4])], [making.port("y", [2, 4])], weights=[scale])
    making.save(model, tmp_path / "in")
    found = reached(tmp_path / "in")
    assert (found["lowest"], found["highest"]) == (17, 28)
    assert "LayerNormalization" in str(found["below"])
    out = tmp_path / "out"
    out.mkdir()
    answer = converted(tmp_path / "in", out, opset=16)
    assert answer["problem"]["text"] == (
        f"Opset 17 cannot be converted to 16: {found['below']}. Export the model with opset 16 instead."
    )


def test_a_set_for_which_the_converter_writes_an_invalid_model_is_not_reached(tmp_path: Path) -> None:
    """Every release then said "this is an invalid model" of a valid upload, and named no other operator set."""
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], np.array([1], np.int64))
    node = helper.make_node("ReduceMean", ["x", "axes"], ["y"], noop_with_empty_axes=0)
    ports = [making.port("x", [2, 4])], [making.port("y", [2, 1])]
    making.save(making.model([node], *ports, weights=[axes], opsets={"": 25}, ir=13), tmp_path / "in")
    assert reached(tmp_path / "in")["lowest"] == 18
    out = tmp_path / "out"
    out.mkdir()
    problem = converted(tmp_path / "in", out, opset=17)["problem"]
    assert problem["code"] == "conversion_failed"
    assert "noop_with_empty_axes" in problem["text"]


def converted(folder: Path, out: Path, *, opset: int) -> dict[str, object]:
    recipe = {"precision": "fp32", "opset": opset, "options": {}, "calibration": None}
    return make_variant({"folder": str(folder), "main": "model.onnx", "out": str(out), **recipe})


def test_weights_are_left_out_of_the_try_and_stay_in_the_model(tmp_path: Path) -> None:
    folder = making.save_external(making.linear(64, 64), tmp_path / "in")
    assert reached(folder)["highest"] == 28
    assert (folder / "model.onnx").stat().st_size > 0


def test_a_model_that_breaks_the_converter_is_tried_when_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    assert orders.find_opset_range(tmp_path, "model.onnx") is None
