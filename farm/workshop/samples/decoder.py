"""Makes a pre-norm decoder of two layers with a cache of keys and values.

`make_gqa` has the same weights as `make`, and ONNX Runtime's GroupQueryAttention. The scores have a peak, as those of a
trained model have: with random weights alone, all tokens would score nearly the same, and samplers and comparisons of
generated tokens would behave differently.
"""

from dataclasses import dataclass

import numpy as np
import onnx

from farm.workshop.samples.attention import (
    Attend,
    AttentionInputs,
    Prepare,
    attend,
    attend_grouped,
    prepare_lengths,
    prepare_mask,
)
from farm.workshop.samples.graphs import GraphBuilder, Port
from farm.workshop.samples.weights import Seeded

HIDDEN = 256
HEADS = 4
KEY_HEADS = 2
WIDTH = HIDDEN // HEADS
INNER = 512
LAYERS = 2
VOCABULARY = 1000
CONTEXT = 512
_SEED = 20_261
# the size of a trained model's vocabulary, for which samplers take longer than the graph
WIDE_VOCABULARY = 152_000
_FLOAT, _WHOLE = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


@dataclass(frozen=True)
class Head:
    """The layer that scores the tokens."""

    vocabulary: int = VOCABULARY
    # width of a narrower layer before it; 0 if there is none
    through: int = 0
    # multiplies the scores; a small one makes all tokens score nearly alike
    scale: float = 1.0


def make() -> onnx.ModelProto:
    """Make the decoder with attention from standard operators.

    `input_ids`, `position_ids` [batch, sequence] and `attention_mask` [batch, total] int64, and for each layer
    `past_key_values.N.key` and `.value` [batch, 2, past, 64] float → `logits` [batch, sequence, 1000] and
    `present.N.key` and `.value` [batch, 2, total, 64]; total is past and sequence together.
    """
    return _make_decoder("decoder", prepare=prepare_mask, attend=attend)


def make_gqa() -> onnx.ModelProto:
    return _make_decoder("decoder-gqa", prepare=prepare_lengths, attend=attend_grouped)


def make_wide(*, is_flat: bool = False) -> onnx.ModelProto:
    """Make the decoder with 152,000 tokens that share 1,000 embeddings; with `is_flat` all score nearly alike."""
    head = Head(WIDE_VOCABULARY, through=32, scale=0.05 if is_flat else 1.0)
    return _make_decoder("decoder-flat" if is_flat else "decoder-wide", prepare=prepare_mask, attend=attend, head=head)


def _make_decoder(name: str, *, prepare: Prepare, attend: Attend, head: Head = Head()) -> onnx.ModelProto:
    graph, seeded = GraphBuilder(), Seeded(_SEED)
    prepare(graph)
    tokens = graph.add_weight("token_table", seeded.draw_matrix(HIDDEN, VOCABULARY).T * 4)
    places = graph.add_weight("position_table", seeded.draw_matrix(HIDDEN, CONTEXT).T * 8)
    token = graph.add("Gather", "token", [tokens, _add_shared_ids(graph, head)])
    hidden = graph.add("Add", "embedded", [token, graph.add("Gather", "position", [places, "position_ids"])])
    for layer in range(LAYERS):
        normed = _add_norm(graph, seeded, hidden, name=f"layer{layer}_norm1")
        mixed = attend(graph, _add_query_key_value(graph, seeded, normed, layer=layer))
        attended = _add_linear(graph, seeded, mixed, name=f"layer{layer}_output", columns=HIDDEN)
        hidden = graph.add("Add", f"layer{layer}_sum1", [hidden, attended])
        hidden = _add_feed_forward(graph, seeded, hidden, layer=layer)
    _add_scores(graph, seeded, _add_norm(graph, seeded, hidden, name="last_norm"), head=head)
    logits: dict[str, Port] = {"logits": (_FLOAT, ["batch", "sequence_length", head.vocabulary])}
    presents = _list_caches("present", "total_sequence_length")
    return graph.finish(name, inputs=_list_inputs(), outputs=logits | presents)


def _add_shared_ids(graph: GraphBuilder, head: Head) -> str:
    """Return the name of the ids whose embeddings are looked up; ids of a larger vocabulary share the embeddings."""
    if head.vocabulary == VOCABULARY:
        return "input_ids"
    shared = graph.add_weight("embeddings", np.array(VOCABULARY, dtype=np.int64))
    return graph.add("Mod", "embedded_id", ["input_ids", shared])


def _add_scores(graph: GraphBuilder, seeded: Seeded, last: str, *, head: Head) -> None:
    rows = HIDDEN
    if head.through:
        narrow = graph.add_weight("narrow_weight", seeded.draw_matrix(HIDDEN, head.through))
        last, rows = graph.add("MatMul", "narrow", [last, narrow]), head.through
    scores = graph.add(
        "MatMul", "head", [last, graph.add_weight("head_weight", seeded.draw_matrix(rows, head.vocabulary))]
    )
    if head.scale != 1.0:
        scores = graph.add(
            "Mul", "head_scaled", [scores, graph.add_weight("head_scale", np.array(head.scale, np.float32))]
        )
    # cubing gives a peak without steep weights, with which rounding errors could change the best token
    squared = graph.add("Mul", "head_squared", [scores, scores])
    graph.add("Mul", "head_cubed", [squared, scores], output="logits")


def _add_query_key_value(graph: GraphBuilder, seeded: Seeded, x: str, *, layer: int) -> AttentionInputs:
    query, key, value = (
        _add_linear(graph, seeded, x, name=f"layer{layer}_{part}", columns=heads * WIDTH)
        for part, heads in (("query", HEADS), ("key", KEY_HEADS), ("value", KEY_HEADS))
    )
    return AttentionInputs(layer, query, key, value, heads=HEADS, key_heads=KEY_HEADS, width=WIDTH)


def _list_inputs() -> dict[str, Port]:
    inputs: dict[str, Port] = {
        "input_ids": (_WHOLE, ["batch", "sequence_length"]),
        "attention_mask": (_WHOLE, ["batch", "total_sequence_length"]),
        "position_ids": (_WHOLE, ["batch", "sequence_length"]),
    }
    return inputs | _list_caches("past_key_values", "past_sequence_length")


def _list_caches(stem: str, length: str) -> dict[str, Port]:
    shape: list[str | int] = ["batch", KEY_HEADS, length, WIDTH]
    return {f"{stem}.{layer}.{part}": (_FLOAT, shape) for layer in range(LAYERS) for part in ("key", "value")}


def _add_linear(graph: GraphBuilder, seeded: Seeded, x: str, *, name: str, columns: int, rows: int = HIDDEN) -> str:
    weight, bias = seeded.draw_matrix(rows, columns), seeded.draw_uniform(columns, spread=0.02)
    return graph.add_linear(name, x, weight=weight, bias=bias)


def _add_norm(graph: GraphBuilder, seeded: Seeded, x: str, *, name: str) -> str:
    scale = graph.add_weight(f"{name}_scale", 1 + seeded.draw_uniform(HIDDEN, spread=0.1))
    shift = graph.add_weight(f"{name}_shift", seeded.draw_uniform(HIDDEN, spread=0.1))
    return graph.add("LayerNormalization", name, [x, scale, shift], axis=-1, epsilon=1e-5)


def _add_feed_forward(graph: GraphBuilder, seeded: Seeded, x: str, *, layer: int) -> str:
    normed = _add_norm(graph, seeded, x, name=f"layer{layer}_norm2")
    wide = _add_linear(graph, seeded, normed, name=f"layer{layer}_wide", columns=INNER)
    active = graph.add("Relu", f"layer{layer}_relu", [wide])
    narrow = _add_linear(graph, seeded, active, name=f"layer{layer}_narrow", columns=HIDDEN, rows=INNER)
    return graph.add("Add", f"layer{layer}_sum2", [x, narrow])
