"""Makes variants with 4-bit weights, in blocks that share a scale, by ONNX Runtime's tool. Runs in the child only."""

import logging
from collections.abc import Mapping

import onnx

from farm.workshop import options
from farm.workshop.child import quantisation, traversal
from farm.workshop.problems import Problem, first_line

MATMUL = "MatMulNBits"


def quantise_to_four_bits(model: onnx.ModelProto, *, chosen: Mapping[str, str]) -> tuple[onnx.ModelProto, list[str]]:
    """Quantise the stored weights of every MatMul that is not excluded to 4 bits, and say in sentences what was done.

    Raises Problem with the code already_quantised, bad_option, nothing_quantised or quantising_failed.
    """
    parsed = options.parse_options(chosen, precision="int4", nodes=[node.name for node in model.graph.node])
    quantisation.check_not_quantised(model)
    try:
        quantised = _quantise(model, parsed)
    except Exception as error:  # the tool raises many undocumented kinds of errors
        raise Problem("quantising_failed", f"Quantising to 4 bits failed ({first_line(error)}).") from error
    count = sum(node.op_type == MATMUL for node in traversal.iterate_nodes(quantised))
    if not count:
        text = "The model has no MatMul by stored weights, all that int4 takes: measure it as fp32, or in int8."
        raise Problem("nothing_quantised", text)
    level = f", accuracy level {parsed.accuracy_level}" if parsed.accuracy_level != "0" else ""
    kind = "symmetric" if parsed.symmetric else "with zero points"
    method = f"int4, weights of {count} MatMul in blocks of {parsed.block}, {kind}{level}{parsed.describe_exclusions()}"
    return quantisation.finish_quantised(model, quantised, description=method)


def _quantise(model: onnx.ModelProto, parsed: options.Options) -> onnx.ModelProto:
    # imported here: it imports sympy, which takes seconds that no other recipe should wait for
    from onnxruntime.quantization import matmul_nbits_quantizer

    logging.getLogger(matmul_nbits_quantizer.__name__).setLevel(logging.WARNING)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    quantisation.store_constants(copy.graph)
    tool = matmul_nbits_quantizer.MatMulNBitsQuantizer(
        copy,
        block_size=int(parsed.block),
        is_symmetric=parsed.symmetric,
        accuracy_level=int(parsed.accuracy_level),
        nodes_to_exclude=list(parsed.exclude_nodes),
    )
    tool.process()
    quantised: onnx.ModelProto = tool.model.model
    _remove_repeated_initialisers(quantised)
    return quantised


def _remove_repeated_initialisers(model: onnx.ModelProto) -> None:
    """Remove the second copies that the tool stores of weights shared by two MatMul nodes."""
    for graph in traversal.iterate_graphs(model):
        by_name = {tensor.name: tensor for tensor in graph.initializer}
        if len(by_name) < len(graph.initializer):
            initialisers = list(by_name.values())
            del graph.initializer[:]
            graph.initializer.extend(initialisers)
