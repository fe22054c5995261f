"""Which whole numbers an input may hold, read off the operators that it feeds. Runs in the child only."""

from collections.abc import Iterator, Sequence

import onnx

from farm.workshop.child import constants, traversal
from farm.workshop.child.shapes import Shape, Shapes

# their output holds the same numbers as their first input
_PASSES_ON = {
    *("Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Expand", "Tile"),
    *("Split", "Concat", "Pad", "Gather"),
}
# inputs that are a count or a size: a small number above zero
_COUNTS = {
    *(("Loop", 0), ("TopK", 1), ("ConstantOfShape", 0), ("Range", 1), ("Expand", 1), ("Tile", 1), ("Reshape", 1)),
    *(("Upsample", 1), ("OneHot", 1), ("SequenceAt", 1), ("Trilu", 1), ("Slice", 2)),
}
# by operator: the input that holds indices; the table that they look up is input 0
_LOOKUPS = {"Gather": 1, "GatherElements": 1, "ScatterElements": 1}
# contrib embedding: index input → table input
_EMBEDDINGS = {"EmbedLayerNormalization": {0: 2, 1: 4}}

# how exporters let negative indices count from the end: the rows are added where a number is below zero
_WRAPS, _FLAGS = {"Add", "Mul", "Where"}, {"Less", "GreaterOrEqual", "Not", "Cast"}

# a small number above zero; the side of a picture
COUNT, SIDE = -1, -2
Limit = int | str


def find_upper_bounds(model: onnx.ModelProto, inputs: list[str], *, shapes: Shapes) -> dict[str, Limit]:
    """Find the exclusive upper bound of each of the inputs that indexes something or is a size.

    A bound is a number, the name of a dynamic dimension whose size it is, or COUNT or SIDE for an input that is itself
    a size. Inputs without a bound are left out. `shapes` are those of the main graph's tensors.
    """
    stored = {
        tensor.name: list(tensor.dims) for graph in traversal.iterate_graphs(model) for tensor in graph.initializer
    }
    known: Shapes = {**stored, **shapes}
    nodes = list(traversal.iterate_nodes(model, with_functions=False))
    depths = constants.read_constants(
        model, names={n.input[1] for n in nodes if n.op_type == "OneHot" and len(n.input) > 1}
    )
    rows = {size for shape in known.values() for size in shape[:1]}
    met = constants.read_constants(
        model, names={name for node in nodes if node.op_type in _WRAPS for name in node.input}
    )
    scalars = {name for name, value in met.items() if value.size == 1 and value.item() in rows}
    found: dict[str, Limit] = {}
    for name in inputs:
        carried, flags, limits = {name}, set[str](), list[Limit]()
        for node in nodes:
            limits += _limits(node, carried, shapes=known)
            if node.op_type == "OneHot" and node.input[0] in carried and node.input[1] in depths:
                limits.append(int(depths[node.input[1]].reshape(-1)[0]))
            _carry(node, carried, flags, scalars)
        if limits:
            found[name] = _choose_tightest(limits)
    return found


def _choose_tightest(limits: Sequence[Limit]) -> Limit:
    """Choose the smallest number; without one a dynamic dimension; without one whether it is a side or a count."""
    numbers = [limit for limit in limits if isinstance(limit, int) and limit not in (COUNT, SIDE)]
    dimensions = [limit for limit in limits if isinstance(limit, str)]
    if numbers:
        return min(numbers)
    if dimensions:
        return max(dimensions)
    return SIDE if SIDE in limits else COUNT


def _carry(node: onnx.NodeProto, carried: set[str], flags: set[str], scalars: set[str]) -> None:
    """Add the node's outputs to `carried` where they hold the input's numbers, wrapped from the end or not."""
    if node.op_type in _PASSES_ON and carried & {*(node.input if node.op_type == "Concat" else node.input[:1])}:
        carried.update(node.output)
    elif node.op_type in _FLAGS and (carried | flags) & set(node.input):
        flags.update(node.output)
    elif node.op_type in _WRAPS and carried & set(node.input) and set(node.input) <= carried | flags | scalars:
        carried.update(node.output)


def _limits(node: onnx.NodeProto, carried: set[str], *, shapes: Shapes) -> Iterator[Limit]:
    for index, name in enumerate(node.input):
        if name not in carried:
            continue
        if (node.op_type, index) in _COUNTS:
            yield COUNT
        if (node.op_type, index) == ("Resize", 3):
            yield SIDE
        if index == _LOOKUPS.get(node.op_type):
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
            yield from _size(shapes.get(node.input[0]), axis)
        if node.op_type == "GatherND" and index == 1:
            sizes = [size for size in shapes.get(node.input[0], []) if isinstance(size, int) and size > 0]
            yield from [min(sizes)] if sizes else []
        table = _EMBEDDINGS.get(node.op_type, {}).get(index)
        if table is not None and table < len(node.input):
            yield from _size(shapes.get(node.input[table]), 0)


def _size(shape: Shape | None, axis: int) -> Iterator[Limit]:
    if shape and -len(shape) <= axis < len(shape) and shape[axis]:
        yield shape[axis]
