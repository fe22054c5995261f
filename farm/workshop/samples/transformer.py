"""Makes a post-norm transformer encoder of two layers: a LayerNormalization follows every residual Add."""

import numpy as np
import onnx

from farm.workshop.samples.graphs import GraphBuilder
from farm.workshop.samples.weights import Seeded

HIDDEN = 256
HEADS = 4
INNER = 1024
LAYERS = 2
SEQUENCE = 64
_SEED = 20_251


def make() -> onnx.ModelProto:
    """Make the model: `x` [batch, sequence, 256] float → `y` of the same shape; both first dimensions are free."""
    graph, seeded = GraphBuilder(), Seeded(_SEED)
    hidden = "x"
    for layer in range(LAYERS):
        prefix = f"layer{layer}"
        attended = _add_attention(graph, seeded, hidden, prefix=f"{prefix}_add_attention")
        hidden = _add_normalised_sum(graph, seeded, [attended, hidden], prefix=f"{prefix}_norm1")
        wide = _add_linear(graph, seeded, hidden, name=f"{prefix}_ffn_wide", shape=(HIDDEN, INNER))
        active = graph.add("Relu", f"{prefix}_ffn_relu", [wide])
        narrow = _add_linear(graph, seeded, active, name=f"{prefix}_ffn_narrow", shape=(INNER, HIDDEN))
        output = "y" if layer == LAYERS - 1 else ""
        hidden = _add_normalised_sum(graph, seeded, [narrow, hidden], prefix=f"{prefix}_norm2", output=output)
    return graph.finish_x_to_y("transformer", x=["batch", "sequence", HIDDEN], y=["batch", "sequence", HIDDEN])


def _add_attention(graph: GraphBuilder, seeded: Seeded, x: str, *, prefix: str) -> str:
    width = HIDDEN // HEADS
    split = graph.add_weight(f"{prefix}_split", np.array([0, 0, HEADS, width], dtype=np.int64))
    heads = {}
    for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        flat = _add_linear(graph, seeded, x, name=f"{prefix}_{part}", shape=(HIDDEN, HIDDEN))
        parted = graph.add("Reshape", f"{prefix}_{part}_split", [flat, split])
        heads[part] = graph.add("Transpose", f"{prefix}_{part}_heads", [parted], perm=order)
    scores = graph.add("MatMul", f"{prefix}_scores", [heads["query"], heads["key"]])
    scale = graph.add_weight(f"{prefix}_scale", np.array(np.sqrt(width), dtype=np.float32))
    scaled = graph.add("Div", f"{prefix}_scaled", [scores, scale])
    shares = graph.add("Softmax", f"{prefix}_softmax", [scaled], axis=-1)
    mixed = graph.add("MatMul", f"{prefix}_mix", [shares, heads["value"]])
    joined = graph.add("Transpose", f"{prefix}_join", [mixed], perm=[0, 2, 1, 3])
    merge = graph.add_weight(f"{prefix}_merge", np.array([0, 0, HIDDEN], dtype=np.int64))
    flat = graph.add("Reshape", f"{prefix}_merged", [joined, merge])
    return _add_linear(graph, seeded, flat, name=f"{prefix}_output", shape=(HIDDEN, HIDDEN))


def _add_linear(graph: GraphBuilder, seeded: Seeded, x: str, *, name: str, shape: tuple[int, int]) -> str:
    weight, bias = seeded.draw_matrix(*shape), seeded.draw_uniform(shape[1], spread=0.02)
    return graph.add_linear(name, x, weight=weight, bias=bias)


def _add_normalised_sum(graph: GraphBuilder, seeded: Seeded, terms: list[str], *, prefix: str, output: str = "") -> str:
    total = graph.add("Add", f"{prefix}_sum", terms)
    scale = graph.add_weight(f"{prefix}_scale", 1 + seeded.draw_uniform(HIDDEN, spread=0.1))
    shift = graph.add_weight(f"{prefix}_shift", seeded.draw_uniform(HIDDEN, spread=0.1))
    inputs = [total, scale, shift]
    return graph.add("LayerNormalization", f"{prefix}_layernorm", inputs, output=output, axis=-1, epsilon=1e-5)
