"""Makes dynamic 8-bit variants, and checks the results of all quantising tools. Runs in the child only."""

from collections.abc import Mapping, Sequence
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
    parsed = options.parse_options(chosen, precision="int8-dynamic", nodes=[node.name for node in model.graph.node])
    check_not_quantised(model)
    target = work / "quantised.onnx"
    # the tool transposes weights, which would contradict stored shapes, and then infers all shapes again
    copy = copy_without_shapes(model)
    store_constants(copy.graph)
    storage.write_model(copy, work, "plain.onnx")
    misread = list_misread_attention(model)
    try:
        quantize_dynamic(
            work / "plain.onnx",
            target,
            op_types_to_quantize=parsed.op_types or None,
            per_channel=parsed.per_channel,
            reduce_range=parsed.reduce_range,
            weight_type=_TYPES[parsed.weight],
            nodes_to_exclude=[*parsed.exclude_nodes, *misread],
            use_external_data_format=storage.is_too_large_for_protobuf(model),
        )
    except Exception as error:  # ValueError, RuntimeError, AssertionError and others, undocumented
        raise Problem("quantising_failed", f"Dynamic quantisation failed ({first_line(error)}).") from error
    description = f"int8-dynamic, weights {parsed.weight}{parsed.describe()}"
    return finish_quantised(model, onnx.load(target), description=description, left_out=misread)


def copy_without_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy the model without the shapes of tensors between inputs and outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    return copy


def store_constants(graph: onnx.GraphProto) -> None:
    """Turn Constant nodes that hold a tensor into initialisers, in place: the tool quantises no other weights.

    Graphs inside nodes stay as they are.
    """
    other_nodes = []
    for node in graph.node:
        value = next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)
        if node.op_type != "Constant" or node.domain not in ONNX_DOMAINS or value is None or not node.output:
            other_nodes.append(node)
            continue
        stored = graph.initializer.add()
        stored.CopyFrom(value)
        stored.name = node.output[0]
    del graph.node[:]
    graph.node.extend(other_nodes)


def list_misread_attention(model: onnx.ModelProto) -> list[str]:
    """List the names of ONNX's own Attention nodes, which the tool mistakes for ONNX Runtime's older operator.

    Only the main graph is searched.
    """
    return [node.name for node in model.graph.node if node.op_type == "Attention" and node.domain in ONNX_DOMAINS]


def check_not_quantised(model: onnx.ModelProto) -> None:
    """Refuse a quantised model, since the tools would silently quantise it again. Raises Problem already_quantised."""
    if quantised.is_quantised(model):
        text = (
            "The model is already quantised, and a second time would spoil it: take precision fp32 to measure it as is."
        )
        raise Problem("already_quantised", text)


def finish_quantised(
    before: onnx.ModelProto, after: onnx.ModelProto, *, description: str, left_out: Sequence[str] = ()
) -> tuple[onnx.ModelProto, list[str]]:
    """Remove unused operator sets from `after`, set its IR version, and say in sentences what was done.

    `description` begins with the precision, and `left_out` are nodes that the tool would have misread. Raises Problem
    nothing_quantised if nothing was quantised, and quantising_failed if the result no longer loads. The model
    `after` is changed in place and returned.
    """
    if not quantised.is_quantised(after):
        precision = description.split(",")[0]
        text = f"The model has no operator that {precision} quantises: measure it as fp32."
        raise Problem("nothing_quantised", text)
    version_stamps.remove_unused_opsets(after)
    history = [f"Quantised with onnxruntime {onnxruntime.__version__}: {description}."]
    old_opset = version_stamps.read_default_opset(before)
    # None if only operators of ONNX Runtime's own domain are left
    new_opset = version_stamps.read_default_opset(after) or old_opset
    if old_opset != new_opset:
        history.append(f"The tool raised the opset from {old_opset} to {new_opset}.")
    # with the same operator set the variant has to load wherever the original does
    needed_ir = ir_of_opset(new_opset or 0) if old_opset != new_opset else 0
    after.ir_version = max(before.ir_version, needed_ir)
    check_still_loads(before, after, tool="quantising")
    history += [f"Left {printable(name)} as it is: the tool takes it for another operator." for name in left_out]
    return after, history


def check_still_loads(before: onnx.ModelProto, after: onnx.ModelProto, *, tool: str) -> None:
    """Check that `after` loads here if `before` does. Raises Problem quantising_failed, whose text names the tool.

    Models that are too large for a protobuf message are not tried.
    """
    if storage.is_too_large_for_protobuf(before):
        return
    try:
        reference.load_session(before.SerializeToString())
    except Problem:
        return  # the original does not load here either
    try:
        reference.load_session(after.SerializeToString())
    except Problem as problem:
        text = f"The {tool} tool of onnxruntime {onnxruntime.__version__} damaged the model: {problem.text}"
        raise Problem("quantising_failed", text) from problem
