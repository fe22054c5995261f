"""Decoders whose residuals are added inside SkipLayerNormalization, or inside SkipSimplifiedLayerNormalization.

    python -m tests.bench.skip_decoders FOLDER [--layers 8]

Writes `skip.onnx` and `skip-simplified.onnx`: hidden 256, attention by standard operators, seeded weights, a peaked
head. By GroupQueryAttention, which 1.30.0 made faster for a token, decoding would change too.
`onnxfarm bench FOLDER/skip.onnx --ort 1.29.0,1.30.0 --scenario generate:prompt=256:new=64` is the figure of
docs/generate.md.
"""

from pathlib import Path

import onnx

from farm.workshop.samples.attention import AttentionInputs, attend, prepare_mask
from farm.workshop.samples.decoder import CONTEXT, HEADS, HIDDEN, INNER, KEY_HEADS, VOCABULARY, WIDTH
from farm.workshop.samples.graphs import GraphBuilder, Port
from farm.workshop.samples.weights import Seeded
from tests.options import read_options

NORMS = {"skip": "SkipLayerNormalization", "skip-simplified": "SkipSimplifiedLayerNormalization"}


def main() -> None:
    """Writes both."""
    asked = read_options(__doc__, "folder", layers=8)
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name in NORMS:
        print(write(name, asked.folder, layers=asked.layers))


def write(name: str, folder: Path, *, layers: int = 8) -> Path:
    """The model `name` in the folder; its path."""
    path = folder / f"{name}.onnx"
    path.write_bytes(_decoder(name, layers).SerializeToString(deterministic=True))
    return path


def _decoder(name: str, layers: int) -> onnx.ModelProto:
    graph, seeded = GraphBuilder(), Seeded(20_262)
    prepare_mask(graph)
    tokens = graph.add_weight("token_table", seeded.draw_matrix(HIDDEN, VOCABULARY).T * 4)
    places = graph.add_weight("position_table", seeded.draw_matrix(HIDDEN, CONTEXT).T * 8)
    found = graph.add("Gather", "token", [tokens, "input_ids"])
    hidden = graph.add("Add", "embedded", [found, graph.add("Gather", "position", [places, "position_ids"])])
    branch = graph.add(
        "Mul", "nothing_yet", [hidden, graph.add_weight("none_yet", seeded.draw_uniform(1, spread=0.01))]
    )
    for layer in range(layers):
        normed, hidden = _normed(graph, seeded, hidden, branch, name=name, place=f"layer{layer}_norm1")
        sizes = (("query", HEADS), ("key", KEY_HEADS), ("value", KEY_HEADS))
        query, key, value = (
            _linear(graph, seeded, normed, name=f"layer{layer}_{part}", columns=heads * WIDTH) for part, heads in sizes
        )
        mixed = attend(graph, AttentionInputs(layer, query, key, value, heads=HEADS, key_heads=KEY_HEADS, width=WIDTH))
        branch = _linear(graph, seeded, mixed, name=f"layer{layer}_output", columns=HIDDEN)
        normed, hidden = _normed(graph, seeded, hidden, branch, name=name, place=f"layer{layer}_norm2")
        wide = _linear(graph, seeded, normed, name=f"layer{layer}_wide", columns=INNER)
        active = graph.add("Relu", f"layer{layer}_relu", [wide])
        branch = _linear(graph, seeded, active, name=f"layer{layer}_narrow", columns=HIDDEN, rows=INNER)
    last, _ = _normed(graph, seeded, hidden, branch, name=name, place="last_norm")
    scores = graph.add(
        "MatMul", "head", [last, graph.add_weight("head_weight", seeded.draw_matrix(HIDDEN, VOCABULARY))]
    )
    squared = graph.add("Mul", "head_squared", [scores, scores])
    graph.add("Mul", "head_cubed", [squared, scores], output="logits")
    return graph.finish(
        name,
        inputs=_ports("past_key_values", "past_sequence_length", layers) | _given(),
        outputs=_ports("present", "total_sequence_length", layers)
        | {"logits": (onnx.TensorProto.FLOAT, ["batch", "sequence_length", VOCABULARY])},
    )


def _normed(graph: GraphBuilder, seeded: Seeded, hidden: str, branch: str, *, name: str, place: str) -> tuple[str, str]:
    """The normalised sum, and the sum."""
    weights = [graph.add_weight(f"{place}_scale", 1 + seeded.draw_uniform(HIDDEN, spread=0.1))]
    shift = seeded.draw_uniform(HIDDEN, spread=0.1)
    weights += [graph.add_weight(f"{place}_shift", shift)] if name == "skip" else []
    outputs = [f"{place}_out", "", "", f"{place}_sum"]
    graph.add_contrib(NORMS[name], place, [hidden, branch, *weights], outputs=outputs)
    return outputs[0], outputs[3]


def _linear(graph: GraphBuilder, seeded: Seeded, x: str, *, name: str, columns: int, rows: int = HIDDEN) -> str:
    weight, bias = seeded.draw_matrix(rows, columns), seeded.draw_uniform(columns, spread=0.02)
    return graph.add_linear(name, x, weight=weight, bias=bias)


def _given() -> dict[str, Port]:
    lengths = {"input_ids": "sequence_length", "position_ids": "sequence_length"}
    lengths["attention_mask"] = "total_sequence_length"
    return {name: (onnx.TensorProto.INT64, ["batch", length]) for name, length in lengths.items()}


def _ports(stem: str, length: str, layers: int) -> dict[str, Port]:
    shape: list[str | int] = ["batch", KEY_HEADS, length, WIDTH]
    names = [f"{stem}.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    return {name: (onnx.TensorProto.FLOAT, shape) for name in names}


if __name__ == "__main__":
    main()
