"""Makes seeded inputs for a workload, or checks those that the user gave. Runs in the child only."""

import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import onnx
from onnx import numpy_helper

from farm.workshop import arrays, sizes
from farm.workshop.child import consumers, input_values, model_file, payloads, signature
from farm.workshop.problems import Problem, answer_problems, first_line, printable

_MAX_BYTES = 2 << 30
NO_FILLS: Mapping[str, str] = MappingProxyType({})

Facts = signature.Signature


@answer_problems
def make_inputs(payload: payloads.Workload) -> dict[str, object]:
    """Make seeded inputs for the payload's model, write them to `out`, and return their batch and sizes.

    `inputs` are fills by name (see `farm.rules.cells.fills`) in place of those chosen from the graph. Returns a problem
    with the code inputs_names, inputs_too_large, bad_input, fixed_batch, no_batch or unknown_dim.
    """
    model, facts = _read_model_and_facts(payload)
    _check_names(payload["inputs"], facts)
    chosen = sizes.resolve_sizes(facts, batch=payload["batch"], shapes=payload["shapes"])
    values = make_seeded_inputs(model, facts, chosen=chosen, seed=payload["seed"], fills=payload["inputs"])
    arrays.write_npz(Path(payload["out"]), values)
    return _describe_sizes(facts, chosen)


@answer_problems
def accept_inputs(payload: payloads.GivenInputs) -> dict[str, object]:
    """Check given inputs, write them to `out` in the model's order, and return their batch and sizes.

    Returns a problem with the code bad_arrays, inputs_names, inputs_dtype or inputs_shape where they do not fit.
    """
    _, facts = _read_model_and_facts(payload)
    given = arrays.read_npz(Path(payload["inputs"]))
    chosen = read_given_sizes(given, facts)
    ordered = {port["name"]: given[port["name"]] for port in facts["inputs"]}
    arrays.write_npz(Path(payload["out"]), ordered)
    return _describe_sizes(facts, chosen)


@answer_problems
def unpack_test_data(payload: payloads.TestData) -> dict[str, object]:
    """Write ONNX's own `.pb` files as one `.npz` by name, and return the names.

    The files are in the order of the model's inputs or outputs, as `side` says; there may be fewer of them. Returns a
    problem with the code bad_arrays or inputs_names.
    """
    _, facts = _read_model_and_facts(payload)
    ports, files = facts["inputs" if payload["side"] == "input" else "outputs"], payload["files"]
    if len(files) > len(ports):
        text = f"There are {len(files)} {payload['side']} files, but the model has {len(ports)}: remove the others."
        raise Problem("inputs_names", text)
    named = {port["name"]: read_tensor_file(Path(name)) for port, name in zip(ports, files, strict=False)}
    arrays.write_npz(Path(payload["out"]), named)
    return {"names": list(named)}


def make_seeded_inputs(
    model: onnx.ModelProto, facts: Facts, *, chosen: Mapping[str, int], seed: int, fills: Mapping[str, str] = NO_FILLS
) -> arrays.Arrays:
    """Make one array for every input, the same for the same seed.

    `chosen` holds the sizes of dynamic dimensions, and `fills` a fill for each input by name; missing fills are chosen
    from the graph. Raises Problem with the code inputs_too_large, bad_input, input_type for an input that cannot be
    fed, and unknown_dim for an input of open rank; KeyError if `chosen` lacks a dimension.
    """
    shapes = {}
    for port in facts["inputs"]:
        if port["shape"] is None:
            text = f"The input {printable(port['name'])!r} has no declared rank: upload inputs for it as an .npz file."
            raise Problem("unknown_dim", text)
        shapes[port["name"]] = sizes.fill_shape(port["shape"], chosen)
    total = sum(
        math.prod(shapes[port["name"]]) * max(1, signature.find_dtype(port).itemsize) for port in facts["inputs"]
    )
    if total > _MAX_BYTES:
        text = f"The inputs would take {total:,} bytes, the limit is {_MAX_BYTES:,}: choose a smaller batch or shapes."
        raise Problem("inputs_too_large", text)
    if any(port["name"] not in fills for port in facts["inputs"]):
        fills = {**input_values.choose_fills(model, facts, consumers.find_required_sizes(model, facts)), **fills}
    values = {}
    for at, port in enumerate(facts["inputs"]):
        name = port["name"]
        values[name] = input_values.make_array(fills[name], port, shape=shapes[name], sizes=chosen, seeds=(seed, at))
    return values


def read_given_sizes(given: arrays.Arrays, facts: Facts) -> dict[str, int]:
    """Read the sizes of dynamic dimensions off given inputs, by name. The shape of an input of open rank is not read.

    Raises Problem inputs_names, inputs_dtype or inputs_shape if they do not fit the model.
    """
    names = [port["name"] for port in facts["inputs"]]
    missing, foreign = [name for name in names if name not in given], [name for name in given if name not in names]
    if missing or foreign:
        lacks = (
            f"lack {printable(missing[0])!r}" if missing else f"hold {printable(foreign[0])!r}, which is not an input"
        )
        text = f"The given inputs {lacks}: the model takes {', '.join(printable(name) for name in names[:10])}."
        raise Problem("inputs_names", text)
    sizes_read: dict[str, int] = {}
    for port in facts["inputs"]:
        _check_array(given[port["name"]], port, sizes_read)
    return sizes_read


def _check_names(fills: Mapping[str, str], facts: Facts) -> None:
    names = [port["name"] for port in facts["inputs"]]
    foreign = next((name for name in fills if name not in names), None)
    if foreign is not None:
        text = f"The model has no input {printable(foreign)!r}: it takes {', '.join(printable(n) for n in names[:10])}."
        raise Problem("inputs_names", text)


def _read_model_and_facts(payload: payloads.Model) -> tuple[onnx.ModelProto, Facts]:
    model = model_file.read_model(Path(payload["folder"]), payload["main"])
    return model, signature.read_signature(model)


def _check_array(array: arrays.Array, port: signature.Port, sizes_read: dict[str, int]) -> None:
    """Check an array's type and shape, and add the sizes of dynamic dimensions that are new to `sizes_read`."""
    name = printable(port["name"])
    dtype = signature.find_dtype(port)
    if array.dtype != dtype and not (array.dtype.kind == dtype.kind == "U"):
        text = f"The given input {name!r} is {array.dtype}, the model takes {port['dtype']}: convert it."
        raise Problem("inputs_dtype", text)
    shape = port["shape"]
    if shape is None:
        return
    fits = len(shape) == array.ndim and all(
        size == (sizes_read.setdefault(dim, size) if isinstance(dim, str) else dim)
        for dim, size in zip(shape, array.shape, strict=True)
    )
    if not fits:
        text = f"The given input {name!r} has the shape {list(array.shape)}, the model takes {shape}: reshape it."
        raise Problem("inputs_shape", text)


def _describe_sizes(facts: Facts, chosen: Mapping[str, int]) -> dict[str, object]:
    batch = facts["batch"]
    return {"batch": chosen.get(batch) if isinstance(batch, str) else batch, "sizes": dict(chosen)}


def read_tensor_file(path: Path) -> arrays.Array:
    """Read the tensor of one of ONNX's own test data files. Raises Problem bad_arrays if it holds none."""
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(path.read_bytes())
        return numpy_helper.to_array(tensor)
    except Exception as error:
        text = f"{printable(path.name)} holds no tensor ({first_line(error)}): write it as onnx.TensorProto."
        raise Problem("bad_arrays", text) from error
