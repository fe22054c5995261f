"""Finds the largest integers that an input may hold, from the operators that read it. Runs in the child only."""

from collections.abc import Iterator, Sequence

import onnx

from farm.workshop.child import constants, traversal
from farm.workshop.child.shapes import Shape, Shapes, has_axis

# operators whose output holds the same numbers as their first input
_PASS_THROUGH = {
    *("Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Expand", "Tile"),
    *("Split", "Concat", "Pad", "Gather"),
}
# (operator, index of an input) where the input is a count or a size: a small number above zero
_COUNT_INPUTS = {
    *(("Loop", 0), ("TopK", 1), ("ConstantOfShape", 0), ("Range", 1), ("Expand", 1), ("Tile", 1), ("Reshape", 1)),
    *(("Upsample", 1), ("OneHot", 1), ("SequenceAt", 1), ("Trilu", 1), ("Slice", 2)),
}
# by operator: the index of the input that holds indices into input 0
_INDEX_INPUTS = {"Gather": 1, "GatherElements": 1, "ScatterElements": 1}
# by operator of com.microsoft: the index of each input that holds indices → that of the table they point into
_EMBEDDINGS = {"EmbedLayerNormalization": {0: 2, 1: 4}}

# Exporters let negative indices count from the end: they add the number of rows to indices below zero. _WRAPPING holds
# the operators that compute the new index, and _CONDITIONS those that decide where it is needed.
_WRAPPING, _CONDITIONS = {"Add", "Mul", "Where"}, {"Less", "GreaterOrEqual", "Not", "Cast"}

# stand in place of a bound: COUNT for an input that is a small number above zero, SIDE for the side of an image
COUNT, SIDE = -1, -2
Limit = int | str


def find_upper_bounds(model: onnx.ModelProto, inputs: list[str], *, shapes: Shapes) -> dict[str, Limit]:
    """Find the exclusive upper bound of each input that holds indices or a size. Other inputs are left out.

    A bound is a number, or the name of the dynamic dimension whose size it is, or COUNT or SIDE for an input that is
    itself a size. Nodes of subgraphs are read, those of the model's functions are not. `shapes` are those of the main
    graph's tensors.
    """
    graphs = traversal.iterate_graphs(model)
    stored = {tensor.name: list(tensor.dims) for graph in graphs for tensor in graph.initializer}
    shapes = {**stored, **shapes}
    nodes = list(traversal.iterate_nodes(model, with_functions=False))

    # constants that limit values: depths of OneHot, and row counts that are added to negative indices
    depths = constants.read_constants(
        model, names={node.input[1] for node in nodes if node.op_type == "OneHot" and len(node.input) > 1}
    )
    row_counts = {size for shape in shapes.values() for size in shape[:1]}
    operands = constants.read_constants(
        model, names={name for node in nodes if node.op_type in _WRAPPING for name in node.input}
    )
    stored_row_counts = {name for name, value in operands.items() if value.size == 1 and value.item() in row_counts}

    # follow each input's values through the graph
    bounds: dict[str, Limit] = {}
    for name in inputs:
        carriers, conditions, limits = {name}, set[str](), list[Limit]()
        for node in nodes:
            limits += _list_limits(node, carriers, shapes)
            if node.op_type == "OneHot" and node.input[0] in carriers and node.input[1] in depths:
                limits.append(int(depths[node.input[1]].reshape(-1)[0]))
            _follow_values(node, carriers, conditions, stored_row_counts)
        if limits:
            bounds[name] = _choose_tightest(limits)
    return bounds


def _list_limits(node: onnx.NodeProto, carriers: set[str], shapes: Shapes) -> Iterator[Limit]:
    """Yield the limits that a node sets on those of its inputs that are among `carriers`."""
    for index, name in enumerate(node.input):
        if name not in carriers:
            continue
        if (node.op_type, index) in _COUNT_INPUTS:
            yield COUNT
        if (node.op_type, index) == ("Resize", 3):
            yield SIDE
        if index == _INDEX_INPUTS.get(node.op_type):
            yield from _list_known_size(shapes.get(node.input[0]), traversal.read_attribute(node, "axis", 0))
        if node.op_type == "GatherND" and index == 1:
            sizes = [size for size in shapes.get(node.input[0], []) if isinstance(size, int) and size > 0]
            yield from sorted(sizes)[:1]
        table = _EMBEDDINGS.get(node.op_type, {}).get(index)
        if table is not None and table < len(node.input):
            yield from _list_known_size(shapes.get(node.input[table]), 0)


def _list_known_size(shape: Shape | None, axis: int) -> list[Limit]:
    return [shape[axis]] if shape and has_axis(shape, axis) and shape[axis] else []


def _follow_values(node: onnx.NodeProto, carriers: set[str], conditions: set[str], stored_row_counts: set[str]) -> None:
    """Add the node's outputs to `carriers` or `conditions` if an input's values reach them.

    `carriers` hold these values, or negative ones counted from the end. `conditions` say which of them are negative.
    """
    inputs = set(node.input)
    if node.op_type in _PASS_THROUGH and carriers & (inputs if node.op_type == "Concat" else {*node.input[:1]}):
        carriers.update(node.output)
    elif node.op_type in _CONDITIONS and (carriers | conditions) & inputs:
        conditions.update(node.output)
    elif node.op_type in _WRAPPING and carriers & inputs and inputs <= carriers | conditions | stored_row_counts:
        carriers.update(node.output)


def _choose_tightest(limits: Sequence[Limit]) -> Limit:
    """Choose the smallest number, else a dynamic dimension, else SIDE, else COUNT."""
    numbers = [limit for limit in limits if isinstance(limit, int) and limit not in (COUNT, SIDE)]
    if numbers:
        return min(numbers)
    dimensions = [limit for limit in limits if isinstance(limit, str)]
    if dimensions:
        return max(dimensions)
    return SIDE if SIDE in limits else COUNT
