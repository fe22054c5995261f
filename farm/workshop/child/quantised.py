"""Finds what is quantised in a model. Runs in the child only."""

import onnx
from onnx import TensorProto

from farm.workshop.child import traversal

_KINDS = {
    *("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "QGemm"),
    *("MatMulIntegerToFloat", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "QAttention"),
    *("MatMulNBits", "MatMulFpQ4", "MatMulBnb4", "QMoE"),
    *("QEmbedLayerNormalization", "QOrderedMatMul", "QOrderedAttention"),
}


def is_quantised(model: onnx.ModelProto) -> bool:
    return any(node.op_type in _KINDS or node.op_type.startswith("QLinear") for node in traversal.iterate_nodes(model))


def list_signed_activations(model: onnx.ModelProto) -> list[str]:
    """List activations that are quantised as int8, as the zero points of their QuantizeLinear nodes say."""
    kinds = {tensor.name: tensor.data_type for graph in traversal.iterate_graphs(model) for tensor in graph.initializer}
    return [
        node.input[0]
        for node in traversal.iterate_nodes(model)
        if node.op_type == "QuantizeLinear"
        and len(node.input) > 2
        and node.input[0] not in kinds
        and kinds.get(node.input[2]) == TensorProto.INT8
    ]
