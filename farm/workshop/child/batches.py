"""First dimensions of inputs that are one batch although their names do not say so. Runs in the child only."""

import re
from collections.abc import Mapping, Sequence

import onnx

from farm.workshop.child import claims
from farm.workshop.child.shapes import shapes_of, skeleton

_NUMBERED = re.compile(r"(unk_+|unknown_*|dynamic_axes_|dim_|DynamicDimension\.)\d+")
# sizes that no model has of itself: what equals one of them was it
_MARKS_FROM = 100_003


def are_nameless(firsts: Sequence[str]) -> bool:
    """Whether an exporter that knew no names numbered these."""
    return all(map(_NUMBERED.fullmatch, firsts))


def are_one(model: onnx.ModelProto, firsts: Mapping[str, str]) -> bool:
    """Whether the first dimensions, by input, are one: each must equal another, or is where an output begins."""
    marks = {dim: _MARKS_FROM + number for number, dim in enumerate(dict.fromkeys(firsts.values()))}
    light = skeleton(model)
    for value in light.graph.input:
        if value.name in firsts:
            value.type.tensor_type.shape.dim[0].dim_value = marks[firsts[value.name]]
    for value in light.graph.output:
        value.type.tensor_type.ClearField("shape")
    shapes, left = shapes_of(light), set(marks.values())
    for node in light.graph.node:
        for pair in claims.of(node, shapes):
            if len(set(pair)) == 2 and set(pair) <= set(marks.values()):
                left -= {size for size in pair if isinstance(size, int)}
    return left <= {shape[0] for value in model.graph.output if (shape := shapes.get(value.name))}
