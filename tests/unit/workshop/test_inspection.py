"""What a look inside a good model tells."""

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from farm.workshop import orders
from farm.workshop.child.inspection import inspect
from farm.workshop.child.traversal import iterate_tensors
from farm.workshop.inspection import Inspection
from tests.conftest import MODELS
from tests.unit.workshop import making

MANIFEST = {entry["name"]: entry for entry in json.loads((MODELS / "manifest.json").read_text())["models"]}


def facts(made: onnx.ModelProto, folder: Path) -> dict[str, Any]:
    answer = inspect({"folder": str(making.save(made, folder)), "main": "model.onnx"})
    assert "answer" in answer, answer
    return cast(dict[str, Any], answer["answer"])


def copied(name: str, folder: Path) -> Path:
    for path in MODELS.glob(f"{name}.onnx*"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_an_attribute_holds_a_sparse_tensor_only_where_it_was_given_one() -> None:
    values, indices = making.weight("v", np.ones(1, np.float32)), making.weight("i", np.zeros(1, np.int64))
    constant = helper.make_node("Constant", [], ["c"], sparse_value=helper.make_sparse_tensor(values, indices, [2]))
    relu = helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.5)
    made = making.model([constant, relu], [making.port("x")], [making.port("y")])
    assert [tensor.name for tensor in iterate_tensors(made)] == ["v", "i"]


@pytest.mark.parametrize("name", MANIFEST)
def test_a_reference_model_is_described_as_its_manifest_says(name: str, tmp_path: Path) -> None:
    entry = MANIFEST[name]
    found = inspect({"folder": str(copied(name, tmp_path)), "main": f"{name}.onnx"})["answer"]
    assert found["main_sha256"] == entry["sha256"]
    assert (found["main_bytes"], found["ir_version"]) == (entry["bytes"], entry["ir_version"])
    assert found["opsets"] == {("" if k == "ai.onnx" else k): v for k, v in entry["opset"].items()}
    assert [port["shape"] for port in found["inputs"]] == [port["shape"] for port in entry["inputs"]]
    assert found["nodes"] == entry["nodes"]


def test_an_order_reads_a_model_with_external_data_in_a_confined_child(tmp_path: Path) -> None:
    found = orders.inspect(copied("mlp_external", tmp_path), "mlp_external.onnx")
    assert found.ok
    assert found.external_files == ("mlp_external.onnx.data",)
    assert found.data_bytes == 1_609_728
    assert found.batch == "batch"


BATCHES: list[tuple[list[list[int | str | None]], int | str | None]] = [
    ([["batch", 4]], "batch"),
    ([["N", 3, 8, 8]], "N"),
    ([[8, 4]], 8),
    ([[1, 4], [1, 2]], 1),
    ([[2, 4], [3, 4]], None),
    ([["batch", 4], ["batch"]], "batch"),
    ([["batch", 4], []], "batch"),
    ([["rows", 4], []], None),
    ([["seq", 4]], None),
    ([["time", "batch", 4]], None),
    ([["samples", 4]], "samples"),
    ([["batch", 4], [7, 4]], None),
    ([[16]], None),
    ([[]], None),
    ([[None, 4]], "batch"),
    ([[None, 4], [None, 2]], "batch"),
    ([[0, 4]], None),
]


@pytest.mark.parametrize(("shapes", "batch"), BATCHES)
def test_the_batch_is_the_first_dimension_shared_by_all_inputs(
    shapes: list[list[int | str | None]], batch: int | str | None, tmp_path: Path
) -> None:
    names = [f"x{n}" for n in range(len(shapes))]
    nodes = [helper.make_node("Identity", [name], [f"{name}_y"]) for name in names]
    inputs = [making.port(name, shape) for name, shape in zip(names, shapes, strict=True)]
    outputs = [making.port(f"{name}_y", None) for name in names]
    assert facts(making.model(nodes, inputs, outputs), tmp_path)["batch"] == batch


def test_an_input_of_a_time_major_layer_has_no_batch_first(tmp_path: Path) -> None:
    weights = [making.weight("w", np.ones((1, 8, 3), np.float32)), making.weight("r", np.ones((1, 8, 2), np.float32))]
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=2)
    made = making.model([node], [making.port("x", [5, 1, 3])], [making.port("y", None)], weights=weights)
    assert facts(made, tmp_path)["batch"] is None


def test_an_unnamed_dimension_is_called_after_its_place(tmp_path: Path) -> None:
    made = making.model(
        [helper.make_node("Relu", ["x"], ["y"])], [making.port("x", [4, None])], [making.port("y", None)]
    )  # fmt: skip
    found = facts(made, tmp_path)
    assert found["inputs"][0]["shape"] == [4, "x.1"]
    assert found["dims"] == ["x.1"]
    assert found["outputs"][0]["shape"] is None


def test_weights_are_counted_wherever_they_are(tmp_path: Path) -> None:
    found = facts(making.linear(), tmp_path)
    assert (found["parameters"], found["parameters_bytes"], found["dtypes"]) == (12, 48, {"float32": 48})


def test_four_bit_weights_take_half_a_byte(tmp_path: Path) -> None:
    tensor = helper.make_tensor("w", TensorProto.INT4, [3], [1, 2, 3])
    node = helper.make_node("DequantizeLinear", ["w", "s"], ["d"])
    add = helper.make_node("Add", ["x", "d"], ["y"])
    weights = [tensor, making.weight("s", np.float32(0.5))]
    made = making.model(
        [node, add], [making.port("x", [3])], [making.port("y", [3])], weights=weights, opsets={"": 21}, ir=10
    )
    found = facts(made, tmp_path)
    assert found["dtypes"]["int4"] == 2
    assert found["is_quantised"]


def test_operators_outside_onnx_are_named_with_their_domain(tmp_path: Path) -> None:
    made = making.relu(opsets={"": 17, "com.microsoft": 1, "acme": 1})
    made.graph.node.append(helper.make_node("FancyRelu", ["x"], ["z"], domain="acme"))
    made.graph.node.append(helper.make_node("Gelu", ["x"], ["g"], domain="com.microsoft"))
    found = facts(made, tmp_path)
    assert found["operators"] == {"Relu": 1, "acme.FancyRelu": 1, "com.microsoft.Gelu": 1}
    assert found["custom_domains"] == ["acme"]


@pytest.mark.parametrize(
    ("given", "found", "named"),
    [
        (making.port("x", ["n"], TensorProto.STRING), making.port("y", ["n"], TensorProto.INT64), "x"),
        (making.port("x", ["n"]), helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None), "y"),
        (making.port("x", ["n"]), making.port("y", ["n"], TensorProto.STRING), ""),
    ],
)
def test_what_no_binding_takes_is_named(
    given: onnx.ValueInfoProto, found: onnx.ValueInfoProto, named: str, tmp_path: Path
) -> None:
    node = helper.make_node("Own", ["x"], ["y"], domain="own")
    made = making.model([node], [given], [found], opsets={"": 18, "own": 1})
    unbound = Inspection.model_validate(facts(made, tmp_path)).binding_problem
    assert (named in unbound, bool(unbound)) == (True, bool(named))


def test_a_name_that_breaks_lines_is_cleaned_before_it_is_shown(tmp_path: Path) -> None:
    made = making.relu()
    made.producer_name = "evil\n\x1b[31m" + "x" * 500
    producer = facts(made, tmp_path)["producer"]
    assert "\n" not in producer
    assert "\x1b" not in producer
    assert len(producer) <= 80


def test_what_draws_without_a_seed_is_told_to_whoever_judges_outputs(tmp_path: Path) -> None:
    node = helper.make_node("Multinomial", ["x"], ["y"], sample_size=2)
    model = making.model([node], [making.port("x")], [making.port("y", None, TensorProto.INT32)])
    assert orders.inspect(making.save(model, tmp_path), "model.onnx").unseeded_operators == "Multinomial"
    assert orders.inspect(making.save(making.relu(), tmp_path), "model.onnx").unseeded_operators == ""
