"""Reads a model's inputs and outputs, and finds which of their dimensions is the batch. Runs in the child only."""

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
# images are rarely smaller than this
_MIN_IMAGE_SIDE = 32
# words in the names of dimensions that are not a batch
_OTHER_NAMES = ("seq", "time", "len", "step", "frame", "token", "height", "width", "channel", "rows")
# placeholders that exporters write for dimensions without a name
_NAMELESS = {"?", "-1", "None", "none", "unk", "unknown"}
_RECURRENT = {"LSTM", "GRU", "RNN"}
# numpy's dtype for arrays of a type that numpy does not have
_STORED = {"string": np.dtype("U"), "bfloat16": np.dtype(np.uint16)}


class Port(TypedDict):
    """One input or output; see `inspection.Port`. A dimension is a size or a name; `shape` is None for an open rank."""

    name: str
    dtype: str
    shape: list[int | str] | None


class Signature(TypedDict):
    """Inputs, outputs, batch and names of dynamic dimensions; see `inspection.Inspection`."""

    inputs: list[Port]
    outputs: list[Port]
    batch: int | str | None
    dims: list[str]


Ports = list[Port]


def read_signature(model: onnx.ModelProto) -> Signature:
    """Read inputs, outputs, batch and dynamic dimensions.

    First dimensions without a name of their own may be called `batch` (see `name_shared_batch`); the model itself stays
    as it is. Raises Problem many_inputs, input_type or malformed.
    """
    inputs = list_inputs(model)
    name_shared_batch(model, inputs)
    return {
        "inputs": inputs,
        "outputs": list_outputs(model),
        "batch": find_batch(model, inputs),
        "dims": list(dict.fromkeys(dim for port in inputs for dim in port["shape"] or () if isinstance(dim, str))),
    }


def list_inputs(model: onnx.ModelProto) -> Ports:
    """List the inputs that a caller must feed, without optional ones and those with a stored value.

    Raises Problem many_inputs, or input_type for an input without a type.
    """
    stored = {tensor.name for tensor in model.graph.initializer}
    stored |= {sparse.values.name for sparse in model.graph.sparse_initializer}
    without_value = [value for value in model.graph.input if value.name not in stored]
    required = [value for value in without_value if value.type.WhichOneof("value") != "optional_type"]
    if len(required) > _MAX_PORTS:
        raise Problem("many_inputs", f"The model has {len(required):,} inputs; at most {_MAX_PORTS:,} can be fed.")
    untyped = next((value for value in required if value.type.WhichOneof("value") is None), None)
    if untyped is not None:
        text = f"The input {printable(untyped.name)} has no type: export the model again."
        raise Problem("input_type", text)
    return [make_port(value) for value in required]


def list_outputs(model: onnx.ModelProto) -> Ports:
    """List the first _MAX_PORTS outputs. Those that are not tensors have their kind as dtype, and no shape."""
    return [make_port(value) for value in model.graph.output[:_MAX_PORTS]]


def find_dtype(port: Port) -> np.dtype[Any]:
    """Find numpy's dtype for the input's array: text for strings, uint16 for the bits of bfloat16.

    Raises Problem input_type for what cannot be fed.
    """
    if not find_numpy_kind(port):
        raise Problem("input_type", explain_unfeedable([port]))
    return _STORED.get(port["dtype"]) or np.dtype(port["dtype"])


def find_numpy_kind(port: Port) -> str:
    """Find numpy's kind of the input: `f` (bfloat16 too), `i`, `u`, `b` or `U`; empty for what cannot be fed."""
    if port["dtype"] in _STORED:
        return "f" if port["dtype"] == "bfloat16" else "U"
    is_plain = re.fullmatch(r"float(16|32|64)|u?int(8|16|32|64)|bool", port["dtype"])
    return np.dtype(port["dtype"]).kind if is_plain else ""


def explain_unfeedable(ports: Ports) -> str:
    """Say in one sentence which input cannot be fed and why, for the first such input; empty if all can be.

    A tensor of open rank passes, whatever its type.
    """
    for port in ports:
        if port["dtype"] in ("sequence", "map", "sparse_tensor", "opaque"):
            return (
                f"The input {printable(port['name'])} is a {port['dtype']}: InferenceSession.run_with_iobinding, which "
                "models are measured by, takes tensors only. Cut the model so that it takes tensors."
            )
        if port["shape"] is not None and not find_numpy_kind(port):
            return (
                f"The input {printable(port['name'])} takes {port['dtype']}, of which numpy makes no array for "
                "OrtValue.ortvalue_from_numpy: cut the model so that it takes other numbers."
            )
    return ""


def make_port(value: onnx.ValueInfoProto) -> Port:
    """Read one input or output; other kinds than tensors have no shape. Raises Problem malformed for a broken name."""
    name: object = value.name
    # protobuf returns bytes if a name is not UTF-8
    if not isinstance(name, str):
        text = f"The name {printable(value.name)!r} of an input or output is not UTF-8 text: export the model again."
        raise Problem("malformed", text)
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return {"name": value.name, "dtype": str(kind or "unknown").removesuffix("_type"), "shape": None}
    tensor = value.type.tensor_type
    shape = [_read_dim(dim, f"{value.name}.{axis}") for axis, dim in enumerate(tensor.shape.dim)]
    return {
        "name": value.name,
        "dtype": name_dtype(tensor.elem_type),
        "shape": shape if tensor.HasField("shape") else None,
    }


def name_dtype(element: int) -> str:
    """Name an ONNX element type as numpy does, `string` for strings, and `typeN` where numpy has none."""
    if element == TensorProto.STRING:
        return "string"
    try:
        return str(helper.tensor_dtype_to_np_dtype(element))
    except (KeyError, ValueError):
        return f"type{element}"


def find_batch(model: onnx.ModelProto, inputs: Ports) -> int | str | None:
    """Find the batch: the first dimension that all inputs share, as a size or a name; None if there is none.

    There is none if an input has an open rank, a later dimension is named like a batch, or a recurrent layer reads an
    input time-major. If all first dimensions are named like counts of items, such as `num_images` and `num_texts`, the
    batch is the first of them. Otherwise there is none either if an input is a scalar, or if the first dimensions
    differ or look like those of sequences or images.
    """
    shapes = [port["shape"] for port in inputs if port["shape"] is not None]
    if len(shapes) < len(inputs):
        return None
    firsts = [shape[0] for shape in shapes if shape]
    later = {str(dim) for shape in shapes for dim in shape[1:]} - {"n", "b", "N", "B"}
    if not firsts or any(map(is_batch_name, later)) or _is_time_major(model, {port["name"] for port in inputs}):
        return None
    first = firsts[0]
    if isinstance(first, str) and all(counts_items(other, shapes) for other in {first, *firsts}):
        return first
    has_scalars = len(firsts) < len(shapes)
    if has_scalars or any(other != first for other in firsts):
        return None
    if isinstance(first, int):
        has_rows = first > 0 and any(len(shape) > 1 for shape in shapes)
        return first if has_rows and not any(map(_is_image, shapes)) else None
    return None if any(word in first.lower() for word in _OTHER_NAMES) else first


def name_shared_batch(model: onnx.ModelProto, inputs: Ports) -> None:
    """Rename the first dimension of every input to `batch`, in place, if none of them has a name that means something.

    The ports are changed, not the model. If an exporter numbered the dimensions, they are renamed only if the graph
    shows that they are the same one.
    """
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


def _read_dim(dim: onnx.TensorShapeProto.Dimension, fallback: str) -> int | str:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    name = dim.dim_param if dim.HasField("dim_param") else ""
    # exporters write placeholders like `?` for dimensions without a name, the same for unrelated ones
    return printable(name, limit=64) if name and name not in _NAMELESS else fallback


def is_batch_name(dim: str) -> bool:
    """Say whether a dimension is called like a batch; an expression of a batch and other sizes is not."""
    return dim.lower() in _BATCH_NAMES or ("batch" in dim.lower() and not re.search(r"[-+*/ ]", dim))


def counts_items(dim: int | str, shapes: Sequence[Sequence[int | str] | None]) -> bool:
    """Say whether a dimension's name counts items that are computed at once, like `batch` or `num_images`.

    A name of items must be the first of several dimensions: alone or later it is a length, like `num_samples` of audio.
    """
    if not isinstance(dim, str) or not _THINGS.fullmatch(dim):
        return isinstance(dim, str) and is_batch_name(dim)
    return all(dim not in shape or (shape[0] == dim and len(shape) > 1) for shape in shapes if shape)


def _is_image(shape: Sequence[int | str]) -> bool:
    """Say whether a fixed first dimension is an image's channels; a batch is rarely fixed with all others left open."""
    first, *others = shape
    return len(others) == 2 and (
        (first != 1 and all(isinstance(dim, str) for dim in others))
        or (first == 3 and all(isinstance(dim, str) or dim >= _MIN_IMAGE_SIDE for dim in others))
    )


def _is_time_major(model: onnx.ModelProto, inputs: set[str]) -> bool:
    return any(
        node.op_type in _RECURRENT
        and node.input
        and node.input[0] in inputs
        and traversal.read_attribute(node, "layout", 0) != 1
        for node in traversal.iterate_nodes(model, with_functions=False)
    )
