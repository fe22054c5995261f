"""Makes qdq_bias: a QDQ convolution with a float bias, which releases of ONNX Runtime from 1.21 on quantise.

    python tests/models/make_qdq_bias.py

Up to 1.20 the convolution adds the bias in float; from 1.21 on it is rounded to the accumulator's step first, so some
outputs land one quantum away. Kept apart from manifest.json: its outputs are not expected to agree everywhere.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path(__file__).parent
CHANNELS, FILTERS, SIZE = 4, 8, 8


def main() -> None:
    """Writes the model and one batch of inputs beside this file."""
    random = np.random.RandomState(20_253)
    stored = {
        "x_scale": np.float32(0.03), "x_zero": np.uint8(128), "w_scale": np.float32(0.05), "w_zero": np.int8(0),
        "w_q": random.randint(-8, 9, size=(FILTERS, CHANNELS, 3, 3)).astype(np.int8),
        "bias": (random.randint(-4096, 4097, size=FILTERS) / 4096).astype(np.float32),
        "y_scale": np.float32(0.05), "y_zero": np.uint8(128),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "x_scale", "x_zero"], "x_q", name="quantise_x"),
        node("DequantizeLinear", ["x_q", "x_scale", "x_zero"], "x_dq", name="dequantise_x"),
        node("DequantizeLinear", ["w_q", "w_scale", "w_zero"], "w", name="dequantise_w"),
        node("Conv", ["x_dq", "w", "bias"], "c", name="conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("QuantizeLinear", ["c", "y_scale", "y_zero"], "c_q", name="quantise_y"),
        node("DequantizeLinear", ["c_q", "y_scale", "y_zero"], "y", name="dequantise_y"),
    ]
    graph = helper.make_graph(
        nodes,
        "qdq_bias",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", CHANNELS, SIZE, SIZE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", FILTERS, SIZE, SIZE])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    (FOLDER / "qdq_bias.onnx").write_bytes(model.SerializeToString(deterministic=True))
    x = random.randint(-64, 65, size=(4, CHANNELS, SIZE, SIZE)).astype(np.float32) / 32
    np.savez(FOLDER / "qdq_bias.inputs.npz", x=x)


def node(kind: str, inputs: list[str], output: str, **attributes: object) -> onnx.NodeProto:
    """A node with one output."""
    return helper.make_node(kind, inputs, [output], **attributes)


if __name__ == "__main__":
    main()
