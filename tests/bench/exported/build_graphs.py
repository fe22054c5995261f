"""Graphs of kinds that the exporters above write seldom, written by onnx.helper in the shape that they write them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BUILDERS: dict[str, Callable[[Path], None]] = {}
FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def builder(function: Callable[[], onnx.ModelProto]) -> Callable[[], onnx.ModelProto]:
    BUILDERS[function.__name__] = lambda path: onnx.save(function(), path)
    return function


def graph(
    nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: dict[str, Any] | None = None
) -> onnx.ModelProto:
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in (weights or {}).items()]
    made = helper.make_graph(nodes, "graph", inputs, outputs, stored)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=imports, ir_version=8)


def port(name: str, shape: Any, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def random(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@builder
def graph_without_inputs() -> onnx.ModelProto:
    """A table of anchors, or a generator of noise: everything is in the file."""
    nodes = [helper.make_node("MatMul", ["a", "b"], ["y"])]
    return graph(nodes, [], [port("y", [16, 16])], {"a": random(16, 64), "b": random(64, 16)})


@builder
def graph_sequence() -> onnx.ModelProto:
    """Pictures of any number as a sequence, put together inside."""
    nodes = [
        helper.make_node("ConcatFromSequence", ["frames"], ["all"], axis=0),
        helper.make_node("Conv", ["all", "w"], ["y"]),
    ]
    frames = helper.make_tensor_sequence_value_info("frames", FLOAT, ["n", 3, "height", "width"])
    return graph(nodes, [frames], [port("y", None)], {"w": random(8, 3, 3, 3)})


@builder
def graph_optional() -> onnx.ModelProto:
    """A bias that a caller may leave away."""
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, ["batch", 8]))
    with_bias = helper.make_graph(
        [helper.make_node("OptionalGetElement", ["bias"], ["b"]), helper.make_node("Add", ["h", "b"], ["yes"])],
        "with", [], [port("yes", None)],
    )  # fmt: skip
    without = helper.make_graph([helper.make_node("Identity", ["h"], ["no"])], "without", [], [port("no", None)])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("OptionalHasElement", ["bias"], ["has"]),
        helper.make_node("If", ["has"], ["y"], then_branch=with_bias, else_branch=without),
    ]
    inputs = [port("x", ["batch", 16]), helper.make_value_info("bias", kind)]
    model = graph(nodes, inputs, [port("y", None)], {"w": random(16, 8)})
    model.opset_import[0].version = 18
    return model


@builder
def graph_strings_mapped() -> onnx.ModelProto:
    """Words looked up in the model's own table, then embedded."""
    nodes = [
        helper.make_node(
            "LabelEncoder", ["words"], ["ids"], domain="ai.onnx.ml", keys_strings=["<unk>", "cat", "dog", "fish"],
            values_int64s=[0, 1, 2, 3], default_int64=0,
        ),
        helper.make_node("Gather", ["table", "ids"], ["y"]),
    ]  # fmt: skip
    model = graph(nodes, [port("words", ["batch", "length"], STRING)], [port("y", None)], {"table": random(4, 8)})
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 2))
    return model


@builder
def graph_detector_chw() -> onnx.ModelProto:
    """A picture without a batch, put into one inside, as detectors take it."""
    nodes = [
        helper.make_node("Unsqueeze", ["image", "axis"], ["batched"]),
        helper.make_node("Conv", ["batched", "w"], ["y"], strides=[2, 2]),
    ]
    weights = {"axis": np.array([0]), "w": random(8, 3, 3, 3)}
    return graph(nodes, [port("image", [3, "height", "width"])], [port("y", None)], weights)


@builder
def graph_disagreeing() -> onnx.ModelProto:
    """One size that two weights want differently: nothing runs, and nothing is fair but to say so."""
    nodes = [helper.make_node("MatMul", ["a", "w"], ["p"]), helper.make_node("MatMul", ["b", "v"], ["q"])]
    inputs = [port("a", ["batch", "width"]), port("b", ["batch", "width"])]
    return graph(nodes, inputs, [port("p", None), port("q", None)], {"w": random(48, 8), "v": random(32, 8)})


@builder
def graph_genai_decoder() -> onnx.ModelProto:
    """GroupQueryAttention as onnxruntime-genai's builder writes it: mask as lengths, a past of its own type."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["h"]),
        *(helper.make_node("MatMul", ["h", name], [f"{name}_out"]) for name in ("q", "k", "v")),
        helper.make_node("ReduceSum", ["attention_mask", "one"], ["sums"], keepdims=0),
        helper.make_node("Sub", ["sums", "one64"], ["last"]),
        helper.make_node("Cast", ["last"], ["lasts"], to=TensorProto.INT32),
        helper.make_node("Shape", ["attention_mask"], ["dims"]),
        helper.make_node("Gather", ["dims", "where"], ["length"]),
        helper.make_node("Cast", ["length"], ["total"], to=TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention",
            ["q_out", "k_out", "v_out", "past_key_values.0.key", "past_key_values.0.value", "lasts", "total"],
            ["mixed", "present.0.key", "present.0.value"], domain="com.microsoft", num_heads=4, kv_num_heads=2,
        ),
        helper.make_node("MatMul", ["mixed", "out"], ["logits"]),
    ]  # fmt: skip
    past = ["batch_size", 2, "past_sequence_length", 8]
    present = ["batch_size", 2, "total_sequence_length", 8]
    names = [f"0.{part}" for part in ("key", "value")]
    inputs = [
        port("input_ids", ["batch_size", "sequence_length"], INT64),
        port("attention_mask", ["batch_size", "total_sequence_length"], INT64),
        *(port(f"past_key_values.{name}", past) for name in names),
    ]
    outputs = [
        port("logits", ["batch_size", "sequence_length", 500]),
        *(port(f"present.{name}", present) for name in names),
    ]
    weights = {
        **{
            "table": random(500, 32),
            "q": random(32, 32),
            "k": random(32, 16),
            "v": random(32, 16),
            "out": random(32, 500),
        },
        **{"one": np.array([1]), "one64": np.array(1), "where": np.array(1)},
    }
    return graph(nodes, inputs, outputs, weights)
