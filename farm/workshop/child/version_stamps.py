"""Reads and corrects a model's version numbers: its operator sets and its IR version.

The default operator set is ONNX's own. `read_default_opset` returns the newest of several imports, and None for a model
that imports none.
"""

import onnx

from farm.rules.runtimes import opsets
from farm.workshop.child import traversal


def read_default_opset(model: onnx.ModelProto) -> int | None:
    versions = [entry.version for entry in model.opset_import if entry.domain in opsets.ONNX_DOMAINS]
    return max(versions, default=None)


def remove_unused_opsets(model: onnx.ModelProto) -> list[str]:
    """Remove operator sets that no node uses, in place, and return a sentence for each removed one.

    If none is used, as in a model without nodes, all of them stay.
    """
    used = {node.domain for node in traversal.iterate_nodes(model)} | {function.domain for function in model.functions}
    if used & set(opsets.ONNX_DOMAINS):
        used |= set(opsets.ONNX_DOMAINS)
    unused = [entry for entry in model.opset_import if entry.domain not in used]
    if len(unused) == len(model.opset_import):
        return []  # a model without nodes still needs one
    for entry in unused:
        model.opset_import.remove(entry)
    return [f"Left out the operator set {e.domain or 'ai.onnx'} {e.version}, which no node uses." for e in unused]


def lower_ir_version(model: onnx.ModelProto) -> list[str]:
    """Lower an IR version that is higher than needed, in place; return one sentence on it, or none if it stays."""
    needed = max(opsets.ir_of_opset(read_default_opset(model) or 0), _find_needed_ir(model))
    if model.ir_version <= needed:
        return []
    old, model.ir_version = model.ir_version, needed
    return [f"Lowered the IR version from {old} to {needed}, which is all that its operators need."]


def _find_needed_ir(model: onnx.ModelProto) -> int:
    """Find the lowest IR version that has the model's functions and element types."""
    kinds = {tensor.data_type for tensor in traversal.iterate_tensors(model)}
    types = onnx.TensorProto
    if types.FLOAT4E2M1 in kinds:
        return 11
    if kinds & {types.UINT4, types.INT4}:
        return 10
    if kinds & {types.FLOAT8E4M3FN, types.FLOAT8E4M3FNUZ, types.FLOAT8E5M2, types.FLOAT8E5M2FNUZ}:
        return 9
    return 8 if model.functions else 3
