"""Makes float16 variants of a model. Runs in the child only."""

from collections.abc import Mapping

import onnx
from onnx import TensorProto
from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16

from farm.workshop import options
from farm.workshop.child import quantisation, traversal
from farm.workshop.problems import Problem, first_line


def convert_to_half(model: onnx.ModelProto, *, chosen: Mapping[str, str]) -> tuple[onnx.ModelProto, list[str]]:
    """Convert weights and activations to float16, and say in a sentence what was done.

    Inputs and outputs stay float32 unless the option `keep-io` is false. Raises Problem with the code
    already_quantised, nothing_halved, halving_failed or bad_option.
    """
    parsed = options.parse_options(chosen, precision="fp16", nodes=[node.name for node in model.graph.node])
    quantisation.check_not_quantised(model)
    if not any(tensor.data_type == TensorProto.FLOAT for tensor in traversal.iterate_tensors(model)):
        raise Problem("nothing_halved", "The model holds no float32 weights, so fp16 would change nothing.")
    converted = onnx.ModelProto()
    converted.CopyFrom(model)
    del converted.graph.value_info[:]
    try:
        converted = convert_float_to_float16(
            converted,
            keep_io_types=parsed.keep_io,
            op_block_list=[*DEFAULT_OP_BLOCK_LIST, *parsed.block_ops],
            node_block_list=list(parsed.exclude_nodes) or None,
        )
    except Exception as error:  # ValueError, RuntimeError, AttributeError and others, undocumented
        raise Problem("halving_failed", f"Conversion to float16 failed ({first_line(error)}).") from error
    converted.ir_version = model.ir_version
    quantisation.check_still_loads(model, converted, tool="float16")
    casts = sum(node.op_type == "Cast" for node in converted.graph.node)
    ports = "inputs and outputs stay float32" if parsed.keep_io else "inputs and outputs are float16 too"
    blocked = f", {', '.join(parsed.block_ops)} stay float32" if parsed.block_ops else ""
    sentence = f"Converted to float16: {ports}{blocked}{parsed.describe()}; {casts} Cast nodes stand in the graph."
    return converted, [sentence]
