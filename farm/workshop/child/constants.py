"""Reads values that are known before a model runs: initialisers and Constant nodes. Runs in the child only."""

from collections.abc import Collection

import numpy as np
import onnx
from onnx import numpy_helper

from farm.workshop.arrays import Array
from farm.workshop.child import external, traversal

_MAX_TENSOR_BYTES = 1 << 20


def read_constants(model: onnx.ModelProto, *, names: Collection[str]) -> dict[str, Array]:
    """Read the initialisers and Constant nodes of these names in any graph, by name.

    Tensors that are large, external or broken are left out, and so are constants that are strings or sparse.
    """
    values: dict[str, Array] = {}
    for graph in traversal.iterate_graphs(model):
        for tensor in graph.initializer:
            if tensor.name in names and (value := _read_tensor(tensor)) is not None:
                values[tensor.name] = value
    for node in traversal.iterate_nodes(model):
        if node.op_type == "Constant" and node.output and node.output[0] in names:
            value = _read_constant(node)
            if value is not None:
                values[node.output[0]] = value
    return values


def _read_constant(node: onnx.NodeProto) -> Array | None:
    for attribute in node.attribute:
        if attribute.name == "value":
            return _read_tensor(attribute.t)
        if attribute.name == "value_int":
            return np.asarray(attribute.i)
        if attribute.name == "value_float":
            return np.asarray(attribute.f, dtype=np.float32)
        if attribute.name == "value_ints":
            return np.asarray(attribute.ints, dtype=np.int64)
        if attribute.name == "value_floats":
            return np.asarray(attribute.floats, dtype=np.float32)
    return None


def _read_tensor(tensor: onnx.TensorProto) -> Array | None:
    if external.read_location(tensor) or external.count_tensor_bytes(tensor) > _MAX_TENSOR_BYTES:
        return None
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError):  # it has fewer elements than its shape says, which onnx's checker reports
        return None
