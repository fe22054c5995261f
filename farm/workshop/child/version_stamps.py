"""Reads and corrects a model's version numbers: its operator sets and its IR version."""

import onnx

from farm.rules.runtimes import opsets
from farm.workshop.child import traversal


def read_opset(model: onnx.ModelProto) -> int | None:
    versions = [entry.version for entry in model.opset_import if entry.domain in opsets.ONNX_DOMAINS]
    return max(versions, default=None)


def remove_unused_opsets(model: onnx.ModelProto) -> list[str]:
    """Remove operator sets that no node uses, in place, and say in sentences what was done."""
    used = {node.domain for node in traversal.iterate_nodes(model)} | {function.domain for function in model.functions}
    if used & set(opsets.ONNX_DOMAINS):
        used |= set(opsets.ONNX_DOMAINS)
    spare = [entry for entry in model.opset_import if entry.domain not in used]
    if len(spare) == len(model.opset_import):
        return []  # a model without nodes still needs one
    for entry in spare:
        model.opset_import.remove(entry)
    return [f"Left out the operator set {e.domain or 'ai.onnx'} {e.version}, which no node uses." for e in spare]


def lower_ir_version(model: onnx.ModelProto) -> list[str]:
    """Lower an IR version that is higher than needed, in place, and say in sentences what was done."""
    wanted = max(opsets.ir_of_opset(read_opset(model) or 0), _needed_ir(model))
    if model.ir_version <= wanted:
        return []
    was, model.ir_version = model.ir_version, wanted
    return [f"Lowered the IR version from {was} to {wanted}, which is all that its operators need."]


def _needed_ir(model: onnx.ModelProto) -> int:
    """Find the IR version that functions and element types need, whatever the operator set."""
    kinds = {tensor.data_type for tensor in traversal.iterate_tensors(model)}
    tensor = onnx.TensorProto
    needed = [(8, bool(model.functions))]
    needed += [
        (9, bool(kinds & {tensor.FLOAT8E4M3FN, tensor.FLOAT8E4M3FNUZ, tensor.FLOAT8E5M2, tensor.FLOAT8E5M2FNUZ}))
    ]
    needed += [(10, bool(kinds & {tensor.UINT4, tensor.INT4})), (11, tensor.FLOAT4E2M1 in kinds)]
    return max((ir for ir, is_used in needed if is_used), default=3)
