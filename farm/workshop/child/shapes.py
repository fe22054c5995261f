"""Infers the shapes of a graph's tensors, as sizes and names of dimensions, without the weights. Child only."""

import contextlib
import math
from collections.abc import Mapping

import onnx
from onnx import helper

from farm.rules.runtimes import opsets
from farm.workshop.child import external

Shape = list[int | str]
Shapes = Mapping[str, Shape]
# tensors of more elements hold weights; smaller ones may hold shapes that inference has to read
_MAX_READ = 256


def has_axis(shape: Shape, axis: int) -> bool:
    return -len(shape) <= axis < len(shape)


def copy_without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy the main graph with its large weights as inputs of the same shapes, so that shape inference is quick."""
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
    """Write the inferred shapes into the model's main graph. Raises InferenceError, ValueError or RuntimeError."""
    light = copy_without_weights(model)
    light.graph.value_info.extend(model.graph.value_info)
    inferred = infer_shapes(light).graph
    for old, new in ((model.graph.value_info, inferred.value_info), (model.graph.output, inferred.output)):
        del old[:]
        old.extend(new)


def list_shapes(light: onnx.ModelProto) -> dict[str, Shape]:
    """List the shape of every tensor of the main graph whose rank is declared or can be inferred.

    A dimension without size and name is an empty text.
    """
    # declared shapes are known even if inference fails
    with contextlib.suppress(onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        light = infer_shapes(light)
    shapes: dict[str, Shape] = {}
    for value in (*light.graph.input, *light.graph.value_info, *light.graph.output):
        if value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            shapes[value.name] = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in dims]
    return shapes | {tensor.name: list(tensor.dims) for tensor in light.graph.initializer}


def infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with inferred shapes. Raises InferenceError, ValueError or RuntimeError.

    A model with a LabelEncoder and operators of other domains is returned as it is: onnx 1.23 ends the process where
    the input of a LabelEncoder has no type.
    """
    kinds = {(node.domain in opsets.ONNX_DOMAINS, node.op_type) for node in model.graph.node}
    if any(kind == "LabelEncoder" for _, kind in kinds) and any(not is_standard for is_standard, _ in kinds):
        return model
    return onnx.shape_inference.infer_shapes(model, data_prop=True)
