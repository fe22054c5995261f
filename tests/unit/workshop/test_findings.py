"""Every finding has a model that triggers it and one that does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from farm.rules.quality.findings import EXPLANATIONS
from farm.workshop.child import findings
from farm.workshop.child.inspection import inspect
from tests.unit.workshop import making

Model = onnx.ModelProto


def node(kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, outputs, name=attributes.pop("name", outputs[0]), **attributes)


def dropout(training: bool) -> Model:
    weights = [making.weight("ratio", np.float32(0.5)), making.weight("mode", np.bool_(training))]
    nodes = [node("Dropout", ["x", "ratio", "mode"], ["y"])]
    return making.model(nodes, [making.port("x")], [making.port("y")], weights=weights)


def drawing(kind: str, **attributes: Any) -> Model:
    return making.model([node(kind, ["x"], ["y"], **attributes)], [making.port("x")], [making.port("y")])


def dropout_by_constant() -> Model:
    true = making.weight("t", np.bool_(True))
    nodes = [node("Constant", [], ["mode"], value=true), node("Dropout", ["x", "", "mode"], ["y"])]
    return making.model(nodes, [making.port("x")], [making.port("y")])


def batch_norm(training: int) -> Model:
    weights = [making.weight(name, np.ones(3, np.float32)) for name in ("s", "b", "m", "v")]
    outputs = ["y", "m2", "v2"] if training else ["y"]
    nodes = [node("BatchNormalization", ["x", "s", "b", "m", "v"], outputs, training_mode=training)]
    return making.model(nodes, [making.port("x", [2, 3, 4])], [making.port("y", [2, 3, 4])], weights=weights)


def relu_of(*dims: int | str) -> Model:
    return making.model([node("Relu", ["x"], ["y"])], [making.port("x", dims)], [making.port("y", dims)])


def custom() -> Model:
    model = making.relu(opsets={"": 17, "acme": 1})
    model.graph.node.append(node("FancyRelu", ["x"], ["z"], domain="acme"))
    return model


def branch() -> Model:
    inner = helper.make_graph([node("Identity", ["x"], ["z"])], "branch", [], [making.port("z", None)])
    nodes = [node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)]
    return making.model(nodes, [making.port("x"), making.port("c", [], TensorProto.BOOL)], [making.port("y", None)])


def loop(is_looping: bool) -> Model:
    ports = [making.port("i", [], TensorProto.INT64), making.port("c", [], TensorProto.BOOL), making.port("a")]
    ends = [making.port("k", [], TensorProto.BOOL), making.port("b")]
    body = helper.make_graph([node("Identity", ["c"], ["k"]), node("Relu", ["a"], ["b"])], "body", ports, ends)
    weights = [making.weight("n", np.int64(3)), making.weight("go", np.bool_(True))]
    nodes = [node("Loop", ["n", "go", "x"], ["y"], body=body) if is_looping else node("Relu", ["x"], ["y"])]
    return making.model(nodes, [making.port("x")], [making.port("y")], weights=weights)


def scan() -> Model:
    row = making.port("row", [4])
    body = helper.make_graph([node("Relu", ["row"], ["out"])], "body", [row], [making.port("out", [4])])
    nodes = [node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)]
    return making.model(nodes, [making.port("x")], [making.port("y")])


def stored_double(is_double: bool) -> Model:
    stored = np.ones(4, np.float64 if is_double else np.float32)
    nodes = [node("Cast", ["w"], ["v"], to=TensorProto.FLOAT), node("Add", ["x", "v"], ["y"])]
    return making.model(nodes, [making.port("x")], [making.port("y")], weights=[making.weight("w", stored)])


def typed(kind: int) -> Model:
    return making.model([node("Relu", ["x"], ["y"])], [making.port("x", kind=kind)], [making.port("y", kind=kind)])


def shape_arithmetic(count: int) -> Model:
    nodes = [node("Shape", ["x"], ["s0"])]
    nodes += [node("Add", [f"s{n}", f"s{n}"], [f"s{n + 1}"]) for n in range(count)]
    nodes += [node("Relu", ["x"], ["r0"]), *(node("Relu", [f"r{n}"], [f"r{n + 1}"]) for n in range(6))]
    ports = [making.port("r6"), making.port(f"s{count}", [2], TensorProto.INT64)]
    return making.model(nodes, [making.port("x")], ports)


def weight_as_input(is_input: bool) -> Model:
    model = making.linear()
    if is_input:
        model.graph.input.append(making.port("w", [4, 3]))
    return model


def unknown_shape() -> Model:
    nodes = [node("Reshape", ["x", "s"], ["r"]), node("Relu", ["r"], ["y"])]
    return making.model(
        nodes, [making.port("x"), making.port("s", [None], TensorProto.INT64)], [making.port("y", None)]
    )


def turned(at_border: bool) -> Model:
    nodes = [node("Transpose", ["x" if at_border else "r"], ["t"], perm=[0, 3, 1, 2]), node("Relu", ["t"], ["y"])]
    if not at_border:
        nodes.insert(0, node("Relu", ["x"], ["r"]))
    return making.model(nodes, [making.port("x", [1, 8, 8, 3])], [making.port("y", [1, 3, 8, 8])])


def turned_at_the_end(at_border: bool) -> Model:
    nodes = [node("Relu", ["x"], ["r"]), node("Transpose", ["r"], ["y" if at_border else "t"], perm=[0, 2, 3, 1])]
    if not at_border:
        nodes.append(node("Relu", ["t"], ["y"]))
    return making.model(nodes, [making.port("x", [1, 3, 8, 8])], [making.port("y", [1, 8, 8, 3])])


def twins(same: bool) -> Model:
    first = np.arange(1024, dtype=np.float32).reshape(32, 32)
    weights = [making.weight("a", first), making.weight("b", first if same else first + 1)]
    nodes = [node("MatMul", ["x", "a"], ["m"]), node("MatMul", ["m", "b"], ["y"])]
    return making.model(nodes, [making.port("x", ["n", 32])], [making.port("y", ["n", 32])], weights=weights)


def qdq(signed: bool) -> Model:
    dtype = np.int8 if signed else np.uint8
    weights = [making.weight("s", np.float32(0.1)), making.weight("z", dtype(0))]
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    return making.model(nodes, [making.port("x")], [making.port("y")], weights=weights)


def unnamed() -> Model:
    model = making.relu()
    model.graph.node[0].ClearField("name")
    return model


def missing_input() -> Model:
    model = making.relu()
    model.graph.node[0].input[0] = "nowhere"
    return model


PAIRS: list[tuple[str, Callable[[], Model], Callable[[], Model]]] = [
    ("training_mode", lambda: dropout(True), lambda: dropout(False)),
    ("training_mode", dropout_by_constant, making.relu),
    ("training_mode", lambda: batch_norm(1), lambda: batch_norm(0)),
    ("random_draws", lambda: drawing("RandomNormalLike"), lambda: drawing("RandomNormalLike", seed=0.0)),
    ("random_draws", lambda: drawing("Bernoulli"), lambda: drawing("Bernoulli", seed=3.0)),
    ("random_draws", lambda: dropout(True), lambda: dropout(False)),
    ("fixed_batch_one", lambda: relu_of(1, 4), lambda: relu_of(2, 4)),
    ("no_dynamic_axis", lambda: relu_of(2, 4), lambda: relu_of("batch", 4)),
    ("needs_newer_runtime", lambda: making.relu(opsets={"": 22}, ir=10), making.relu),
    ("needs_newer_runtime", lambda: making.relu(ir=10), making.relu),
    ("unused_opset", lambda: making.relu(opsets={"": 17, "ai.onnx.ml": 3}), making.relu),
    ("custom_domain", custom, making.relu),
    ("subgraphs", branch, making.relu),
    ("subgraphs", lambda: loop(True), lambda: loop(False)),
    ("subgraphs", scan, making.relu),
    ("float64", lambda: typed(TensorProto.DOUBLE), lambda: typed(TensorProto.FLOAT)),
    ("float64", lambda: stored_double(True), lambda: stored_double(False)),
    ("int64_heavy", lambda: shape_arithmetic(6), lambda: shape_arithmetic(1)),
    ("initialisers_as_inputs", lambda: weight_as_input(True), lambda: weight_as_input(False)),
    ("missing_shapes", unknown_shape, making.linear),
    ("transpose_sandwich", lambda: turned(True), lambda: turned(False)),
    ("transpose_sandwich", lambda: turned_at_the_end(True), lambda: turned_at_the_end(False)),
    ("duplicate_initialisers", lambda: twins(True), lambda: twins(False)),
    ("unnamed_nodes", unnamed, making.relu),
    ("s8s8_on_x86", lambda: qdq(True), lambda: qdq(False)),
    ("checker_complaint", missing_input, making.relu),
    ("not_checked", lambda: making.relu(ir=99), making.relu),
]


def found(model: Model, folder: Path) -> dict[str, dict[str, Any]]:
    answer = inspect({"folder": str(making.save(model, folder)), "main": "model.onnx"})
    assert "answer" in answer, answer
    return {finding["id"]: finding for finding in answer["answer"]["findings"]}


@pytest.mark.parametrize(("finding", "triggers", "spares"), PAIRS)
def test_a_finding_is_made_where_it_is_due_and_nowhere_else(
    finding: str, triggers: Callable[[], Model], spares: Callable[[], Model], tmp_path: Path
) -> None:
    made = found(triggers(), tmp_path / "triggers")
    assert finding in made
    assert made[finding]["detail"].endswith(".")
    assert made[finding]["count"] >= 1
    assert finding not in found(spares(), tmp_path / "spares")


def test_what_draws_is_named_once_and_its_places_are_counted(tmp_path: Path) -> None:
    model = drawing("RandomNormalLike")
    model.graph.node.extend([node("RandomUniformLike", ["x"], ["u"]), node("RandomNormalLike", ["x"], ["n"])])
    told = found(model, tmp_path)["random_draws"]
    assert (told["where"], told["count"]) == (["RandomNormalLike", "RandomUniformLike"], 3)


@pytest.mark.parametrize(
    ("opsets", "ir", "blamed"),
    [
        ({"": 9}, 10, "With IR version 10 it"),
        ({"": 22}, 8, "With opset 22 it"),
        ({"": 9, "ai.onnx.ml": 5}, 8, "With ai.onnx.ml 5 it"),
    ],
)
def test_the_stamp_that_asks_for_a_newer_runtime_is_the_one_that_is_blamed(
    opsets: dict[str, int], ir: int, blamed: str, tmp_path: Path
) -> None:
    assert found(making.relu(opsets=opsets, ir=ir), tmp_path)["needs_newer_runtime"]["detail"].startswith(blamed)


def test_a_file_near_the_limit_of_protobuf_is_found() -> None:
    facts = {"main_bytes": 1_900_000_000}
    assert [finding["id"] for finding in findings._check_size(making.relu(), facts)] == ["near_2gb"]
    assert not list(findings._check_size(making.relu(), {"main_bytes": 1_000_000}))


def test_a_file_over_the_limit_of_protobuf_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "model.onnx").open("wb") as file:
        file.truncate(1 << 31)  # a hole: it takes no room
    problem = inspect({"folder": str(tmp_path), "main": "model.onnx"})["problem"]
    assert problem["code"] == "over_2gb"
    assert "save the weights as external data" in problem["text"]


def test_a_sample_model_has_no_finding(tmp_path: Path) -> None:
    assert not found(making.linear(), tmp_path)


def test_every_finding_that_is_explained_is_tested() -> None:
    assert {finding for finding, _, _ in PAIRS} | {"near_2gb"} == set(EXPLANATIONS)


def test_twins_in_external_data_are_found_by_their_place(tmp_path: Path) -> None:
    folder = making.save_external(twins(True), tmp_path)
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    first, second = model.graph.initializer
    second.external_data[1].value = first.external_data[1].value
    assert "duplicate_initialisers" in found(model, folder)
