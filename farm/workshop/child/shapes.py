"""The shapes that follow in a graph, sizes and names of dimensions, without the weights' values. Child only."""

import contextlib
import math
from collections.abc import Mapping

import onnx
from onnx import helper

from farm.rules.runtimes import opsets
from farm.workshop.child import external

Shape = list[int | str]
Shapes = Mapping[str, Shape]
# larger tensors hold weights, smaller ones shapes that inference has to read
_MAX_READ = 256


def without_weight_values(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without the values of its weights, whose shapes stay: what shape inference is quick with."""
    light = onnx.ModelProto(ir_version=max(model.ir_version, 4), opset_import=model.opset_import)
    light.functions.extend(model.functions)
    graph = light.graph
    graph.name = model.graph.name
    graph.node.extend(model.graph.node)
    graph.output.extend(model.graph.output)
    stored = {tensor.name for tensor in model.graph.initializer}
    graph.input.extend(value for value in model.graph.input if value.name not in stored)
    for tensor in model.graph.initializer:
        if external.read_location(tensor) or math.prod(tensor.dims) > _MAX_READ:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        else:
            graph.initializer.append(tensor)
    return light


def set_inferred_shapes(model: onnx.ModelProto) -> None:
    """Gives every tensor of the main graph the shape that follows, where one does, without the weights' values.

    Raises InferenceError, ValueError, RuntimeError.
    """
    light = without_weight_values(model)
    light.graph.value_info.extend(model.graph.value_info)
    found = infer_shapes(light).graph
    for values, known in ((model.graph.value_info, found.value_info), (model.graph.output, found.output)):
        del values[:]
        values.extend(known)


def list_shapes(light: onnx.ModelProto) -> dict[str, Shape]:
    """The shape of every tensor of the main graph that inference knows the rank of, sizes and names of dimensions."""
    # what is declared is known all the same
    with contextlib.suppress(onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        light = infer_shapes(light)
    values = (*light.graph.input, *light.graph.value_info, *light.graph.output)
    found = {value.name: _shape(value) for value in values if value.type.tensor_type.HasField("shape")}
    return found | {tensor.name: list(tensor.dims) for tensor in light.graph.initializer}


def infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the shapes that follow. Raises InferenceError, ValueError, RuntimeError.

    onnx 1.23 ends the process at a LabelEncoder whose input has no type, as operators of other domains leave it: such a
    model stays as it is.
    """
    kinds = {(node.domain in opsets.ONNX_DOMAINS, node.op_type) for node in model.graph.node}
    if any(kind == "LabelEncoder" for _, kind in kinds) and any(not is_own for is_own, _ in kinds):
        return model
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def _shape(value: onnx.ValueInfoProto) -> Shape:
    dims = value.type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in dims]
