"""Lists the dimensions that must be equal for a node to run, from the shapes of its inputs. Child only."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping

import onnx

from farm.workshop.child.shapes import Shape, Shapes, has_axis
from farm.workshop.child.traversal import read_attribute

# a dimension, and what it must equal: a number, or another dimension
SizeConstraint = tuple[int | str, int | str]
# by operator: the axis of the first input, and the index of another input and its axis, which must be equal
_EQUAL = {
    "ConvTranspose": ((1, 1, 0),),
    **dict.fromkeys(("MatMul", "MatMulInteger", "DynamicQuantizeMatMul"), ((-1, 1, -2),)),
    "QLinearMatMul": ((-1, 3, -2),),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), ((2, 1, 2),)),
    "DynamicQuantizeLSTM": ((2, 1, 1),),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), ((1, 1, 0),)),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), ((-1, 2, -1),)),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"), ((-1, 1, -1),)),
    "Attention": ((2, 1, 0),),
    "CDist": ((1, 1, 1),),
}
_CONVOLUTIONS = {"Conv": 1, "FusedConv": 1, "ConvInteger": 1, "QLinearConv": 3}
_BROADCASTS = {
    *("Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Where", "Max", "Min", "Mean", "Sum"),
    *("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or"),
}


def list_constraints(node: onnx.NodeProto, shapes: Shapes) -> Iterator[SizeConstraint]:
    """Yield pairs of dimensions that must be equal for the node to run; an empty name is an unknown dimension.

    None are known for a node whose first input has no known shape.
    """
    inputs = [shapes.get(name) for name in node.input]
    first = inputs[0] if inputs else None
    if first is None:
        return
    for axis, at, other_axis in _EQUAL.get(node.op_type, ()):
        other = inputs[at] if at < len(inputs) else None
        if other and has_axis(first, axis) and (has_axis(other, other_axis) or other_axis == -2):
            yield first[axis], other[other_axis if has_axis(other, other_axis) else -1]
    if constrain := _CONSTRAINTS.get(node.op_type):
        yield from constrain(node, inputs, shapes)
    if node.op_type in _BROADCASTS:
        yield from _constrain_broadcast([shape for shape in inputs if shape is not None])


def _constrain_broadcast(inputs: list[Shape]) -> Iterator[SizeConstraint]:
    """Yield names that must equal a number above 1 at the same place, and numbers that contradict each other."""
    for at in range(1, max(map(len, inputs), default=0) + 1):
        sizes = {shape[-at] for shape in inputs if len(shape) >= at}
        numbers = {size for size in sizes if isinstance(size, int) and size > 1}
        yield from itertools.pairwise(numbers)
        if len(numbers) == 1:
            yield from ((name, max(numbers)) for name in sizes if isinstance(name, str))


InputShapes = list[Shape | None]
Constrain = Callable[[onnx.NodeProto, InputShapes, Shapes], Iterator[SizeConstraint]]


def _constrain_convolution(node: onnx.NodeProto, inputs: InputShapes, _: Shapes) -> Iterator[SizeConstraint]:
    at = _CONVOLUTIONS[node.op_type]
    kernel = inputs[at] if at < len(inputs) else None
    if inputs[0] and kernel and len(inputs[0]) == len(kernel) > 2 and isinstance(kernel[1], int):
        yield inputs[0][1], kernel[1] * read_attribute(node, "group", 1)


def _constrain_gemm(node: onnx.NodeProto, inputs: InputShapes, _: Shapes) -> Iterator[SizeConstraint]:
    first, second = inputs[:2]
    if first and second and len(first) == len(second) == 2:
        yield (
            first[0 if read_attribute(node, "transA", 0) else 1],
            second[1 if read_attribute(node, "transB", 0) else 0],
        )


def _constrain_reshape(node: onnx.NodeProto, inputs: InputShapes, shapes: Shapes) -> Iterator[SizeConstraint]:
    """Yield the one unknown size that a Reshape takes: its known sizes are divided out of those that it makes."""
    before, after = list(inputs[0] or ()), list(shapes.get(node.output[0], ()))
    for size in list(before):
        if size != "" and size in after:
            before.remove(size)
            after.remove(size)
    names = [size for size in before if isinstance(size, str)]
    inner, outer = ([size for size in sizes if isinstance(size, int)] for sizes in (before, after))
    inner_size = math.prod(inner)
    if len(names) == 1 and outer == after != [] and inner_size and math.prod(outer) % inner_size == 0:
        yield names[0], math.prod(outer) // inner_size


def _constrain_concat(node: onnx.NodeProto, inputs: InputShapes, _: Shapes) -> Iterator[SizeConstraint]:
    known = [shape for shape in inputs if shape]
    if not known or any(len(shape) != len(known[0]) for shape in known):
        return
    joined = read_attribute(node, "axis", 0) % len(known[0])
    for axis, sizes in enumerate(zip(*known, strict=True)):
        if axis != joined:
            known_sizes = dict.fromkeys(size for size in sizes if size != "")
            yield from itertools.pairwise(known_sizes)


def _constrain_columns(node: onnx.NodeProto, inputs: InputShapes, _: Shapes) -> Iterator[SizeConstraint]:
    """Yield the number of columns that an operator of ai.onnx.ml was made for, by the lengths of its attributes."""
    columns = _COLUMNS[node.op_type](node)
    if inputs[0] and columns > 1:
        yield inputs[0][-1], columns


def _constrain_vectors(node: onnx.NodeProto, inputs: InputShapes, _: Shapes) -> Iterator[SizeConstraint]:
    for shape, columns in zip(inputs, read_attribute(node, "inputdimensions", list[int]()), strict=False):
        if shape:
            yield shape[-1], columns


def _constrain_packed_matmul(node: onnx.NodeProto, inputs: InputShapes, _: Shapes) -> Iterator[SizeConstraint]:
    if inputs[0]:
        yield inputs[0][-1], read_attribute(node, "K", 0)


_COLUMNS: Mapping[str, Callable[[onnx.NodeProto], int]] = {
    "Scaler": lambda node: len(read_attribute(node, "offset", [])),
    "Imputer": lambda node: len(read_attribute(node, "imputed_value_floats", [])),
    "LinearRegressor": lambda node: (
        len(read_attribute(node, "coefficients", [])) // max(1, read_attribute(node, "targets", 1))
    ),
    "LinearClassifier": lambda node: (
        len(read_attribute(node, "coefficients", [])) // max(1, len(read_attribute(node, "intercepts", [])))
    ),
    "SVMClassifier": lambda node: (
        len(read_attribute(node, "support_vectors", [])) // max(1, sum(read_attribute(node, "vectors_per_class", [])))
    ),
    "SVMRegressor": lambda node: (
        len(read_attribute(node, "support_vectors", [])) // max(1, read_attribute(node, "n_supports", 0))
    ),
}
_CONSTRAINTS: Mapping[str, Constrain] = {
    **dict.fromkeys(_CONVOLUTIONS, _constrain_convolution),
    **dict.fromkeys(_COLUMNS, _constrain_columns),
    "FeatureVectorizer": _constrain_vectors,
    "Gemm": _constrain_gemm,
    "Reshape": _constrain_reshape,
    "Concat": _constrain_concat,
    "MatMulNBits": _constrain_packed_matmul,
}
