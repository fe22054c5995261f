"""Tiny models for tests, stamped with opset 17 and IR 8 unless told otherwise."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Dims = Sequence[int | str | None]


def port(name: str, dims: Dims | None = (2, 4), kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def weight(name: str, value: NDArray[Any]) -> onnx.TensorProto:
    return numpy_helper.from_array(value, name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    *,
    weights: Sequence[onnx.TensorProto] = (),
    opsets: dict[str, int] | None = None,
    ir: int = 8,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), list(weights))
    imports = [helper.make_opsetid(domain, version) for domain, version in (opsets or {"": 17}).items()]
    made = helper.make_model(graph, opset_imports=imports, functions=list(functions))
    made.ir_version = ir
    return made


def relu(**options: Any) -> onnx.ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"], name="relu")], [port("x")], [port("y")], **options)


def linear(rows: int = 4, columns: int = 3) -> onnx.ModelProto:
    """`x` [batch, rows] times a stored matrix `w`."""
    w = weight("w", np.arange(rows * columns, dtype=np.float32).reshape(rows, columns) / 8)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="matmul")
    return model([node], [port("x", ["batch", rows])], [port("y", ["batch", columns])], weights=[w])


def save(made: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    (folder / name).write_bytes(made.SerializeToString())
    return folder


def save_external(made: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    onnx.save_model(made, folder / name, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return folder


def point(made: onnx.ModelProto, tensor: str, **places: object) -> onnx.ModelProto:
    """The model with the external-data entries of one initialiser replaced by these."""
    found = next(t for t in made.graph.initializer if t.name == tensor)
    found.data_location = TensorProto.EXTERNAL
    found.ClearField("raw_data")
    del found.external_data[:]
    for key, value in places.items():
        found.external_data.add(key=key, value=str(value))
    return made
