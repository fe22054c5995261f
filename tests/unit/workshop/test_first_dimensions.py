"""Which first dimensions of inputs are a batch, and which are not."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from farm.workshop.child import consumers, feed, signature, size_candidates
from tests.unit.workshop import making
from tests.unit.workshop.test_consumers import built, node, zeros


@pytest.mark.parametrize(
    ("dims", "batch"),
    [
        ([3, "height", "width"], None),
        ([3, 224, 224], None),
        ([4, "rows", "columns"], None),
        ([4, 224, 224], 4),
        ([1, "height", "width"], 1),
        ([3, 8, 8], 3),
        (["image_batch", 3, 8, 8], "image_batch"),
    ],
)
def test_colours_are_no_batch(dims: list[Any], batch: int | str | None) -> None:
    assert signature.read_signature(built([node("Relu", "x")], dims, {}))["batch"] == batch


def test_batches_of_two_inputs_are_one_each() -> None:
    ports = [making.port("x", ["image_batch_size", 3]), making.port("z", ["text_batch_size", "length"])]
    nodes = [node("Relu", "x"), node("Relu", "z", output="q")]
    model = making.model(nodes, ports, [making.port("y", None), making.port("q", None)])
    facts = signature.read_signature(model)
    first = next(size_candidates.list_candidates(model, facts, required=consumers.find_required_sizes(model, facts)))
    assert first == {"image_batch_size": 1, "text_batch_size": 1, "length": 64}


@pytest.mark.parametrize(
    ("firsts", "joined", "batch"),
    [
        (["unk__60", "unk__61", "unk__63"], True, "batch"),
        (["dynamic_axes_1", "dynamic_axes_2", "dim_0"], True, "batch"),
        (["unk__60", "unk__61", "unk__63"], False, None),
        (["unk__60", "nodes", "unk__63"], True, None),
        (["unk__60", "unk__61", "batch"], True, None),
    ],
)
def test_numbered_first_dimensions_that_meet_are_the_batch(firsts: list[str], joined: bool, batch: str | None) -> None:
    """As tf2onnx writes a model of several inputs: a flattened table, a mean over a history, and a context."""
    user, history, context = firsts
    ports = [
        making.port("user", [user, 1], TensorProto.INT64),
        making.port("history", [history, "unk__62"], TensorProto.INT64),
        making.port("context", [context, 5]),
    ]
    nodes = [
        node("Gather", "table", "user", output="rows"),
        node("Reshape", "rows", "flat", output="of_user"),
        node("Gather", "table", "history", output="items"),
        node("ReduceMean", "items", output="of_history", axes=[1], keepdims=0),
        node("Concat", "of_user", "of_history", "context", output="all", axis=1),
        node("MatMul", "all", "w"),
    ]
    nodes = nodes if joined else [*nodes[:4], node("MatMul", "context", "v")]
    weights = {"table": zeros(9, 4), "flat": np.array([-1, 4]), "w": zeros(13, 2), "v": zeros(5, 2)}
    stored = [making.weight(name, np.asarray(value)) for name, value in weights.items()]
    model = making.model(nodes, ports, [making.port("y", None)], weights=stored)
    facts = signature.read_signature(model)
    assert facts["batch"] == batch
    found = feed.find_feed(model, model.SerializeToString())
    assert (found.problem, found.sizes.get("batch")) == ("", 1 if "batch" in facts["dims"] else None)


@pytest.mark.parametrize(
    ("names", "kind", "begins", "batch"),
    [
        (["unk__1", "unk__3"], "mask", "unk__5", "batch"),
        (["ids_dynamic_axes_1", "second_dynamic_axes_1"], "mask", "y_dynamic_axes_1", "batch"),
        (["unk__1", "unk__3"], "mask", "rows", None),
        (["unk__1", "unk__3"], "mask", 7, None),
        (["unk__1", "unk__3"], "size", "unk__5", None),
        (["unk__1", "unk__3"], "edges", "unk__5", None),
    ],
)
def test_nameless_rows_that_reach_every_output_are_the_batch(
    names: list[str], kind: str, begins: int | str, batch: str | None
) -> None:
    """Where a computed reshape lies between, inference cannot say what rows become."""
    ports = [
        making.port("ids", [names[0], "unk__2"], TensorProto.INT64),
        making.port("second", [names[1], "unk__4"], TensorProto.INT64),
    ]
    met = {
        "mask": [node("Cast", "second", output="cast", to=TensorProto.FLOAT), node("Mul", "lost", "cast")],
        "size": [node("Shape", "second", output="size"), node("Reshape", "lost", "size")],
        "edges": [node("Gather", "lost", "second")],
    }[kind]
    nodes = [
        node("Gather", "table", "ids", output="found"),
        node("Shape", "found", output="dims"),
        node("ReduceProd", "dims", output="all", keepdims=1),
        node("Reshape", "found", "all", output="flat"),
        node("Reshape", "flat", "dims_again", output="lost"),
        *met,
    ]
    nodes.insert(4, node("Mul", "dims", "all", output="dims_again"))
    outputs = [making.port("y", [begins, "unk__6"])]
    model = making.model(nodes, ports, outputs, weights=[making.weight("table", zeros(9, 4))])
    assert signature.read_signature(model)["batch"] == batch


@pytest.mark.parametrize(
    ("first", "second", "batch"),
    [
        (["num_images", 3, 8, 8], ["num_texts", "length"], "num_images"),
        (["image_batch_size", 3], ["text_batch_size", "length"], "image_batch_size"),
        (["images", 3], ["batch", "length"], "images"),
        (["batch", "num_samples"], ["batch", 4], "batch"),
        (["num_images", 3], ["nodes", 4], None),
        (["num_samples"], ["num_texts", 4], None),
    ],
)
def test_counts_of_things_are_batches_where_inputs_begin_with_them(
    first: list[Any], second: list[Any], batch: str | None
) -> None:
    nodes = [node("Relu", "x"), node("Relu", "z", output="q")]
    outputs = [making.port("y", None), making.port("q", None)]
    model = making.model(nodes, [making.port("x", first), making.port("z", second)], outputs)
    facts = signature.read_signature(model)
    assert facts["batch"] == batch
    sizes = next(size_candidates.list_candidates(model, facts, required=consumers.find_required_sizes(model, facts)))
    assert {sizes[str(shape[0])] for shape in (first, second)} == {1} or batch is None
