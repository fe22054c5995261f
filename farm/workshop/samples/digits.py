"""Makes a classifier of handwritten digits, trained by `tests/models/train_digits.py`, and data to judge it."""

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from farm.workshop.arrays import Array
from farm.workshop.samples.graphs import GraphBuilder

# the trained weights and the images
COMMITTED = Path(__file__).with_name("digits.npz")
# name, output channels, input channels and stride of each convolution; a hidden and a last layer follow
CONVOLUTIONS = (("conv1", 16, 1, 1), ("conv2", 32, 16, 2), ("conv3", 32, 32, 1))
FLAT = 32 * 4 * 4
HIDDEN = 64
CLASSES = 10
# the largest value of a pixel in the stored images
FULL = np.float32(16)


def make() -> onnx.ModelProto:
    """Make the model: `x` [batch, 1, 8, 8] float in 0–1 → `y` [batch, 10], scores before softmax."""
    graph = GraphBuilder()
    with np.load(COMMITTED) as stored:
        weights = {name: stored[name].astype(np.float32) for name in stored.files if stored[name].dtype == np.float16}
    hidden = "x"
    for name, _, _, stride in CONVOLUTIONS:
        inputs = [
            hidden,
            *(graph.add_weight(f"{name}_{part}", weights[f"{name}_{part}"]) for part in ("weight", "bias")),
        ]
        hidden = graph.add("Relu", f"{name}_relu", [graph.add_conv(name, inputs, stride=stride)])
    flat = graph.add("Flatten", "flatten", [hidden])
    hidden = graph.add("Relu", "hidden_relu", [_add_gemm(graph, weights, flat, name="hidden")])
    _add_gemm(graph, weights, hidden, name="scores", output="y")
    return graph.finish_x_to_y("digits", x=["batch", 1, 8, 8], y=["batch", CLASSES])


def _add_gemm(graph: GraphBuilder, weights: dict[str, Array], x: str, *, name: str, output: str = "") -> str:
    inputs = [x, *(graph.add_weight(f"{name}_{part}", weights[f"{name}_{part}"]) for part in ("weight", "bias"))]
    return graph.add("Gemm", name, inputs, output=output)


def make_evaluation_data() -> dict[str, Array]:
    """Make images that the model was not trained on: `x` [540, 1, 8, 8] float and `labels` [540] int64, 0 to 9."""
    with np.load(COMMITTED) as stored:
        return {"x": make_images(stored["evaluation_pixels"]), "labels": stored["evaluation_labels"].astype(np.int64)}


def make_calibration_data() -> dict[str, Array]:
    """Make images of the training set for static quantisation: `x` [512, 1, 8, 8] float."""
    with np.load(COMMITTED) as stored:
        return {"x": make_images(stored["calibration_pixels"])}


def make_images(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Scale pixels of 0 to 16 [n, 64] to the model's input [n, 1, 8, 8] of 0 to 1."""
    return np.asarray((pixels.astype(np.float32) / FULL).reshape(-1, 1, 8, 8), dtype=np.float32)
