"""The longest sequence that a decoder takes, read off its graph; nothing is said where the graph does not say it."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from farm.workshop import orders
from farm.workshop.child import context, signature
from farm.workshop.samples import builders
from tests.unit.workshop import making

IDS = making.port("input_ids", ["batch", "sequence"], TensorProto.INT64)
POSITIONS = making.port("position_ids", ["batch", "sequence"], TensorProto.INT64)
TABLE = making.weight("wpe", np.zeros((40, 8), dtype=np.float32))
SHAPE = making.weight("flat", np.array([-1]))
CAST = helper.make_node("Cast", ["position_ids"], ["wide"], to=TensorProto.INT64)


def found(
    *nodes: onnx.NodeProto,
    inputs: tuple[onnx.ValueInfoProto, ...] = (IDS, POSITIONS),
    weights: tuple[onnx.TensorProto, ...] = (TABLE, SHAPE),
) -> dict[str, object] | None:
    made = making.model(list(nodes), list(inputs), [making.port("y", None)], weights=weights)
    return context.find_context_length(made, inputs=signature.read_signature(made)["inputs"])


def test_a_table_that_is_read_by_position_says_it() -> None:
    said = {"tokens": 40, "where": "the 40 rows of wpe, which Gather reads by position"}
    assert found(helper.make_node("Gather", ["wpe", "position_ids"], ["y"])) == said
    reshaped = helper.make_node("Reshape", ["wide", "flat"], ["row"])
    assert found(CAST, reshaped, helper.make_node("Gather", ["wpe", "row"], ["y"])) == said


@pytest.mark.parametrize(
    ("node", "domain", "first"),
    [("GroupQueryAttention", "com.microsoft", 7), ("RotaryEmbedding", "com.microsoft", 2), ("RotaryEmbedding", "", 1)],
)
def test_tables_of_cosines_and_sines_say_it_and_the_shorter_one_counts(node: str, domain: str, first: int) -> None:
    tables = tuple(making.weight(name, np.zeros((rows, 4), np.float32)) for name, rows in (("cos", 64), ("sin", 48)))
    rotate = helper.make_node(node, [*["input_ids"] * first, "cos", "sin"], ["y"], domain=domain)
    said = found(rotate, inputs=(IDS,), weights=tables)
    assert said == {"tokens": 48, "where": f"the 48 rows of sin, which {node} reads by position"}


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Gather", ["wpe", "input_ids"], ["y"]),
        helper.make_node("Gather", ["wpe", "position_ids"], ["y"], axis=1),
        helper.make_node("Gather", ["computed", "position_ids"], ["y"]),
        helper.make_node("GroupQueryAttention", ["input_ids"], ["y"], domain="com.microsoft"),
        helper.make_node("RotaryEmbedding", ["input_ids", "position_ids", "flat", "flat"], ["y"], domain="my.own"),
    ],
)
def test_nothing_is_said_of_what_is_not_read_by_position(node: onnx.NodeProto) -> None:
    assert found(node) is None


def test_a_mask_of_fixed_length_says_it() -> None:
    mask = making.port("attention_mask", ["batch", 96], TensorProto.INT64)
    node = helper.make_node("Identity", ["input_ids"], ["y"])
    assert found(node, inputs=(IDS, mask)) == {"tokens": 96, "where": "the fixed length of attention_mask"}
    free = making.port("attention_mask", ["batch", "total"], TensorProto.INT64)
    assert found(node, inputs=(IDS, free)) is None


@pytest.mark.parametrize("name", ["decoder", "decoder-gqa"])
def test_inspection_says_it_of_the_samples(name: str, tmp_path: Path) -> None:
    path = builders.write_model(name, tmp_path)
    inspected = orders.inspect(tmp_path, path.name).context
    assert inspected.words == "context 512 (the 512 rows of position_table, which Gather reads by position)"
