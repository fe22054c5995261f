"""Sizes and values that a person would feed: pictures of detectors, boxes, prompts of points, what an encoder gave."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from farm.workshop.child import bounds, consumers, feed, input_values, inputs, signature
from farm.workshop.problems import Problem
from tests.unit.workshop import making

INT64, FLOAT = TensorProto.INT64, TensorProto.FLOAT


def node(op: str, *read: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, list(read), output.split(), **attributes)


def built(
    nodes: list[onnx.NodeProto], ports: list[Any], weights: dict[str, Any], *, outputs: Any = ()
) -> onnx.ModelProto:
    stored = [making.weight(name, np.asarray(value)) for name, value in weights.items()]
    return making.model(nodes, ports, [*outputs] or [making.port("y", None)], weights=stored)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def found(model: onnx.ModelProto) -> feed.FoundFeed:
    return feed.find_feed(model, model.SerializeToString())


def fills_of(model: onnx.ModelProto) -> dict[str, str]:
    facts = signature.read_signature(model)
    return input_values.choose_fills(model, facts, consumers.find_required_sizes(model, facts))


PICTURE = ["batch", 3, "height", "width"]


def maps(strides: list[int], *, flat: bool = True) -> list[onnx.NodeProto]:
    """A map of each stride, flat or not, one behind the other."""
    nodes, named = [], []
    for stride in strides:
        nodes.append(node("Conv", "x", f"w{stride}", output=f"map{stride}", strides=[stride, stride]))
        nodes.append(node("Reshape", f"map{stride}", "flat", output=f"flat{stride}"))
        named.append(f"flat{stride}" if flat else f"map{stride}")
    return [*nodes, node("Concat", *named, axis=2)]


def detecting(nodes: list[onnx.NodeProto], outputs: list[Any], **weights: Any) -> onnx.ModelProto:
    kernels = {f"w{stride}": zeros(8, 3, stride, stride) for stride in (8, 16, 32)}
    return built(
        nodes, [making.port("x", PICTURE)], {**kernels, "flat": np.array([0, 8, -1]), **weights}, outputs=outputs
    )


BARE = [making.port("y", None)]
RELU = [node("Relu", "x")]
MEAN = node("ReduceMean", "map32", output="y", axes=[2, 3])
CONV = node("Conv", "x", "w32", output="map32", strides=[32, 32])


@pytest.mark.parametrize(
    ("nodes", "outputs", "side"),
    [
        (maps([8, 16, 32]), BARE, 640),
        (maps([8]), BARE, 224),
        (maps([8, 8]), BARE, 224),
        ([CONV, MEAN], BARE, 224),
        ([node("Identity", "x", output="pred_boxes")], [making.port("pred_boxes", None)], 640),
        ([node("Identity", "x", output="inbox_detached")], [making.port("detached", None)], 224),
        (
            [node("Identity", "few", output="where"), *RELU],
            [making.port("where", ["batch", 100, 4]), making.port("y", None)],
            640,
        ),
        ([node("Identity", "few", output="where")], [making.port("where", ["batch", 100, 4])], 224),
        ([node("Identity", "few", output="q"), *RELU], [making.port("q", ["batch", 4]), making.port("y", None)], 224),
        ([node("RoiAlign", "x", "rois", "at", mode="avg")], BARE, 640),
    ],
)
def test_a_detector_is_given_a_larger_picture(nodes: list[Any], outputs: list[Any], side: int) -> None:
    if nodes[0].output[0] == "inbox_detached":
        nodes = [node("Identity", "x", output="detached")]
    weights = {"few": zeros(1, 100, 4), "rois": zeros(2, 4), "at": np.zeros(2, np.int64)}
    sizes = found(detecting(nodes, outputs, **weights)).sizes
    assert sizes == {"batch": 1, "height": side, "width": side}


def test_a_picture_size_that_a_detector_notes_comes_first() -> None:
    model = detecting(maps([8, 16]), BARE)
    helper.set_model_props(model, {"imgsz": "[320, 480]"})
    assert found(model).sizes == {"batch": 1, "height": 320, "width": 480}


@pytest.mark.parametrize(("grid", "sizes"), [([4, 6], (64, 96)), ([400, 600], (224, 224))])
def test_a_picture_has_the_patches_of_a_grid_that_is_resized_to_it(grid: list[int], sizes: tuple[int, int]) -> None:
    """As of a detector whose positions are interpolated; a map of the picture itself tells nothing."""
    nodes = [
        node("Conv", "x", "w", output="map", strides=[16, 16]),
        node("Shape", "map", output="to"),
        node("Reshape", "positions", "as_grid", output="grid"),
        node("Resize", "grid", "", "", "to", output="places"),
        node("Resize", "map", "", "", "to", output="same"),
        node("Add", "same", "places"),
    ]
    weights = {
        "w": zeros(8, 3, 16, 16),
        "positions": zeros(1, grid[0] * grid[1], 8),
        "as_grid": np.array([1, 8, *grid]),
    }
    found_sizes = found(built(nodes, [making.port("x", PICTURE)], weights)).sizes
    assert (found_sizes["height"], found_sizes["width"]) == sizes


SIDES = {"decoder": "past", "encoder": "enc"}


def cross_attending() -> onnx.ModelProto:
    """One step of a decoder whose tokens are one, behind its own past and what an encoder gave, which is left alone."""
    ports = [
        making.port("encoder_attention_mask", ["batch", "enc"], INT64),
        making.port("input_ids", ["batch", 1], INT64),
    ]
    ports += [making.port(f"past.{side}.key", ["batch", 4, length, 8]) for side, length in SIDES.items()]
    nodes = [
        node("Gather", "table", "input_ids", output="rows"),
        node("Reshape", "rows", "heads", output="split"),
        node("Transpose", "split", output="keys", perm=[0, 2, 1, 3]),
        node("Concat", "past.decoder.key", "keys", output="present", axis=-2),
        node("Concat", "past.encoder.key", output="given", axis=-2),
        node("Transpose", "given", output="turned", perm=[0, 1, 3, 2]),
        node("MatMul", "keys", "turned", output="scores"),
        node("Cast", "encoder_attention_mask", output="cast", to=FLOAT),
        node("Add", "scores", "cast"),
    ]
    outputs = [making.port("y", None), making.port("present", None)]
    return built(nodes, ports, {"table": zeros(99, 32), "heads": np.array([0, 0, 4, 8])}, outputs=outputs)


def test_what_an_encoder_gave_has_its_own_length_and_one_token_is_no_prompt() -> None:
    one = found(cross_attending())
    assert (one.sizes, one.prompt, one.problem) == ({"batch": 1, "enc": 64, "past": 256}, {}, "")


def boxed(*, columns: int = 4, differ: bool = True) -> onnx.ModelProto:
    """Left and right sides, and where they `differ` the width, each looked up."""
    nodes = [node("Gather", "bbox", str(at), output=f"at{at}", axis=2) for at in (0, 2)]
    nodes += [
        node("Sub", "at2", "at0" if differ else "2", output="width"),
        node("Clip", "width", "0", "top", output="in"),
    ]
    nodes += [node("Gather", "table", "in", output="wide"), node("Gather", "table", "at0", output="left")]
    nodes += [node("Add", "wide", "left")]
    weights = {"table": zeros(1024, 8), "0": np.array(0), "2": np.array(2), "top": np.array(1023)}
    return built(nodes, [making.port("bbox", ["batch", "seq", columns], INT64)], weights)


def test_boxes_end_behind_where_they_begin() -> None:
    model = boxed()
    assert fills_of(model) == {"bbox": "boxes:1000"}
    made = inputs.make_seeded_inputs(model, signature.read_signature(model), chosen={"batch": 2, "seq": 500}, seed=0)[
        "bbox"
    ]
    assert (made[..., :2] <= made[..., 2:]).all()
    assert (made.min() >= 0, 900 < made.max() <= 1000, made.dtype) == (True, True, np.int64)


@pytest.mark.parametrize("model", [boxed(columns=5), boxed(differ=False)])
def test_what_is_no_box_is_below_its_table(model: onnx.ModelProto) -> None:
    assert fills_of(model) == {"bbox": "0..1023"}


def test_boxes_of_another_shape_are_refused() -> None:
    model = boxed(columns=5)
    with pytest.raises(Problem, match="four numbers each"):
        inputs.make_seeded_inputs(
            model, signature.read_signature(model), chosen={"batch": 1, "seq": 2}, seed=0, fills={"bbox": "boxes:9"}
        )


def prompted(*, labels: Any = (-1.0, 0.0, 1.0), kind: int = FLOAT, points: int = 2) -> onnx.ModelProto:
    """Points in a picture of 1,024 with a label each, and what is found brought to the size of a picture."""
    ports = [making.port("coords", [1, "points", points]), making.port("labels", [1, "points"], kind)]
    ports += [making.port("size", [2])]
    nodes = [
        node("Add", "coords", "half", output="middle"),
        node("Div", "middle", "side", output="share"),
        node("Mul", "share", "two", output="twice"),
        node("Sub", "twice", "one", output="signed"),
        node("Cast", "size", output="whole", to=INT64),
        node("Concat", "front", "whole", output="sizes", axis=0),
        node("Resize", "low", "", "", "sizes", output="masks"),
    ]
    for at in range(len(labels)):
        nodes += [
            node("Equal", "labels", f"label{at}", output=f"is{at}"),
            node("Cast", f"is{at}", output=f"as{at}", to=FLOAT),
        ]
    nodes += [
        node("Sum", *(f"as{at}" for at in range(len(labels))), output="sum"),
        node("ReduceMax", "sum", output="top"),
    ]
    nodes += [node("Mul", "signed", "top")]
    numbers = {"half": 0.5, "side": 1024.0, "two": 2.0, "one": 1.0}
    weights: dict[str, Any] = {name: np.float32(number) for name, number in numbers.items()}
    whole = np.float32 if kind == FLOAT else np.int64
    weights |= {f"label{at}": whole(label) for at, label in enumerate(labels)}
    weights |= {"front": np.array([1, 1]), "low": zeros(1, 1, 4, 4)}
    return built(nodes, ports, weights, outputs=[making.port("y", None), making.port("masks", None)])


@pytest.mark.parametrize("kind", [FLOAT, INT64])
def test_points_have_labels_lie_in_the_picture_and_are_few(kind: int) -> None:
    model = prompted(kind=kind)
    one = found(model)
    assert one.inputs == {"coords": "0..1023", "labels": "of:0|1", "size": "640"}
    assert (one.problem, one.sizes) == ("", {"points": 2})
    made = inputs.make_seeded_inputs(model, signature.read_signature(model), chosen={"points": 64}, seed=0)
    assert set(made["labels"].reshape(-1).tolist()) == {0, 1}
    assert 0 <= made["coords"].min() < 50 < 900 < made["coords"].max() <= 1023


def test_points_of_three_numbers_are_a_cloud() -> None:
    assert found(prompted(points=3)).sizes == {"points": 64}


@pytest.mark.parametrize(
    ("labels", "text"),
    [((1.0, 2.0, 7.0), "of:1|2|7"), ((2.0,), "normal"), ((0.5, 2.0), "normal"), ((np.nan, np.inf), "normal")],
)
def test_codes_are_what_an_input_is_compared_with(labels: Any, text: str) -> None:
    assert fills_of(prompted(labels=labels))["labels"] == text


def scaled(*steps: tuple[str, float]) -> onnx.ModelProto:
    nodes = [node(op, "x" if at == 0 else f"t{at - 1}", f"by{at}", output=f"t{at}") for at, (op, _) in enumerate(steps)]
    weights = {f"by{at}": np.float32(by) for at, (_, by) in enumerate(steps)}
    return built([*nodes, node("Relu", nodes[-1].output[0])], [making.port("x", PICTURE)], weights)


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([("Div", 255.0)], "0..255"),
        ([("Mul", 1 / 255)], "0..255"),
        ([("Div", 255.0), ("Sub", 0.45), ("Div", 0.225)], "0..255"),
        ([("Sub", 127.5), ("Div", 127.5)], "0..255"),
        ([("Div", 8.0)], "normal"),
        ([("Div", 1e30)], "normal"),
        ([("Div", 1e38), ("Div", 1e38), ("Div", 1e38), ("Div", 1e38), ("Div", 1e38), ("Div", 1e38), ("Div", 1e38),
          ("Div", 1e38), ("Div", 1e38), ("Div", 1e38)], "normal"),
        ([("Div", -255.0)], "normal"),
        ([("Div", 0.0)], "normal"),
        ([("Add", 3.0)], "normal"),
    ],
)  # fmt: skip
def test_numbers_that_are_scaled_down_first_are_as_large_as_what_they_are_scaled_from(
    steps: list[tuple[str, float]], text: str
) -> None:
    assert fills_of(scaled(*steps)) == {"x": text}


@pytest.mark.parametrize(
    ("nodes", "dims", "kind", "text"),
    [
        ([node("Resize", "low", "", "", "n")], [4], INT64, "3"),
        ([node("Slice", "low", "zero", "n", "zero")], [1], INT64, "3"),
        ([node("Cast", "n", output="m", to=INT64), node("Expand", "low", "m")], [4], FLOAT, "3"),
        ([node("Cast", "n", output="m", to=INT64), node("Expand", "low", "m")], [4], TensorProto.STRING, "words"),
        ([node("Cast", "n", output="m", to=INT64), node("Expand", "low", "m")], [4], TensorProto.BOOL, "0..1"),
    ],
)
def test_numbers_that_become_sizes_are_sizes(nodes: list[Any], dims: list[int], kind: int, text: str) -> None:
    model = built(nodes, [making.port("n", dims, kind)], {"low": zeros(1, 1, 4, 4), "zero": np.array([0])})
    assert fills_of(model) == {"n": text}


def test_a_table_outranks_a_size() -> None:
    nodes = [node("Gather", "table", "n", output="z"), node("Expand", "one", "n")]
    model = built(nodes, [making.port("n", [1], INT64)], {"table": zeros(9, 2), "one": zeros(1)})
    assert bounds.find_upper_bounds(model, ["n"], shapes={}) == {"n": 9}
