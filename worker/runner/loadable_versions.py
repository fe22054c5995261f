"""Finds the newest operator set, IR version and `ai.onnx.ml` that a runtime loads, by trying models of one node.

This file runs alone in the runtime's environment, without the farm's modules and without `onnx`. So it writes the
models as protobuf bytes. A runtime that loads even the last version tried checks nothing, so its answer is 0.
"""

import json
import os
from collections.abc import Callable

import onnxruntime

# every release that is measured here loads these
OPSET, IR = 13, 7
OPSETS, IRS, ML_OPSETS = range(7, 80), range(3, 60), range(1, 30)


def make_model(op_type: bytes, domain: bytes, *, opset: int, ir: int) -> bytes:
    """Write the model `y = op_type(x)` of one float as the bytes of a ModelProto."""
    shape = _message(2, _message(1, _number(1, 1)))
    value = _message(2, _message(1, _number(1, 1) + shape))
    node = _message(1, b"x") + _message(2, b"y") + _message(4, op_type) + _message(7, domain)
    ends = _message(11, _message(1, b"x") + value) + _message(12, _message(1, b"y") + value)
    graph = _message(1, node) + _message(2, b"ladder") + ends
    return _number(1, ir) + _message(7, graph) + _message(8, _message(1, domain) + _number(2, opset))


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _varint(value >> 7)


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3]) + _varint(value)


def _message(field: int, body: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(body)) + body


def _loads(model: bytes) -> bool:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception:  # the binding raises classes of its own, one for each status
        return False
    return True


def _highest(steps: range, make: Callable[[int], bytes]) -> int:
    highest = max((step for step in steps if _loads(make(step))), default=0)
    return 0 if highest == steps[-1] else highest


if __name__ == "__main__":
    loads = {
        "opset": _highest(OPSETS, lambda opset: make_model(b"Relu", b"", opset=opset, ir=IR)),
        "ir": _highest(IRS, lambda ir: make_model(b"Relu", b"", opset=OPSET, ir=ir)),
        "ml": _highest(ML_OPSETS, lambda opset: make_model(b"Binarizer", b"ai.onnx.ml", opset=opset, ir=IR)),
    }
    os.write(int(os.environ["ONNXFARM_REPLY_FD"]), json.dumps(loads).encode())
