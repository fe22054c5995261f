"""Adds a decoder's attention over its cache and new tokens: by standard operators, or as one of ONNX Runtime's own.

`attend` and `attend_grouped` take a layer's query, key and value, and return the name of the result [batch, sequence,
heads × width]. A group of query heads shares a key head.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx

from farm.workshop.samples.graphs import GraphBuilder

_MASKED_SCORE = -1e9


@dataclass(frozen=True)
class AttentionInputs:
    """Names of a layer's query, key and value [batch, sequence, heads × width], before they are split into heads.

    `cache_names` holds the names of the cache before and after the step, first of the keys and then of the values.
    """

    layer: int
    query: str
    key: str
    value: str
    heads: int
    key_heads: int
    width: int

    @property
    def cache_names(self) -> list[tuple[str, str]]:
        named = [f"{self.layer}.{part}" for part in ("key", "value")]
        return [(f"past_key_values.{name}", f"present.{name}") for name in named]


Attend = Callable[[GraphBuilder, AttentionInputs], str]
Prepare = Callable[[GraphBuilder], None]


def prepare_mask(graph: GraphBuilder) -> None:
    """Add nodes that make `score_bias`: 0 where a token may look back at a kept one, else a very low number.

    `attention_mask` says which tokens are kept.
    """
    graph.add("Shape", "now_length", ["input_ids"], output="now", start=1, end=2)
    graph.add("Shape", "total_length", ["attention_mask"], output="total", start=1, end=2)
    graph.add("Squeeze", "total_squeezed", ["total"], output="total_scalar")
    difference = graph.add("Sub", "past_length", ["total", "now"])
    before = graph.add("Squeeze", "past_squeezed", [difference])
    start, step = graph.add_weight("none", _make_int64(0)), graph.add_weight("one", _make_int64(1))
    queries = graph.add("Range", "query_places", [before, "total_scalar", step])
    keys = graph.add("Range", "key_places", [start, "total_scalar", step])
    rows = graph.add("Unsqueeze", "query_rows", [queries, graph.add_weight("row_axis", _make_int64([1]))])
    causal = graph.add("LessOrEqual", "looks_back", [keys, rows])
    mask = graph.add("Cast", "mask_kept", ["attention_mask"], to=onnx.TensorProto.BOOL)
    spread = graph.add("Unsqueeze", "mask_spread", [mask, graph.add_weight("mask_axes", _make_int64([1, 2, 3]))])
    allowed = graph.add("And", "allowed", [causal, spread])
    nothing, far = (
        graph.add_weight(name, np.array(value, dtype=np.float32))
        for name, value in (("zero", 0), ("far", _MASKED_SCORE))
    )
    graph.add("Where", "bias", [allowed, nothing, far], output="score_bias")


def attend(graph: GraphBuilder, parts: AttentionInputs) -> str:
    """Add attention by standard operators, and return the name of its output."""
    group, prefix = parts.heads // parts.key_heads, f"layer{parts.layer}"
    split = graph.add_weight(f"{prefix}_query_split", _make_int64([0, 0, parts.key_heads, group, parts.width]))
    parted = graph.add("Reshape", f"{prefix}_query_parted", [parts.query, split])
    query = graph.add("Transpose", f"{prefix}_query_heads", [parted], perm=[0, 2, 3, 1, 4])
    key, value = (_join_past(graph, parts, which) for which in (0, 1))
    turned = graph.add("Transpose", f"{prefix}_key_turned", [key], perm=[0, 1, 2, 4, 3])
    scores = graph.add("MatMul", f"{prefix}_scores", [query, turned])
    scale = graph.add_weight(f"{prefix}_scale", np.array(parts.width**-0.5, dtype=np.float32))
    scaled = graph.add("Mul", f"{prefix}_scaled", [scores, scale])
    biased = graph.add("Add", f"{prefix}_biased", [scaled, "score_bias"])
    shares = graph.add("Softmax", f"{prefix}_softmax", [biased], axis=-1)
    mixed = graph.add("MatMul", f"{prefix}_mix", [shares, value])
    joined = graph.add("Transpose", f"{prefix}_join", [mixed], perm=[0, 3, 1, 2, 4])
    merge = graph.add_weight(f"{prefix}_merge", _make_int64([0, 0, parts.heads * parts.width]))
    return graph.add("Reshape", f"{prefix}_merged", [joined, merge])


def prepare_lengths(graph: GraphBuilder) -> None:
    """Add nodes that make the further inputs of GroupQueryAttention: `seqlens_k` and `total_length`."""
    counted = graph.add(
        "ReduceSum", "kept_tokens", ["attention_mask", graph.add_weight("token_axis", _make_int64([1]))], keepdims=0
    )
    last = graph.add("Sub", "last_place", [counted, graph.add_weight("one", _make_int64(1))])
    graph.add("Cast", "last_place_cast", [last], output="seqlens_k", to=onnx.TensorProto.INT32)
    graph.add("Shape", "total_length", ["attention_mask"], output="total", start=1, end=2)
    whole = graph.add("Squeeze", "total_squeezed", ["total"])
    graph.add("Cast", "total_cast", [whole], output="total_length", to=onnx.TensorProto.INT32)


def attend_grouped(graph: GraphBuilder, parts: AttentionInputs) -> str:
    """Add attention as one GroupQueryAttention of ONNX Runtime, and return the name of its output."""
    mixed = f"layer{parts.layer}_mixed"
    pasts, presents = zip(*parts.cache_names, strict=True)
    inputs = [parts.query, parts.key, parts.value, *pasts, "seqlens_k", "total_length"]
    graph.add_contrib(
        "GroupQueryAttention",
        f"layer{parts.layer}_attention",
        inputs,
        outputs=[mixed, *presents],
        num_heads=parts.heads,
        kv_num_heads=parts.key_heads,
    )
    return mixed


def _join_past(graph: GraphBuilder, parts: AttentionInputs, part: int) -> str:
    """Join past and new keys (`part` 0) or values (1) to the present cache.

    Return them as [batch, key heads, 1, total, width].
    """
    past, present = parts.cache_names[part]
    name = f"layer{parts.layer}_{('key', 'value')[part]}"
    split = graph.add_weight(f"{name}_split", _make_int64([0, 0, parts.key_heads, parts.width]))
    parted = graph.add("Reshape", f"{name}_parted", [(parts.key, parts.value)[part], split])
    new = graph.add("Transpose", f"{name}_heads", [parted], perm=[0, 2, 1, 3])
    graph.add("Concat", f"{name}_join_past", [past, new], output=present, axis=2)
    return graph.add("Unsqueeze", f"{name}_grouped", [present, graph.add_weight(f"{name}_axis", _make_int64([2]))])


def _make_int64(value: int | list[int]) -> np.ndarray:
    return np.array(value, dtype=np.int64)
