"""Finds the size that a dynamic dimension must have, from the nodes that consume it, such as a Conv. Child only.

Shape inference carries the names of dimensions through the graph, reshapes included. Where a name then meets a number
that it must equal, this number is its size.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx

from farm.workshop import arrays
from farm.workshop.child import constants, signature, size_constraints, traversal
from farm.workshop.child.shapes import Shapes, copy_without_weights, has_axis, list_shapes
from farm.workshop.problems import printable

# by operator of attention: the index of the input that holds the keys of earlier steps
_PASTS = {("com.microsoft", "GroupQueryAttention"): 3, ("com.microsoft", "MultiHeadAttention"): 6, ("", "Attention"): 4}
_PICKS = {"Gather", "ArrayFeatureExtractor"}
_TREES = {"TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble"}


@dataclass
class Requirements:
    """The sizes that a graph requires of dynamic dimensions, and the shapes that were inferred."""

    shapes: Shapes = field(default_factory=dict)
    # by dimension: each size that some node requires → the first such node
    sizes: dict[str, dict[int, str]] = field(default_factory=dict)
    # by dimension: the smallest possible size
    minimums: dict[str, int] = field(default_factory=dict)
    # pairs of dimensions that must be equal
    equal_dims: set[tuple[str, str]] = field(default_factory=set)
    # row counts of stored tables that are added to an input's values, such as position embeddings
    table_rows: list[int] = field(default_factory=list)
    # dimensions that are the length of a decoder's cache
    past_dims: set[str] = field(default_factory=set)
    # dimensions by which that cache grows, if inference finds them
    step_dims: set[str] = field(default_factory=set)

    def list_sizes(self, dim: str) -> list[int]:
        """List the sizes required of a dimension, several where nodes disagree; else its minimum, or nothing."""
        return list(self.sizes.get(dim, ())) or ([self.minimums[dim]] if dim in self.minimums else [])

    def describe_disagreements(self) -> str:
        """Write a sentence for each dimension of which nodes require different sizes; empty if they agree."""
        return " ".join(
            f"{printable(dim)} is to be {' and '.join(f'{size:,} for {node}' for size, node in sizes.items())}: "
            f"say which with --shape {printable(dim)}=SIZE."
            for dim, sizes in self.sizes.items()
            if len(sizes) > 1
        )


def find_required_sizes(model: onnx.ModelProto, facts: signature.Signature) -> Requirements:
    """Find the sizes that the graph requires of the dynamic dimensions, except the batch.

    Only nodes of the main graph are read. If shape inference fails, only the shapes that the model declares are known,
    so that few sizes or none are found.
    """
    # shapes, with the signature's names for dimensions without a name of their own
    light = _name_inputs(copy_without_weights(model), facts)
    shapes = list_shapes(light)
    required, dims = Requirements(shapes), set(facts["dims"]) - {facts["batch"]}
    fed = {port["name"] for port in facts["inputs"]}
    picked = {node.input[1] for node in light.graph.node if node.op_type in _PICKS and len(node.input) > 1}
    indices = constants.read_constants(light, names=picked)

    for node in light.graph.node:
        for left, right in size_constraints.list_constraints(node, shapes):
            dim, required_size = (left, right) if isinstance(left, str) else (right, left)
            if isinstance(dim, str) and isinstance(required_size, str) and {dim, required_size} <= dims:
                required.equal_dims.add((dim, required_size))
            elif isinstance(required_size, int) and dim in dims:
                node_name = printable(f"{node.op_type} {node.name or node.output[0]}")
                required.sizes.setdefault(str(dim), {}).setdefault(required_size, node_name)
        for dim, minimum in _list_minimums(node, shapes, indices):
            if dim in dims:
                required.minimums[str(dim)] = max(minimum, required.minimums.get(str(dim), 0))
        required.table_rows += _list_added_table_rows(node, shapes, dims)
        for past, step in _list_growing_dims(node, shapes, fed):
            required.past_dims |= {str(past)} & dims
            required.step_dims |= {str(step)} & dims
    _share_sizes(required)
    return required


def _name_inputs(light: onnx.ModelProto, facts: signature.Signature) -> onnx.ModelProto:
    """Give unnamed dimensions of the inputs the names that the signature gave them."""
    input_shapes = {port["name"]: port["shape"] for port in facts["inputs"]}
    for value in light.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, input_shapes.get(value.name) or (), strict=False):
            if isinstance(size, str):
                dim.dim_param = size
    return light


def _list_minimums(node: onnx.NodeProto, shapes: Shapes, indices: arrays.Arrays) -> Iterator[tuple[int | str, int]]:
    """Yield each dimension from which a node picks by a stored index, with the smallest size that has this index."""
    shape = shapes.get(node.input[0]) if node.input else None
    if not shape:
        return
    if node.op_type in _TREES:
        yield shape[-1], max(traversal.read_attribute(node, "nodes_featureids", []), default=0) + 1
    picked = indices.get(node.input[1]) if node.op_type in _PICKS and len(node.input) > 1 else None
    if picked is not None and picked.size:
        axis = traversal.read_attribute(node, "axis", 0) if node.op_type == "Gather" else -1
        # every dimension has index 0
        if has_axis(shape, axis) and (picked.max() > 0 or node.op_type != "Gather"):
            yield shape[axis], int(picked.max()) + 1


def _list_added_table_rows(node: onnx.NodeProto, shapes: Shapes, dims: set[str]) -> Iterator[int]:
    inputs = [shapes.get(name) or [] for name in node.input]
    if node.op_type != "Add" or len(inputs) != 2:
        return
    for table, other in (inputs, reversed(inputs)):
        is_table = 2 <= len(table) <= 3 and all(isinstance(size, int) for size in table)
        if (
            is_table
            and len(other) == 3
            and isinstance(other[1], str)
            and other[1] not in dims
            and table[-1] == other[-1]
            # a single row is a bias, which is added to every row
            and int(table[-2]) > 1
        ):
            yield int(table[-2])


def _list_growing_dims(node: onnx.NodeProto, shapes: Shapes, fed: set[str]) -> Iterator[tuple[int | str, int | str]]:
    """Yield the length of cached keys or values that an input holds, with the length that the node appends."""
    at = _PASTS.get((node.domain.removesuffix("ai.onnx"), node.op_type), 0)
    if not node.input or at >= len(node.input) or node.input[at] not in fed:
        return
    past, step = shapes.get(node.input[at], []), shapes.get(node.input[0 if at else -1], [])
    if at and len(past) >= 4 and step:
        yield past[-2], step[1 if len(step) == 3 else -2]
    # a Concat of one input appends nothing; such an input holds an encoder's output
    is_joined = (
        node.op_type == "Concat" and len(node.input) > 1 and traversal.read_attribute(node, "axis", 0) in (-2, 2)
    )
    if is_joined and len(past) == len(step) == 4:
        yield past[-2], step[-2]


def _share_sizes(required: Requirements) -> None:
    """Give dimensions that must be equal each other's sizes."""
    pairs = sorted(required.equal_dims)
    for _ in pairs:
        for dim, other in pairs:
            for name, source in ((dim, other), (other, dim)):
                for size, node in list(required.sizes.get(source, {}).items()):
                    required.sizes.setdefault(name, {}).setdefault(size, node)
