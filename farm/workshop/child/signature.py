"""A model's inputs and outputs, and which of their dimensions is the batch. Runs in the child only."""

import re
from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
import onnx
from onnx import TensorProto, helper

from farm.workshop.child import batches, traversal
from farm.workshop.problems import Problem, printable

_MAX_PORTS = 1024
_BATCH_NAMES = {"batch", "batch_size", "batchsize", "n", "b", "bs", "nbatch", "num_batch"}
_THINGS = re.compile(
    r"(num|n|nb|number_of)?_?(images|pictures|texts|captions|samples|examples|sentences|documents|prompts)", re.I
)
# shorter sides are hardly a picture's
_MIN_PICTURE = 32
_OTHER_NAMES = ("seq", "time", "len", "step", "frame", "token", "height", "width", "channel", "rows")
_NAMELESS = {"?", "-1", "None", "none", "unk", "unknown"}
_RECURRENT = {"LSTM", "GRU", "RNN"}
# how arrays of a type are kept that numpy has no plain type for
_STORED = {"string": np.dtype("U"), "bfloat16": np.dtype(np.uint16)}


class Port(TypedDict):
    """One input or output; see `inspection.Port`. A dimension is a size or a name; without a shape the rank is open."""

    name: str
    dtype: str
    shape: list[int | str] | None


class Signature(TypedDict):
    """Inputs, outputs, batch and names of dynamic dimensions, as an inspection has them."""

    inputs: list[Port]
    outputs: list[Port]
    batch: int | str | None
    dims: list[str]


Ports = list[Port]


def read_signature(model: onnx.ModelProto) -> Signature:
    """inputs, outputs, batch and names of dynamic dimensions, as an inspection has them."""
    inputs = inputs_of(model)
    name_shared_batch(model, inputs)
    return {
        "inputs": inputs,
        "outputs": outputs_of(model),
        "batch": find_batch(model, inputs),
        "dims": list(dict.fromkeys(dim for port in inputs for dim in port["shape"] or () if isinstance(dim, str))),
    }


def inputs_of(model: onnx.ModelProto) -> Ports:
    """Inputs that a caller must feed, as {name, dtype, shape}: not what may be left away. Raises Problem: many_inputs,
    input_type for an input that has none."""
    stored = {tensor.name for tensor in model.graph.initializer}
    stored |= {sparse.values.name for sparse in model.graph.sparse_initializer}
    given = [value for value in model.graph.input if value.name not in stored]
    fed = [value for value in given if value.type.WhichOneof("value") != "optional_type"]
    if len(fed) > _MAX_PORTS:
        raise Problem("many_inputs", f"The model has {len(fed):,} inputs; at most {_MAX_PORTS:,} can be fed.")
    untyped = next((value for value in fed if value.type.WhichOneof("value") is None), None)
    if untyped is not None:
        text = f"The input {printable(untyped.name)} has no type: export the model again."
        raise Problem("input_type", text)
    return [make_port(value) for value in fed]


def outputs_of(model: onnx.ModelProto) -> Ports:
    """Outputs as {name, dtype, shape}; kinds that are no tensor have their kind as dtype and no shape."""
    return [make_port(value) for value in model.graph.output[:_MAX_PORTS]]


def is_optional(value: onnx.ValueInfoProto) -> bool:
    return bool(value.type.WhichOneof("value") == "optional_type")


def stored_dtype(port: Port) -> np.dtype[Any]:
    """How numpy keeps the input's array: text for strings, the bits of bfloat16. Raises Problem: input_type."""
    if not numpy_kind(port):
        raise Problem("input_type", explain_unfeedable([port]))
    return _STORED.get(port["dtype"]) or np.dtype(port["dtype"])


def numpy_kind(port: Port) -> str:
    """`f` for numbers with a fraction, `i`, `u`, `b` and `U` as numpy has them; empty for what cannot be fed."""
    if port["dtype"] in _STORED:
        return "f" if port["dtype"] == "bfloat16" else "U"
    is_plain = re.fullmatch(r"float(16|32|64)|u?int(8|16|32|64)|bool", port["dtype"])
    return np.dtype(port["dtype"]).kind if is_plain else ""


def explain_unfeedable(ports: Ports) -> str:
    """Why such inputs cannot be fed, in one sentence that names the call which misses; empty where they can."""
    for port in ports:
        if port["dtype"] in ("sequence", "map", "sparse_tensor", "opaque"):
            return (
                f"The input {printable(port['name'])} is a {port['dtype']}: InferenceSession.run_with_iobinding, which "
                "models are measured by, takes tensors only. Cut the model so that it takes tensors."
            )
        if port["shape"] is not None and not numpy_kind(port):
            return (
                f"The input {printable(port['name'])} takes {port['dtype']}, of which numpy makes no array for "
                "OrtValue.ortvalue_from_numpy: cut the model so that it takes other numbers."
            )
    return ""


def make_port(value: onnx.ValueInfoProto) -> Port:
    """One input or output; see `inspection.Port`. Raises Problem: malformed."""
    name: object = value.name
    # protobuf hands out bytes where a name is no UTF-8
    if not isinstance(name, str):
        text = f"The name {printable(value.name)!r} of an input or output is not UTF-8 text: export the model again."
        raise Problem("malformed", text)
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return {"name": value.name, "dtype": str(kind or "unknown").removesuffix("_type"), "shape": None}
    tensor = value.type.tensor_type
    shape = [_dim(dim, f"{value.name}.{axis}") for axis, dim in enumerate(tensor.shape.dim)]
    return {
        "name": value.name,
        "dtype": dtype_name(tensor.elem_type),
        "shape": shape if tensor.HasField("shape") else None,
    }


def dtype_name(element: int) -> str:
    """numpy's name of an element type, or ONNX's own in small letters."""
    if element == TensorProto.STRING:
        return "string"
    try:
        return str(helper.tensor_dtype_to_np_dtype(element))
    except (KeyError, ValueError):
        return f"type{element}"


def find_batch(model: onnx.ModelProto, inputs: Ports) -> int | str | None:
    """The batch: the first dimension that all inputs share, unless something says that it is none. Of several that all
    count what is done at once, like `num_images` and `num_texts`, the first, which the others then follow.

    Scalar inputs, names of sequences, a batch named at another place and time-major recurrent layers say so.
    """
    shapes = [port["shape"] for port in inputs if port["shape"] is not None]
    if len(shapes) < len(inputs):
        return None
    firsts = [shape[0] for shape in shapes if shape]
    if not firsts or _is_named_elsewhere(shapes) or _is_time_major(model, {port["name"] for port in inputs}):
        return None
    first = firsts[0]
    if isinstance(first, str) and all(is_count(other, shapes) for other in {first, *firsts}):
        return first
    has_scalars = len(firsts) < len(shapes)
    if has_scalars or any(other != first for other in firsts):
        return None
    if isinstance(first, int):
        has_rows = first > 0 and any(len(shape) > 1 for shape in shapes)
        return first if has_rows and not any(map(_is_colours, shapes)) else None
    return None if any(word in first.lower() for word in _OTHER_NAMES) else first


def name_shared_batch(model: onnx.ModelProto, inputs: Ports) -> None:
    """Gives first dimensions one name, `batch`, where every input starts with one that has none. Where an exporter
    numbered them, the graph has to show that they are one."""
    firsts = {port["name"]: str(port["shape"][0]) for port in inputs if port["shape"]}
    later = {dim for port in inputs for dim in (port["shape"] or ())[1:]}
    if len(firsts) < len(inputs) or "batch" in later | {*firsts.values()}:
        return
    are_unnamed = all(first == f"{name}.0" for name, first in firsts.items())
    are_several = len(set(firsts.values())) > 1 and not later & {*firsts.values()}
    if are_unnamed or (
        are_several and batches.are_numbered_names([*firsts.values()]) and batches.are_same_dimension(model, firsts)
    ):
        for shape in [port["shape"] for port in inputs if port["shape"]]:
            shape[0] = "batch"


def _dim(dim: onnx.TensorShapeProto.Dimension, fallback: str) -> int | str:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    name = dim.dim_param if dim.HasField("dim_param") else ""
    # exporters that know no name write one that is none, the same for dimensions that have nothing in common
    return printable(name, limit=64) if name and name not in _NAMELESS else fallback


def is_batch_name(dim: str) -> bool:
    """Whether a dimension's name says that it counts what is done at once; a product of it with others does not."""
    return dim.lower() in _BATCH_NAMES or ("batch" in dim.lower() and not re.search(r"[-+*/ ]", dim))


def is_count(dim: int | str, shapes: Sequence[Sequence[int | str] | None]) -> bool:
    """Whether a dimension counts what is done at once: by a batch's name, or by that of things, which inputs of more
    dimensions begin with. What is alone, or stands behind another, is a length: `num_samples` of sound."""
    if not isinstance(dim, str) or not _THINGS.fullmatch(dim):
        return isinstance(dim, str) and is_batch_name(dim)
    return all(dim not in shape or (shape[0] == dim and len(shape) > 1) for shape in shapes if shape)


def _is_colours(shape: Sequence[int | str]) -> bool:
    """Whether a fixed first dimension is a picture's colours: nobody fixes a batch and leaves all behind it open."""
    first, *behind = shape
    return len(behind) == 2 and (
        (first != 1 and all(isinstance(dim, str) for dim in behind))
        or (first == 3 and all(isinstance(dim, str) or dim >= _MIN_PICTURE for dim in behind))
    )


def _is_named_elsewhere(shapes: Sequence[Sequence[int | str]]) -> bool:
    later = {str(dim) for shape in shapes for dim in shape[1:]}
    return any(is_batch_name(dim) and dim.lower() not in ("n", "b") for dim in later)


def _is_time_major(model: onnx.ModelProto, inputs: set[str]) -> bool:
    return any(
        node.op_type in _RECURRENT
        and node.input
        and node.input[0] in inputs
        and not any(attribute.name == "layout" and attribute.i == 1 for attribute in node.attribute)
        for node in traversal.iterate_nodes(model, with_functions=False)
    )
