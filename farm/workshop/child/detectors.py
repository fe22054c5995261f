"""Recognises models that detect objects, which take larger images than classifiers. Child only."""

import itertools
import re
from collections.abc import Iterator, Mapping

import onnx

from farm.workshop.child import signature, traversal
from farm.workshop.child.shapes import Shapes, copy_without_weights, has_axis, list_shapes

_DETECTION_OPERATORS = {"NonMaxSuppression", "RoiAlign", "MaxRoiPool"}
_BOXES = re.compile(r"box|detection|(^|_)dets?(_|$)", re.IGNORECASE)


def is_detector(model: onnx.ModelProto, facts: signature.Signature, shapes: Shapes, sizes: Mapping[str, int]) -> bool:
    """Say whether the model detects objects: by an operator for detection, outputs of boxes, or maps of several scales.

    `shapes` were inferred with dynamic sizes left open; `sizes` are the sizes for which the scales are compared.
    """
    if any(node.op_type in _DETECTION_OPERATORS for node in traversal.iterate_nodes(model)):
        return True
    for port in facts["outputs"]:
        shape = port["shape"] or []
        has_boxes = len(shape) == 3 and shape[-1] == 4 and shape[1] != 1 and len(facts["outputs"]) > 1
        if has_boxes or _BOXES.search(port["name"]):
            return True
    return _joins_scales(model, facts, shapes, sizes)


def _joins_scales(model: onnx.ModelProto, facts: signature.Signature, shapes: Shapes, sizes: Mapping[str, int]) -> bool:
    """Say whether a Concat joins maps each of which is at most half as long as the next longer map."""
    joins = [parts for node in model.graph.node if len(parts := list(_list_open_parts(node, shapes))) > 1]
    sized = _list_sized_shapes(model, facts, sizes) if joins else {}
    for parts in joins:
        sizes_joined = [sized.get(name, shapes[name])[axis] for name, axis in parts]
        lengths = sorted((size for size in sizes_joined if isinstance(size, int)), reverse=True)
        if len(lengths) > 1 and all(longer >= 2 * shorter for longer, shorter in itertools.pairwise(lengths)):
            return True
    return False


def _list_open_parts(node: onnx.NodeProto, shapes: Shapes) -> Iterator[tuple[str, int]]:
    """Yield the inputs that a Concat joins along an axis of open size, with that axis."""
    axis = traversal.read_attribute(node, "axis", 0)
    for name in node.input if node.op_type == "Concat" else ():
        shape = shapes.get(name, [])
        if 2 <= len(shape) <= 3 and has_axis(shape, axis) and isinstance(shape[axis], str):
            yield name, axis


def _list_sized_shapes(model: onnx.ModelProto, facts: signature.Signature, sizes: Mapping[str, int]) -> Shapes:
    light = copy_without_weights(model)
    shapes = {port["name"]: port["shape"] or [] for port in facts["inputs"]}
    for value in light.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False):
            if size in sizes:
                dim.dim_value = sizes[str(size)]
    for value in light.graph.output:
        value.type.tensor_type.ClearField("shape")
    return list_shapes(light)
