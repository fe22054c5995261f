"""Makes a small convolutional net with one residual block, for images of 32 × 32."""

import onnx

from farm.workshop.samples.graphs import GraphBuilder
from farm.workshop.samples.weights import Seeded

_SEED = 20_252


def make() -> onnx.ModelProto:
    """Make the model: `x` [batch, 3, 32, 32] float → `y` [batch, 10]; the batch is free."""
    graph, seeded = GraphBuilder(), Seeded(_SEED)
    stem = _add_conv_relu(graph, seeded, "x", name="stem", shape=(16, 3), stride=1)
    down1 = _add_conv_relu(graph, seeded, stem, name="down1", shape=(32, 16), stride=2)
    inner = _add_conv_relu(graph, seeded, down1, name="block_inner", shape=(32, 32), stride=1)
    outer = _add_conv(graph, seeded, inner, name="block_outer", shape=(32, 32), stride=1)
    total = graph.add("Add", "block_sum", [outer, down1])
    block = graph.add("Relu", "block_relu", [total])
    down2 = _add_conv_relu(graph, seeded, block, name="down2", shape=(64, 32), stride=2)
    pooled = graph.add("GlobalAveragePool", "pool", [down2])
    flat = graph.add("Flatten", "flatten", [pooled])
    weight = graph.add_weight("head_weight", seeded.draw_matrix(64, 10))
    bias = graph.add_weight("head_bias", seeded.draw_uniform(10, spread=0.1))
    graph.add("Gemm", "head", [flat, weight, bias], output="y")
    return graph.finish_x_to_y("convnet", x=["batch", 3, 32, 32], y=["batch", 10])


def _add_conv_relu(
    graph: GraphBuilder, seeded: Seeded, x: str, *, name: str, shape: tuple[int, int], stride: int
) -> str:
    return graph.add("Relu", f"{name}_relu", [_add_conv(graph, seeded, x, name=name, shape=shape, stride=stride)])


def _add_conv(graph: GraphBuilder, seeded: Seeded, x: str, *, name: str, shape: tuple[int, int], stride: int) -> str:
    outputs, inputs = shape
    kernel = seeded.draw_matrix(inputs * 9, outputs).T.reshape(outputs, inputs, 3, 3)
    weight = graph.add_weight(f"{name}_weight", kernel)
    bias = graph.add_weight(f"{name}_bias", seeded.draw_uniform(outputs, spread=0.1))
    return graph.add_conv(name, [x, weight, bias], stride=stride)
