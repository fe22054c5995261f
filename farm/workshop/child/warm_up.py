"""Loads ONNX's tables in a fork server before its first fork, so that no child has to.

This code runs outside the sandbox, and so must never read a model of a user.
"""

from onnx import TensorProto, helper

from farm.workshop.child import conversion, findings, inspection, opset_range

__all__ = ["inspection", "load_onnx_tables", "opset_range"]
_OPSET = 17


def load_onnx_tables() -> None:
    """Make ONNX load its schemas and adapters, by running checker, inference and converter on a tiny model."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "warm", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
    findings.run_onnx_checks(model)
    for target in (_OPSET + 1, _OPSET - 1):
        conversion.convert_with_onnx(model, target)
