"""Lists a model's graph, makes inner tensors outputs, and cuts out parts of it. Runs in the child only."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import onnx
from onnx import helper

from farm.workshop import arrays
from farm.workshop.child import model_file, payloads, reference, storage, traversal
from farm.workshop.problems import Problem, answer_problems

_MAX_NODES = 50_000


@answer_problems
def list_graph(payload: payloads.Model) -> dict[str, object]:
    """Return the nodes of the payload's model in order, its outputs, and the names of stored tensors.

    Returns the problem too_large if the graph has too many nodes.
    """
    model = model_file.read_model(Path(payload["folder"]), payload["main"])
    if len(model.graph.node) > _MAX_NODES:
        raise Problem("too_large", f"The graph has more than {_MAX_NODES:,} nodes, too many to look between them.")
    return {
        "nodes": [
            {"name": node.name, "op_type": node.op_type, "inputs": list(_reads(node)), "outputs": list(node.output)}
            for node in model.graph.node
        ],
        "outputs": [value.name for value in model.graph.output],
        "stored": [tensor.name for tensor in model.graph.initializer],
    }


@answer_problems
def expose_tensors(payload: payloads.Exposed) -> dict[str, object]:
    """Write the payload's model to `out` with only `tensors` as outputs, and their values on `inputs` to reference.npz.

    The values are written where `with_reference` is set. Returns a problem with the code no_tensor, not_loaded or
    inference_failed.
    """
    folder = Path(payload["folder"])
    model = model_file.read_model(folder, payload["main"], with_data=True)
    computed = {name for node in model.graph.node for name in node.output}
    missing = [name for name in payload["tensors"] if name not in computed]
    if missing:
        raise Problem("no_tensor", f"No node of the model makes the tensor {missing[0]!r}.")
    values = {value.name: value for value in (*model.graph.output, *model.graph.value_info)}
    outputs = [deepcopy(values.get(name, onnx.ValueInfoProto(name=name))) for name in payload["tensors"]]
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    _write(model, payload)
    return {}


@answer_problems
def cut_nodes(payload: payloads.Cut) -> dict[str, object]:
    """Write the nodes at `places` of the payload's model to `out` as a separate model.

    Its inputs are the arrays of `inputs` (an `.npz`) with exactly their shapes; its outputs are `tensors`, whose values
    are written to reference.npz if `with_reference` is set. Returns a problem with the code bad_arrays, not_loaded or
    inference_failed.
    """
    model = model_file.read_model(Path(payload["folder"]), payload["main"], with_data=True)
    nodes = [model.graph.node[place] for place in payload["places"]]
    values = arrays.read_npz(Path(payload["inputs"]))
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in values.items()
    ]
    names = {name for node in nodes for name in _reads(node)}
    stored = [tensor for tensor in model.graph.initializer if tensor.name in names]
    outputs = [onnx.ValueInfoProto(name=name) for name in payload["tensors"]]
    part = helper.make_graph(nodes, "part", inputs, outputs, stored)
    cut = helper.make_model(part, opset_imports=model.opset_import, functions=model.functions)
    cut.ir_version = model.ir_version
    _write(cut, payload)
    return {}


def _write(model: onnx.ModelProto, payload: payloads.Exposed) -> None:
    out = Path(payload["out"])
    storage.write_model(model, out, payload["main"])
    if payload["with_reference"]:
        values, _ = reference.run_reference(out / payload["main"], arrays.read_npz(Path(payload["inputs"])))
        arrays.write_npz(out / "reference.npz", values)


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the tensors that a node reads, including those that graphs inside it take from outside."""
    yield from (name for name in node.input if name)
    for inner in traversal.iterate_inner_graphs(node):
        declared = {value.name for value in inner.input} | {tensor.name for tensor in inner.initializer}
        computed = {name for below in inner.node for name in below.output}
        names = [name for below in inner.node for name in _reads(below)] + [value.name for value in inner.output]
        yield from (name for name in names if name not in declared and name not in computed)
