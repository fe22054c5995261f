"""Which size a dynamic dimension must have, read off what consumes it: a kernel, a matrix, a table. Child only.

Shape inference carries the names of dimensions through the graph, reshapes included; where a name then meets a number
that it must equal, that is its size.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import helper

from farm.rules.runtimes import opsets
from farm.workshop import arrays
from farm.workshop.child import constants, external, signature
from farm.workshop.problems import shown

Shape = list[int | str]
Shapes = Mapping[str, Shape]
# a dimension, and what it must equal: a number, or another dimension
Claim = tuple[int | str, int | str]
# larger tensors hold weights, smaller ones shapes that inference has to read
_MAX_READ = 256
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
# where attention takes what came before: (queries, past key)
_PASTS = {("com.microsoft", "GroupQueryAttention"): 3, ("com.microsoft", "MultiHeadAttention"): 6, ("", "Attention"): 4}
_PICKS = {"Gather", "ArrayFeatureExtractor"}
_TREES = {"TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble"}


@dataclass
class Required:
    """What the graph says of dynamic dimensions, and the shapes that were inferred.

    `sizes`: by dimension, each size that something wants, and the first node that does. `least`: where only so many are
    certain. `same`: pairs that agree. `tables`: rows of stored tables that are added to what an input has become, such
    as one of positions. `pasts`: lengths of what is kept of earlier steps and grows; `steps`: how much is added to
    them, where inference can say it.
    """

    shapes: Shapes = field(default_factory=dict)
    sizes: dict[str, dict[int, str]] = field(default_factory=dict)
    least: dict[str, int] = field(default_factory=dict)
    same: set[tuple[str, str]] = field(default_factory=set)
    tables: list[int] = field(default_factory=list)
    pasts: set[str] = field(default_factory=set)
    steps: set[str] = field(default_factory=set)

    def of(self, dim: str) -> list[int]:
        """The sizes that a dimension must have: one, several where its consumers disagree, none where nothing says."""
        return list(self.sizes.get(dim, ())) or ([self.least[dim]] if dim in self.least else [])

    def disagreements(self) -> str:
        """A sentence for each dimension that is wanted differently, with the option that sets it; empty: none is."""
        return " ".join(
            f"{shown(dim)} is to be {' and '.join(f'{size:,} for {node}' for size, node in wanted.items())}: say which "
            f"with --shape {shown(dim)}=SIZE."
            for dim, wanted in self.sizes.items()
            if len(wanted) > 1
        )


def required(model: onnx.ModelProto, facts: signature.Signature) -> Required:
    """What the graph proves about the dynamic dimensions; nothing where inference gives up."""
    light = _with_named_inputs(skeleton(model), facts)
    shapes = shapes_of(light)
    found, dims = Required(shapes), set(facts["dims"]) - {facts["batch"]}
    fed = {port["name"] for port in facts["inputs"]}
    picked = {node.input[1] for node in light.graph.node if node.op_type in _PICKS and len(node.input) > 1}
    places = constants.values(light, names=picked)
    for node in light.graph.node:
        for left, other in _claims(node, shapes):
            named, wanted = (left, other) if isinstance(left, str) else (other, left)
            if isinstance(named, str) and isinstance(wanted, str) and {named, wanted} <= dims:
                found.same.add((named, wanted))
            elif isinstance(wanted, int) and named in dims:
                called = shown(f"{node.op_type} {node.name or node.output[0]}")
                found.sizes.setdefault(str(named), {}).setdefault(wanted, called)
        for named, least in _minimums(node, shapes, places):
            if named in dims:
                found.least[str(named)] = max(least, found.least.get(str(named), 0))
        found.tables += _table_rows(node, shapes, dims)
        for past, step in _grown(node, shapes, fed):
            found.pasts |= {str(past)} & dims
            found.steps |= {str(step)} & dims
    _share(found)
    return found


def skeleton(model: onnx.ModelProto) -> onnx.ModelProto:
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
        if external.fields(tensor) or math.prod(tensor.dims) > _MAX_READ:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        else:
            graph.initializer.append(tensor)
    return light


def give_shapes(model: onnx.ModelProto) -> None:
    """Gives every tensor of the main graph the shape that follows, where one does, without the weights' values.

    Raises InferenceError, ValueError, RuntimeError.
    """
    light = skeleton(model)
    light.graph.value_info.extend(model.graph.value_info)
    found = inferred(light).graph
    for values, known in ((model.graph.value_info, found.value_info), (model.graph.output, found.output)):
        del values[:]
        values.extend(known)


def shapes_of(light: onnx.ModelProto) -> dict[str, Shape]:
    """The shape of every tensor of the main graph that inference knows the rank of, sizes and names of dimensions."""
    # what is declared is known all the same
    with contextlib.suppress(onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        light = inferred(light)
    values = (*light.graph.input, *light.graph.value_info, *light.graph.output)
    found = {value.name: _shape(value) for value in values if value.type.tensor_type.HasField("shape")}
    return found | {tensor.name: list(tensor.dims) for tensor in light.graph.initializer}


def inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the shapes that follow. Raises InferenceError, ValueError, RuntimeError.

    onnx 1.23 ends the process at a LabelEncoder whose input has no type, as operators of other domains leave it: such a
    model stays as it is.
    """
    kinds = {(node.domain in opsets.ONNX_DOMAINS, node.op_type) for node in model.graph.node}
    if any(kind == "LabelEncoder" for _, kind in kinds) and any(not is_own for is_own, _ in kinds):
        return model
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def _with_named_inputs(light: onnx.ModelProto, facts: signature.Signature) -> onnx.ModelProto:
    """The names of unnamed dimensions are those of the signature."""
    named = {port["name"]: port["shape"] for port in facts["inputs"]}
    for value in light.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, named.get(value.name) or (), strict=False):
            if isinstance(size, str):
                dim.dim_param = size
    return light


def _shape(value: onnx.ValueInfoProto) -> Shape:
    dims = value.type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in dims]


def _claims(node: onnx.NodeProto, shapes: Shapes) -> Iterator[Claim]:
    """What must be equal for the node to run. An empty name is a dimension that nobody knows."""
    ranks = [shapes.get(name) for name in node.input]
    first = ranks[0] if ranks else None
    if first is None:
        return
    for axis, at, other_axis in _EQUAL.get(node.op_type, ()):
        other = ranks[at] if at < len(ranks) else None
        if other and _has(first, axis) and (_has(other, other_axis) or other_axis == -2):
            yield first[axis], other[other_axis if _has(other, other_axis) else -1]
    maker = _MAKERS.get(node.op_type)
    if maker is not None:
        yield from maker(node, ranks, shapes)
    if node.op_type in _BROADCASTS:
        yield from _broadcast([rank for rank in ranks if rank is not None])


def _has(shape: Shape, axis: int) -> bool:
    return -len(shape) <= axis < len(shape)


def _broadcast(ranks: list[Shape]) -> Iterator[Claim]:
    """Whatever is no 1 on one side equals the other side; two names may be a 1 each."""
    for at in range(1, max(map(len, ranks), default=0) + 1):
        sizes = {rank[-at] for rank in ranks if len(rank) >= at}
        numbers = {size for size in sizes if isinstance(size, int) and size > 1}
        if len(numbers) == 1:
            yield from ((name, max(numbers)) for name in sizes if isinstance(name, str))


Ranks = list[Shape | None]
Maker = Callable[[onnx.NodeProto, Ranks, Shapes], Iterator[Claim]]


def _convolution(node: onnx.NodeProto, ranks: Ranks, _: Shapes) -> Iterator[Claim]:
    at = _CONVOLUTIONS[node.op_type]
    kernel = ranks[at] if at < len(ranks) else None
    if ranks[0] and kernel and len(ranks[0]) == len(kernel) > 2 and isinstance(kernel[1], int):
        yield ranks[0][1], kernel[1] * int(_attribute(node, "group", 1))


def _gemm(node: onnx.NodeProto, ranks: Ranks, _: Shapes) -> Iterator[Claim]:
    first, second = ranks[:2]
    if first and second and len(first) == len(second) == 2:
        yield first[0 if _attribute(node, "transA", 0) else 1], second[1 if _attribute(node, "transB", 0) else 0]


def _reshape(node: onnx.NodeProto, ranks: Ranks, shapes: Shapes) -> Iterator[Claim]:
    """As many numbers before as after: what is left when equal sizes are struck out."""
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


def _concat(node: onnx.NodeProto, ranks: Ranks, _: Shapes) -> Iterator[Claim]:
    known = [rank for rank in ranks if rank]
    if not known or any(len(rank) != len(known[0]) for rank in known):
        return
    joined = int(_attribute(node, "axis", 0)) % len(known[0])
    for axis, sizes in enumerate(zip(*known, strict=True)):
        if axis != joined:
            yield from ((sizes[0], other) for other in sizes[1:] if other != sizes[0])


def _features(node: onnx.NodeProto, ranks: Ranks, _: Shapes) -> Iterator[Claim]:
    """How many columns an operator of ai.onnx.ml was made for, by the lengths of its attributes."""
    many = _COLUMNS[node.op_type](node)
    if ranks[0] and many > 1:
        yield ranks[0][-1], many


def _vectors(node: onnx.NodeProto, ranks: Ranks, _: Shapes) -> Iterator[Claim]:
    for rank, many in zip(ranks, _attribute(node, "inputdimensions", ()), strict=False):
        if rank:
            yield rank[-1], int(many)


def _packed(node: onnx.NodeProto, ranks: Ranks, _: Shapes) -> Iterator[Claim]:
    if ranks[0]:
        yield ranks[0][-1], int(_attribute(node, "K", 0))


_COLUMNS: Mapping[str, Callable[[onnx.NodeProto], int]] = {
    "Scaler": lambda node: len(_attribute(node, "offset", ())),
    "Imputer": lambda node: len(_attribute(node, "imputed_value_floats", ())),
    "LinearRegressor": lambda node: len(_attribute(node, "coefficients", ())) // max(1, _attribute(node, "targets", 1)),
    "LinearClassifier": lambda node: (
        len(_attribute(node, "coefficients", ())) // max(1, len(_attribute(node, "intercepts", ())))
    ),
    "SVMClassifier": lambda node: (
        len(_attribute(node, "support_vectors", ())) // max(1, sum(_attribute(node, "vectors_per_class", ())))
    ),
    "SVMRegressor": lambda node: (
        len(_attribute(node, "support_vectors", ())) // max(1, _attribute(node, "n_supports", 0))
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


def _minimums(node: onnx.NodeProto, shapes: Shapes, places: arrays.Arrays) -> Iterator[tuple[int | str, int]]:
    """Dimensions that something is picked out of by a number: they hold at least so many."""
    shape = shapes.get(node.input[0]) if node.input else None
    if not shape:
        return
    if node.op_type in _TREES:
        yield shape[-1], max(_attribute(node, "nodes_featureids", ()), default=0) + 1
    picked = places.get(node.input[1]) if node.op_type in _PICKS and len(node.input) > 1 else None
    if picked is not None and picked.size:
        axis = int(_attribute(node, "axis", 0)) if node.op_type == "Gather" else -1
        if _has(shape, axis):
            yield shape[axis], int(picked.max()) + 1


def _table_rows(node: onnx.NodeProto, shapes: Shapes, dims: set[str]) -> Iterator[int]:
    ranks = [shapes.get(name) or [] for name in node.input]
    if node.op_type != "Add" or len(ranks) != 2:
        return
    for table, other in (ranks, reversed(ranks)):
        is_table = 2 <= len(table) <= 3 and all(isinstance(size, int) for size in table)
        if (
            is_table
            and len(other) == 3
            and isinstance(other[1], str)
            and other[1] not in dims
            and table[-1] == other[-1]
        ):
            yield int(table[-2])


def _grown(node: onnx.NodeProto, shapes: Shapes, fed: set[str]) -> Iterator[tuple[int | str, int | str]]:
    """Lengths of keys or values of earlier steps that an input holds, and of what is put behind them."""
    at = _PASTS.get((node.domain.removesuffix("ai.onnx"), node.op_type), 0)
    if not node.input or at >= len(node.input) or node.input[at] not in fed:
        return
    past, step = shapes.get(node.input[at], []), shapes.get(node.input[0 if at else -1], [])
    if at and len(past) >= 4 and step:
        yield past[-2], step[1 if len(step) == 3 else -2]
    elif node.op_type == "Concat" and len(past) == len(step) == 4 and _attribute(node, "axis", 0) in (-2, 2):
        yield past[-2], step[-2]


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    found = next((attribute for attribute in node.attribute if attribute.name == name), None)
    return default if found is None else helper.get_attribute_value(found)


def _share(found: Required) -> None:
    """Dimensions that must be equal have each other's sizes."""
    pairs = sorted(found.same)
    for _ in pairs:
        for dim, other in pairs:
            for name, source in ((dim, other), (other, dim)):
                for size, node in list(found.sizes.get(source, {}).items()):
                    found.sizes.setdefault(name, {}).setdefault(size, node)
