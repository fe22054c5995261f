"""Recognises first dimensions of inputs that are one batch under several names. Runs in the child only.

`are_numbered_names` is true if exporters made up all of the names by numbering, like `unk__12`, and for no names.
"""

import re
from collections.abc import Mapping, Sequence

import onnx

from farm.workshop.child import size_constraints
from farm.workshop.child.shapes import copy_without_weights, list_shapes

# names that exporters make up by numbering dimensions without a name
_NUMBERED = re.compile(r"(unk_+|unknown_*|(.+_)?dynamic_axes_|dim_|DynamicDimension\.)\d+")
# each dimension gets a different size, from this one on, by which it is recognised after shape inference
_FIRST_MARK = 100_003
_SIZES = {"Shape", "Size"}
# operators whose input 1 holds indices into input 0
_PICKS = {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "Scatter"}


def are_numbered_names(dims: Sequence[str]) -> bool:
    return all(map(_NUMBERED.fullmatch, dims))


def are_same_dimension(model: onnx.ModelProto, firsts: Mapping[str, str]) -> bool:
    """Say whether the first dimensions (names by input) are one dimension under several names.

    Each of them must be required to equal another one, or be the first dimension of an output. If inference finds no
    first dimension of any output, every output must instead be computed from the rows of each input.
    """
    # give each dimension a different size
    marks = {dim: _FIRST_MARK + number for number, dim in enumerate(dict.fromkeys(firsts.values()))}
    light = copy_without_weights(model)
    for value in light.graph.input:
        if value.name in firsts:
            value.type.tensor_type.shape.dim[0].dim_value = marks[firsts[value.name]]
    for value in light.graph.output:
        value.type.tensor_type.ClearField("shape")

    # remove those that a node requires to equal another one
    shapes, unmatched = list_shapes(light), set(marks.values())
    for node in light.graph.node:
        for pair in size_constraints.list_constraints(node, shapes):
            if len(set(pair)) == 2 and set(pair) <= set(marks.values()):
                unmatched -= {size for size in pair if isinstance(size, int)}

    output_firsts = {(shapes.get(value.name) or [""])[0] for value in model.graph.output}
    declared = [list(value.type.tensor_type.shape.dim[:1]) for value in model.graph.output]
    return unmatched <= output_firsts or (
        output_firsts.isdisjoint(marks.values())
        and all(dims and not dims[0].HasField("dim_value") for dims in declared)
        and are_numbered_names([dims[0].dim_param for dims in declared])
        and all(_reaches_all(model, name) for name, dim in firsts.items() if marks[dim] in unmatched)
    )


def _reaches_all(model: onnx.ModelProto, name: str) -> bool:
    """Say whether every output is computed from the input's rows, and not from its sizes alone.

    An input whose numbers pick rows of another one, as edges of a graph pick nodes, does not count.
    """
    rows, stored = {name}, {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type in _SIZES or not rows & {*node.input}:
            continue
        if node.op_type in _PICKS and node.input[1] in rows and node.input[0] not in stored:
            return False
        rows.update(node.output)
    return rows >= {value.name for value in model.graph.output}
