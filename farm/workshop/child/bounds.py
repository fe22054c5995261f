"""Which whole numbers an input may hold, read off the operators that it feeds. Runs in the child only."""

from collections.abc import Iterator

import onnx

from farm.workshop.child import constants, consumers, walk

# their output holds the same numbers as their first input
_PASSES_ON = {
    *("Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Expand", "Tile"),
    *("Split", "Concat", "Pad"),
}
# inputs that are a count or a size: a small number above zero
_COUNTS = {
    *(("Loop", 0), ("TopK", 1), ("ConstantOfShape", 0), ("Range", 1), ("Expand", 1), ("Tile", 1), ("Reshape", 1)),
    *(("Resize", 3), ("Upsample", 1), ("OneHot", 1), ("SequenceAt", 1), ("Trilu", 1)),
}
# index input, table input, axis attribute's default
_LOOKUPS = {"Gather": (1, 0, 0), "GatherElements": (1, 0, 0), "ScatterElements": (1, 0, 0)}
# contrib embedding: index input → table input
_EMBEDDINGS = {"EmbedLayerNormalization": {0: 2, 1: 4}}

COUNT = -1


def upper_bounds(model: onnx.ModelProto, inputs: list[str], *, shapes: consumers.Shapes) -> dict[str, int]:
    """Exclusive upper bound of each input that indexes something of known size; COUNT for one that is a count.

    `shapes`: of the main graph's tensors.
    """
    known = _known_shapes(model, shapes)
    nodes = list(walk.nodes(model, with_functions=False))
    depths = constants.values(model, names={n.input[1] for n in nodes if n.op_type == "OneHot" and len(n.input) > 1})
    found: dict[str, int] = {}
    for name in inputs:
        carried, limits = {name}, []
        for node in nodes:
            limits += list(_limits(node, carried, shapes=known))
            if node.op_type == "OneHot" and node.input[0] in carried and node.input[1] in depths:
                limits.append(int(depths[node.input[1]].reshape(-1)[0]))
            if node.op_type in _PASSES_ON and node.input and node.input[0] in carried:
                carried.update(node.output)
        if limits:
            found[name] = min((limit for limit in limits if limit != COUNT), default=COUNT)
    return found


def _limits(node: onnx.NodeProto, carried: set[str], *, shapes: dict[str, list[int]]) -> Iterator[int]:
    for index, name in enumerate(node.input):
        if name not in carried:
            continue
        if (node.op_type, index) in _COUNTS:
            yield COUNT
        if node.op_type in _LOOKUPS and index == _LOOKUPS[node.op_type][0]:
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
            yield from _size(shapes.get(node.input[_LOOKUPS[node.op_type][1]]), axis)
        if node.op_type == "GatherND" and index == 1:
            yield from [min(sizes)] if (sizes := [s for s in shapes.get(node.input[0], []) if s > 0]) else []
        table = _EMBEDDINGS.get(node.op_type, {}).get(index)
        if table is not None and table < len(node.input):
            yield from _size(shapes.get(node.input[table]), 0)


def _size(shape: list[int] | None, axis: int) -> Iterator[int]:
    if shape and -len(shape) <= axis < len(shape) and shape[axis] > 0:
        yield shape[axis]


def _known_shapes(model: onnx.ModelProto, inferred: consumers.Shapes) -> dict[str, list[int]]:
    """Shapes by tensor name, 0 where a size is not known."""
    shapes = {tensor.name: list(tensor.dims) for graph in walk.graphs(model) for tensor in graph.initializer}
    for name, shape in inferred.items():
        shapes.setdefault(name, [size if isinstance(size, int) else 0 for size in shape])
    return shapes
