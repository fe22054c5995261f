"""Weights in 4 bits, in blocks that share a scale, made with ONNX Runtime's own tool. Runs in the child only."""

import logging
from collections.abc import Mapping

import onnx

from farm.workshop import options
from farm.workshop.child import quantisation, traversal
from farm.workshop.problems import Problem, first_line

MATMUL = "MatMulNBits"


def quantise_to_four_bits(model: onnx.ModelProto, *, chosen: Mapping[str, str]) -> tuple[onnx.ModelProto, list[str]]:
    """Quantise the stored weights of every MatMul to 4 bits, and say in sentences what was done.

    Raises Problem with the code already_quantised, bad_option, nothing_quantised or quantising_failed.
    """
    read = options.parse_options(chosen, precision="int4", nodes=[node.name for node in model.graph.node])
    quantisation.check_not_quantised(model)
    try:
        after = _quantised(model, read)
    except Exception as error:  # the tool raises many kinds, undocumented
        raise Problem("quantising_failed", f"Quantising to 4 bits failed ({first_line(error)}).") from error
    taken = sum(node.op_type == MATMUL for node in traversal.iterate_nodes(after))
    if not taken:
        text = "The model has no MatMul by stored weights, all that int4 takes: measure it as fp32, or in int8."
        raise Problem("nothing_quantised", text)
    level = f", accuracy level {read.accuracy_level}" if read.accuracy_level != "0" else ""
    kind = "symmetric" if read.symmetric else "with zero points"
    how = f"int4, weights of {taken} MatMul in blocks of {read.block}, {kind}{level}{read.describe_exclusions()}"
    return quantisation.finish_quantised(model, after, how=how)


def _quantised(model: onnx.ModelProto, read: options.Options) -> onnx.ModelProto:
    # here, as it imports sympy: seconds that no other recipe should wait for
    from onnxruntime.quantization import matmul_nbits_quantizer

    logging.getLogger(matmul_nbits_quantizer.__name__).setLevel(logging.WARNING)
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    quantisation.store_constants(plain.graph)
    tool = matmul_nbits_quantizer.MatMulNBitsQuantizer(
        plain,
        block_size=int(read.block),
        is_symmetric=read.symmetric,
        accuracy_level=int(read.accuracy_level),
        nodes_to_exclude=list(read.exclude_nodes),
    )
    tool.process()
    after: onnx.ModelProto = tool.model.model
    _leave_out_repeated(after)
    return after


def _leave_out_repeated(model: onnx.ModelProto) -> None:
    """Remove repeated initialisers, as the tool stores weights that two MatMul share once for each."""
    for graph in traversal.iterate_graphs(model):
        kept = {tensor.name: tensor for tensor in graph.initializer}
        if len(kept) < len(graph.initializer):
            stored = list(kept.values())
            del graph.initializer[:]
            graph.initializer.extend(stored)
