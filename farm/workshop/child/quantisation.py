"""Integer variants of a model, made with ONNX Runtime's own tools. Runs in the child only."""

from collections.abc import Mapping
from pathlib import Path

import onnx
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic

from farm.rules.runtimes.opsets import ONNX_DOMAINS, ir_of_opset
from farm.workshop import options
from farm.workshop.child import quantised, reference, storage, version_stamps
from farm.workshop.problems import Problem, first_line, printable

_TYPES = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}


def quantise_dynamically(
    model: onnx.ModelProto, *, work: Path, chosen: Mapping[str, str]
) -> tuple[onnx.ModelProto, list[str]]:
    """Quantise weights to 8-bit integers, with activations quantised at run time, and say what was done.

    `work` is a folder for scratch files. Raises Problem with the code already_quantised, bad_option, nothing_quantised
    or quantising_failed.
    """
    read = options.parse_options(chosen, precision="int8-dynamic", nodes=[node.name for node in model.graph.node])
    check_not_quantised(model)
    made = work / "quantised.onnx"
    # shapes that an exporter wrote down contradict the weights that the tool turns around; it infers them anew
    plain = copy_without_shapes(model)
    store_constants(plain.graph)
    storage.write_model(plain, work, "plain.onnx")
    left = list_misread_attention(model)
    try:
        quantize_dynamic(
            work / "plain.onnx",
            made,
            op_types_to_quantize=read.op_types or None,
            per_channel=read.per_channel,
            reduce_range=read.reduce_range,
            weight_type=_TYPES[read.weight],
            nodes_to_exclude=[*read.exclude_nodes, *left],
            use_external_data_format=storage.is_too_large_for_protobuf(model),
        )
    except Exception as error:  # ValueError, RuntimeError, AssertionError and others, undocumented
        raise Problem("quantising_failed", f"Dynamic quantisation failed ({first_line(error)}).") from error
    how = f"int8-dynamic, weights {read.weight}{read.describe()}"
    after, history = finish_quantised(model, onnx.load(made), how=how)
    return after, [*history, *describe_left_nodes(left)]


def copy_without_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy the model without the shapes of tensors between inputs and outputs."""
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    del plain.graph.value_info[:]
    return plain


def store_constants(graph: onnx.GraphProto) -> None:
    """Turn Constant nodes of the graph into initialisers, in place: the tool quantises no other weights."""
    kept = []
    for node in graph.node:
        value = next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)
        if node.op_type != "Constant" or node.domain not in ONNX_DOMAINS or value is None or not node.output:
            kept.append(node)
            continue
        stored = graph.initializer.add()
        stored.CopyFrom(value)
        stored.name = node.output[0]
    del graph.node[:]
    graph.node.extend(kept)


def describe_left_nodes(names: list[str]) -> list[str]:
    return [f"Left {printable(name)} as it is: the tool takes it for another operator." for name in names]


def list_misread_attention(model: onnx.ModelProto) -> list[str]:
    """List nodes of ONNX's own Attention, which the tool takes for ONNX Runtime's older operator of that name."""
    return [node.name for node in model.graph.node if node.op_type == "Attention" and node.domain in ONNX_DOMAINS]


def check_not_quantised(model: onnx.ModelProto) -> None:
    """Raises Problem already_quantised: the tools would quantise a second time without a word."""
    if quantised.is_quantised(model):
        why = "and a second time would spoil it: take precision fp32 to measure it as is."
        raise Problem("already_quantised", f"The model is already quantised, {why}")


def finish_quantised(before: onnx.ModelProto, after: onnx.ModelProto, *, how: str) -> tuple[onnx.ModelProto, list[str]]:
    """Remove unused operator sets, set the IR version, and say in sentences what the quantisation `how` did.

    Raises Problem nothing_quantised where it did nothing, quantising_failed where the result no longer loads.
    """
    if not quantised.is_quantised(after):
        raise Problem(
            "nothing_quantised", f"The model has no operator that {how.split(',')[0]} quantises: measure it as fp32."
        )
    version_stamps.remove_unused_opsets(after)
    history = [f"Quantised with onnxruntime {onnxruntime.__version__}: {how}."]
    was = version_stamps.read_opset(before)
    # None: what is left is of ONNX Runtime's own operators alone
    now = version_stamps.read_opset(after) or was
    if was != now:
        history.append(f"The tool raised the opset from {was} to {now}.")
    # its operators load wherever the original's did: so must the stamp
    after.ir_version = max(before.ir_version, ir_of_opset(now or 0)) if was != now else before.ir_version
    check_still_loads(before, after, doing="quantising")
    return after, history


def check_still_loads(before: onnx.ModelProto, after: onnx.ModelProto, *, doing: str) -> None:
    """Raises Problem quantising_failed where `after` does not load here although `before` does.

    Large models are not tried. `doing` names the tool.
    """
    if storage.is_too_large_for_protobuf(before):
        return
    try:
        reference.load_session(before.SerializeToString())
    except Problem:
        return  # nothing can be said against the variant
    try:
        reference.load_session(after.SerializeToString())
    except Problem as problem:
        text = f"The {doing} tool of onnxruntime {onnxruntime.__version__} damaged the model: {problem.text}"
        raise Problem("quantising_failed", text) from problem
