"""Lists which dimensions must be equal for a node to run, from the shapes of its inputs. Child only."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import onnx
from onnx import helper

from farm.workshop.child.shapes import Shape, Shapes

# a dimension, and what it must equal: a number, or another dimension
SizeConstraint = tuple[int | str, int | str]
# the axis of the first input that equals an axis of another: (axis, input, axis)
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
    """Yield pairs of dimensions that must be equal for the node to run; an empty name is an unknown dimension."""
    ranks = [shapes.get(name) for name in node.input]
    first = ranks[0] if ranks else None
    if first is None:
        return
    for axis, at, other_axis in _EQUAL.get(node.op_type, ()):
        other = ranks[at] if at < len(ranks) else None
        if other and has_axis(first, axis) and (has_axis(other, other_axis) or other_axis == -2):
            yield first[axis], other[other_axis if has_axis(other, other_axis) else -1]
    maker = _MAKERS.get(node.op_type)
    if maker is not None:
        yield from maker(node, ranks, shapes)
    if node.op_type in _BROADCASTS:
        yield from _broadcast([rank for rank in ranks if rank is not None])


def has_axis(shape: Shape, axis: int) -> bool:
    return -len(shape) <= axis < len(shape)


def _broadcast(ranks: list[Shape]) -> Iterator[SizeConstraint]:
    """Yield names that must equal a number above 1 at the same place, and numbers that contradict each other."""
    for at in range(1, max(map(len, ranks), default=0) + 1):
        sizes = {rank[-at] for rank in ranks if len(rank) >= at}
        numbers = {size for size in sizes if isinstance(size, int) and size > 1}
        yield from itertools.pairwise(numbers)
        if len(numbers) == 1:
            yield from ((name, max(numbers)) for name in sizes if isinstance(name, str))


Ranks = list[Shape | None]
Maker = Callable[[onnx.NodeProto, Ranks, Shapes], Iterator[SizeConstraint]]


def _convolution(node: onnx.NodeProto, ranks: Ranks, _: Shapes) -> Iterator[SizeConstraint]:
    at = _CONVOLUTIONS[node.op_type]
    kernel = ranks[at] if at < len(ranks) else None
    if ranks[0] and kernel and len(ranks[0]) == len(kernel) > 2 and isinstance(kernel[1], int):
        yield ranks[0][1], kernel[1] * int(read_attribute(node, "group", 1))


def _gemm(node: onnx.NodeProto, ranks: Ranks, _: Shapes) -> Iterator[SizeConstraint]:
    first, second = ranks[:2]
    if first and second and len(first) == len(second) == 2:
        yield (
            first[0 if read_attribute(node, "transA", 0) else 1],
            second[1 if read_attribute(node, "transB", 0) else 0],
        )


def _reshape(node: onnx.NodeProto, ranks: Ranks, shapes: Shapes) -> Iterator[SizeConstraint]:
    """Yield the one unknown size of a Reshape: what is left when sizes on both sides are struck out."""
    before, after = list(ranks[0] or ()), list(shapes.get(node.output[0], ()))
    for size in list(before):
        if size != "" and size in after:
            before.remove(size)
            after.remove(size)
    names = [size for size in before if isinstance(size, str)]
    inner, outer = ([size for size in sizes if isinstance(size, int)] for sizes in (before, after))
    many = math.prod(inner)
    if len(names) == 1 and outer == after != [] and many and math.prod(outer) % many == 0:
        yield names[0], math.prod(outer) // many


def _concat(node: onnx.NodeProto, ranks: Ranks, _: Shapes) -> Iterator[SizeConstraint]:
    known = [rank for rank in ranks if rank]
    if not known or any(len(rank) != len(known[0]) for rank in known):
        return
    joined = int(read_attribute(node, "axis", 0)) % len(known[0])
    for axis, sizes in enumerate(zip(*known, strict=True)):
        if axis != joined:
            known_sizes = dict.fromkeys(size for size in sizes if size != "")
            yield from itertools.pairwise(known_sizes)


def _features(node: onnx.NodeProto, ranks: Ranks, _: Shapes) -> Iterator[SizeConstraint]:
    """Yield the number of columns that an operator of ai.onnx.ml was made for, by the lengths of its attributes."""
    many = _COLUMNS[node.op_type](node)
    if ranks[0] and many > 1:
        yield ranks[0][-1], many


def _vectors(node: onnx.NodeProto, ranks: Ranks, _: Shapes) -> Iterator[SizeConstraint]:
    for rank, many in zip(ranks, read_attribute(node, "inputdimensions", ()), strict=False):
        if rank:
            yield rank[-1], int(many)


def _packed(node: onnx.NodeProto, ranks: Ranks, _: Shapes) -> Iterator[SizeConstraint]:
    if ranks[0]:
        yield ranks[0][-1], int(read_attribute(node, "K", 0))


_COLUMNS: Mapping[str, Callable[[onnx.NodeProto], int]] = {
    "Scaler": lambda node: len(read_attribute(node, "offset", ())),
    "Imputer": lambda node: len(read_attribute(node, "imputed_value_floats", ())),
    "LinearRegressor": lambda node: (
        len(read_attribute(node, "coefficients", ())) // max(1, read_attribute(node, "targets", 1))
    ),
    "LinearClassifier": lambda node: (
        len(read_attribute(node, "coefficients", ())) // max(1, len(read_attribute(node, "intercepts", ())))
    ),
    "SVMClassifier": lambda node: (
        len(read_attribute(node, "support_vectors", ())) // max(1, sum(read_attribute(node, "vectors_per_class", ())))
    ),
    "SVMRegressor": lambda node: (
        len(read_attribute(node, "support_vectors", ())) // max(1, read_attribute(node, "n_supports", 0))
    ),
}
_MAKERS: Mapping[str, Maker] = {
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    **dict.fromkeys(_COLUMNS, _features),
    "FeatureVectorizer": _vectors,
    "Gemm": _gemm,
    "Reshape": _reshape,
    "Concat": _concat,
    "MatMulNBits": _packed,
}


def read_attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    found = next((attribute for attribute in node.attribute if attribute.name == name), None)
    return default if found is None else helper.get_attribute_value(found)
