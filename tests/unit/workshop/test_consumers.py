"""Sizes that the graph proves: what consumes a dimension says how large it is."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from farm.workshop.child import consumers, feed, input_values, inputs, shapes, signature, size_candidates
from farm.workshop.sizes import fill_shape
from tests.unit.workshop import making


def built(nodes: list[Any], dims: list[Any], weights: dict[str, Any], **options: Any) -> onnx.ModelProto:
    stored = [making.weight(name, np.asarray(value)) for name, value in weights.items()]
    return making.model(nodes, [making.port("x", dims)], [making.port("y", None)], weights=stored, **options)


def node(op: str, *inputs: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), [output], **attributes)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def required(model: onnx.ModelProto) -> consumers.Requirements:
    return consumers.find_required_sizes(model, signature.read_signature(model))


def sizes(model: onnx.ModelProto) -> dict[str, list[int]]:
    return {dim: list(wanted) for dim, wanted in required(model).sizes.items()}


SPLIT = [
    node("Shape", "x", output="dims"),
    node("Gather", "dims", "first", output="rows"),
    node("Concat", "rows", "heads", output="shape", axis=0),
    node("Reshape", "x", "shape"),
]
NUMBERS = {"domain": "ai.onnx.ml"}


@pytest.mark.parametrize(
    ("nodes", "dims", "weights", "wanted"),
    [
        ([node("Conv", "x", "w")], ["b", "c", "h", "w_"], {"w": zeros(8, 3, 3, 3)}, {"c": [3]}),
        ([node("Conv", "x", "w", group=4)], ["b", "c", "h", "w_"], {"w": zeros(8, 3, 3, 3)}, {"c": [12]}),
        ([node("ConvTranspose", "x", "w")], ["b", "c", "t"], {"w": zeros(5, 3, 3)}, {"c": [5]}),
        ([node("MatMul", "x", "w")], ["b", "s", "c"], {"w": zeros(24, 8)}, {"c": [24]}),
        ([node("MatMul", "x", "w")], ["b", "c"], {"w": zeros(24)}, {"c": [24]}),
        ([node("Gemm", "x", "w")], ["b", "c"], {"w": zeros(24, 8)}, {"c": [24]}),
        ([node("Gemm", "x", "w", transB=1)], ["b", "c"], {"w": zeros(8, 24)}, {"c": [24]}),
        (
            [node("LSTM", "x", "w", "r", hidden_size=2)],
            ["s", "batch", "c"],
            {"w": zeros(1, 8, 9), "r": zeros(1, 8, 2)},
            {"c": [9]},
        ),
        ([node("Sub", "x", "mean")], ["b", "c"], {"mean": zeros(1, 12)}, {"c": [12]}),
        ([node("Add", "x", "one")], ["b", "c"], {"one": zeros(1)}, {}),
        ([node("Concat", "x", "w", axis=1)], ["b", "s", "c"], {"w": zeros(1, 4, 7)}, {"c": [7]}),
        (SPLIT, ["b", "c"], {"first": np.array([0]), "heads": np.array([8, 24])}, {"c": [192]}),
        ([node("Flatten", "x", output="f"), node("Gemm", "f", "w")], ["b", "c", "d"], {"w": zeros(24, 8)}, {}),
        ([node("Transpose", "x", output="t", perm=[0, 2, 1]), node("Conv", "t", "w")], ["b", "s", "c"],
         {"w": zeros(8, 3, 3)}, {"c": [3]}),
        ([node("DequantizeLinear", "q", "s", output="w"), node("MatMul", "x", "w")], ["b", "c"],
         {"q": np.zeros((6, 2), np.int8), "s": np.float32(1)}, {"c": [6]}),
        ([node("MatMul", "x", "w", output="a"), node("MatMul", "x", "v")], ["b", "c"],
         {"w": zeros(48, 8), "v": zeros(32, 8)}, {"c": [48, 32]}),
        ([node("Scaler", "x", offset=[0.0] * 5, scale=[1.0] * 5, **NUMBERS)], ["b", "c"], {}, {"c": [5]}),
    ],
)  # fmt: skip
def test_a_size_is_what_its_consumer_was_made_for(
    nodes: list[Any], dims: list[Any], weights: dict[str, Any], wanted: dict[str, list[int]]
) -> None:
    assert sizes(built(nodes, dims, weights, opsets={"": 17, "ai.onnx.ml": 3})) == wanted


def test_trees_have_at_least_the_columns_that_they_ask_for() -> None:
    trees = node("TreeEnsembleRegressor", "x", nodes_featureids=[3, 9, 0], **NUMBERS)
    found = required(built([trees], ["b", "c"], {}, opsets={"": 17, "ai.onnx.ml": 3}))
    assert (found.sizes, found.list_sizes("c")) == ({}, [10])


def test_what_is_picked_by_number_is_there() -> None:
    assert required(built([node("Gather", "x", "at", axis=1)], ["b", "c"], {"at": np.array([4, 6])})).list_sizes(
        "c"
    ) == [7]


def test_dimensions_that_are_multiplied_have_one_size() -> None:
    ports = [making.port("x", ["b", "c"]), making.port("z", ["d", 5])]
    nodes = [node("MatMul", "x", "z", output="p"), node("MatMul", "x", "w")]
    weights = [making.weight("w", zeros(11, 2))]
    assert sizes(making.model(nodes, ports, [making.port("y", None)], weights=weights)) == {"c": [11], "d": [11]}


def test_a_large_model_is_inferred_without_its_weights() -> None:
    light = shapes.copy_without_weights(built([node("MatMul", "x", "w")], ["b", "c"], {"w": zeros(512, 512)}))
    assert light.ByteSize() < 1000
    assert shapes.list_shapes(light)["y"] == ["b", 512]


def test_a_picture_has_as_many_patches_as_there_are_positions() -> None:
    """A vision transformer: 4×4 patches of 16 and a token of its own are its 17 positions."""
    nodes = [
        node("Conv", "x", "w", output="grid", strides=[16, 16]),
        node("Reshape", "grid", "flat", output="rows"),
        node("Transpose", "rows", output="patches", perm=[0, 2, 1]),
        node("Concat", "token", "patches", output="all", axis=1),
        node("Add", "all", "positions"),
    ]
    weights = {
        **{"w": zeros(8, 3, 16, 16), "flat": np.array([1, 8, -1])},
        **{"token": zeros(1, 1, 8), "positions": zeros(1, 17, 8)},
    }
    model = built(nodes, ["batch", "num_channels", "height", "width"], weights)
    tried = feed.find_feed(model, model.SerializeToString())
    assert (tried.sizes, tried.tries) == ({"batch": 1, "num_channels": 3, "height": 64, "width": 64}, 1)


def test_sound_is_as_long_as_its_positions() -> None:
    nodes = [
        node("Conv", "x", "w", output="half", strides=[2], pads=[1, 1]),
        node("Transpose", "half", output="rows", perm=[0, 2, 1]),
        node("Add", "rows", "positions"),
    ]
    model = built(nodes, ["batch", "bins", "frames"], {"w": zeros(8, 80, 3), "positions": zeros(1, 150, 8)})
    assert feed.find_feed(model, model.SerializeToString()).sizes == {"batch": 1, "bins": 80, "frames": 300}


def test_a_size_that_two_consumers_disagree_about_is_asked_for_by_name() -> None:
    nodes = [node("MatMul", "x", "w", output="a"), node("MatMul", "x", "v")]
    model = built(nodes, ["batch", "width"], {"w": zeros(48, 8), "v": zeros(32, 8)})
    found = feed.find_feed(model, model.SerializeToString())
    assert "--shape width=SIZE" in found.problem
    assert {"48 for MatMul a", "32 for MatMul y"} <= set(
        found.problem.partition("to be ")[2].partition(":")[0].split(" and ")
    )


def test_a_sequence_of_which_the_first_is_picked_is_as_long_as_its_table() -> None:
    nodes = [
        node("Gather", "table", "x", output="rows"),
        node("Shape", "x", output="dims"),
        node("Gather", "dims", "last", output="length"),
        node("Slice", "counted", "start", "length", "last", output="places"),
        node("Gather", "positions", "places", output="of_places"),
        node("Gather", "x", "first", output="begins", axis=1),
        node("Add", "rows", "of_places"),
    ]
    weights = {
        **{"table": zeros(9, 4), "positions": zeros(16, 4), "counted": np.arange(16)[None]},
        **{"first": np.array(0), "start": np.array([0]), "last": np.array([1])},
    }
    model = built(nodes, ["batch", "sequence"], weights)
    model.graph.input[0].CopyFrom(making.port("x", ["batch", "sequence"], TensorProto.INT64))
    assert feed.find_feed(model, model.SerializeToString()).sizes == {"batch": 1, "sequence": 16}


@pytest.mark.parametrize(
    ("name", "dims", "frames"),
    [
        ("input_features", ["batch", "frames", 80], 1000),
        ("audio_signal", ["batch", 80, "frames"], 1000),
        ("mel", ["batch", 128, "frames"], 1000),
        ("table", ["batch", 80, "frames"], 64),
        ("input_features", ["batch", "frames", 7], 64),
        ("input_features", ["batch", "frames"], 64),
    ],
)
def test_a_spectrum_of_sound_is_ten_seconds_long(name: str, dims: list[Any], frames: int) -> None:
    model = built([node("Relu", name)], [], {})
    model.graph.input[0].CopyFrom(making.port(name, dims))
    assert feed.find_feed(model, model.SerializeToString()).sizes == {"batch": 1, "frames": frames}


def test_a_bias_is_no_table_of_positions() -> None:
    nodes = [node("Gather", "table", "x", output="rows"), node("Add", "rows", "bias")]
    model = built(nodes, ["batch", "source_length"], {"table": zeros(50, 8), "bias": zeros(1, 8)})
    model.graph.input[0].CopyFrom(making.port("x", ["batch", "source_length"], TensorProto.INT64))
    assert feed.find_feed(model, model.SerializeToString()).sizes == {"batch": 1, "source_length": 64}


def test_a_size_that_a_reshape_was_exported_with_is_tried_next() -> None:
    """Its shape is computed, so that inference cannot read it; ONNX Runtime says it."""
    nodes = [
        node("Shape", "x", output="dims"),
        node("Gather", "dims", "first", output="batch"),
        node("Mul", "batch", "two", output="rows"),
        node("Concat", "tokens", "rows", "width", output="shape", axis=0),
        node("Reshape", "x", "shape"),
    ]
    weights = {"first": [0], "two": [2], "tokens": [77], "width": [4]}
    model = built(nodes, ["batch", "sequence", 8], {name: np.array(value) for name, value in weights.items()})
    found = feed.find_feed(model, model.SerializeToString())
    assert (found.sizes, found.tries) == ({"batch": 1, "sequence": 77}, 2)


@pytest.mark.parametrize(
    ("complaint", "sizes"),
    [
        ("Input shape:{64,1,32}, requested shape:{77,4,8}", [77]),
        ("Input shape:{64,3}, requested shape:{-1,4}", []),
        ("Input shape:{1,64,8}, requested shape:{77,-1,4}", [77]),
        ("Input shape:{64,0}, requested shape:{7,-1}", []),
        ("Input shape:{64,3}, requested shape:{0,4}", []),
        ("Attempting to broadcast an axis by a dimension other than 1. 64 by 50", [50]),
        ("Attempting to broadcast an axis by a dimension other than 1. 50 by 64", [50]),
        ("Input shape:{64}, requested shape:{99999999}", []),
        ("no kernel image is available", []),
    ],
)
def test_what_onnx_runtime_complains_of_says_a_size(complaint: str, sizes: list[int]) -> None:
    assert [way["s"] for way in size_candidates.suggest_sizes_from_error(complaint, {"b": 1, "s": 64})] == sizes


@pytest.mark.parametrize(
    ("name", "channels", "side"),
    [("sample", 4, 64), ("latent_sample", 16, 64), ("sample", 3, 224), ("pixels", 4, 224), ("resample", 4, 224)],
)
def test_latents_are_smaller_than_pictures(name: str, channels: int, side: int) -> None:
    model = built([node("Relu", name)], [], {})
    model.graph.input[0].CopyFrom(making.port(name, ["batch", channels, "height", "width"]))
    found = feed.find_feed(model, model.SerializeToString())
    assert found.sizes == {"batch": 1, "height": side, "width": side}


def decoder(
    *, past: str = "past", tokens: str = "new", mask: str = "all", named: str = "past_key_values.0.key"
) -> onnx.ModelProto:
    """One layer that puts its keys behind the past ones, as exporters write it."""
    ports = [
        making.port("input_ids", ["batch", tokens], TensorProto.INT64),
        making.port("attention_mask", ["batch", mask], TensorProto.INT64),
        making.port("position_ids", ["batch", tokens], TensorProto.INT64),
        making.port(named, ["batch", 4, past, 8]),
    ]
    nodes = [
        node("Gather", "table", "input_ids", output="rows"),
        node("Gather", "places", "position_ids", output="where"),
        node("Add", "rows", "where", output="sum"),
        node("Reshape", "sum", "heads", output="split"),
        node("Transpose", "split", output="keys", perm=[0, 2, 1, 3]),
        node("Concat", named, "keys", output="present.0.key", axis=2),
        node("Cast", "attention_mask", output="y", to=TensorProto.FLOAT),
    ]
    weights = {"table": zeros(100, 32), "places": zeros(300, 32), "heads": np.array([0, 0, 4, 8])}
    stored = [making.weight(name, np.asarray(value)) for name, value in weights.items()]
    return making.model(nodes, ports, [making.port("y", None), making.port("present.0.key", None)], weights=stored)


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"past": "past_sequence_length", "tokens": "sequence_length", "mask": "past_sequence_length + sequence_length"},
        {"past": "", "tokens": "", "mask": ""},
        {"past": "k", "tokens": "s", "mask": "t", "named": "cache_k"},
    ],
)
def test_a_decoder_makes_one_token_behind_a_past(names: dict[str, str]) -> None:
    model = decoder(**names)
    found = feed.find_feed(model, model.SerializeToString())
    facts = signature.read_signature(model)
    shapes = {port["name"]: fill_shape(port["shape"], found.sizes) for port in facts["inputs"]}
    assert (found.tries, found.problem) == (1, "")
    assert list(shapes.values()) == [[1, 1], [1, 257], [1, 1], [1, 4, 256, 8]]
    made = inputs.make_seeded_inputs(model, facts, chosen=found.sizes, seed=0, fills=found.inputs)
    assert made["position_ids"].tolist() == [[256]]
    assert made["attention_mask"].all()
    prompt = {port["name"]: fill_shape(port["shape"], found.prompt) for port in facts["inputs"]}
    assert list(prompt.values()) == [[1, 64], [1, 64], [1, 64], [1, 4, 0, 8]]


def test_a_past_ends_where_the_positions_do() -> None:
    model = decoder()
    table = next(tensor for tensor in model.graph.initializer if tensor.name == "places")
    table.CopyFrom(making.weight("places", zeros(128, 32)))
    assert feed.find_feed(model, model.SerializeToString()).sizes["past"] == 127


def test_a_prompt_that_a_decoder_does_not_take_is_none() -> None:
    model = decoder()
    table = next(tensor for tensor in model.graph.initializer if tensor.name == "places")
    table.CopyFrom(making.weight("places", zeros(63, 32)))
    found = feed.find_feed(model, model.SerializeToString())
    assert (found.sizes["past"], found.prompt) == (62, {})


def test_recorded_sound_is_a_second_long() -> None:
    model = built([node("Conv", "x", "w", strides=[5])], ["batch", 1, "n"], {"w": zeros(8, 1, 10)})
    assert feed.find_feed(model, model.SerializeToString()).sizes["n"] == 16_000


@pytest.mark.parametrize(
    ("after", "text"),
    [(["batch", "length", 48], "0"), (["batch", 4, 8, 8], "normal"), (["batch", "length", 32], "normal")],
)
def test_what_no_output_can_follow_is_no_state(after: list[Any], text: str) -> None:
    """`encoder_hidden_states` is called like a state, and is what an encoder gave."""
    ports = [making.port("sample", ["batch", 4]), making.port("encoder_hidden_states", ["batch", "length", 48])]
    nodes = [node("Relu", "sample", output="q"), node("MatMul", "encoder_hidden_states", "w", output="rows")]
    nodes += [node("Reshape", "rows", "shape")]
    weights = [making.weight("w", zeros(48, 48)), making.weight("shape", np.array([1, -1, 4]))]
    model = making.model(
        nodes, ports, [making.port("q", None, TensorProto.INT64), making.port("y", after)], weights=weights
    )
    facts = signature.read_signature(model)
    assert input_values.choose_fills(model, facts, required(model))["encoder_hidden_states"] == text


@pytest.mark.parametrize(("rows", "text"), [(700, "0..699"), (500, "0..1")])
def test_indices_that_count_from_the_end_below_zero_are_bounded_by_their_table(rows: int, text: str) -> None:
    """As Keras exports an embedding; another number than the rows is some other arithmetic."""
    nodes = [
        node("Less", "x", "zero", output="is_below"),
        node("Add", "x", "rows", output="from_end"),
        node("Where", "is_below", "from_end", "x", output="at"),
        node("Gather", "table", "at"),
    ]
    weights = {"zero": np.array(0), "rows": np.array(rows), "table": zeros(700, 4)}
    model = built(nodes, ["batch", "length"], weights)
    model.graph.input[0].CopyFrom(making.port("x", ["batch", "length"], TensorProto.INT64))
    assert input_values.choose_fills(model, signature.read_signature(model), required(model)) == {"x": text}


def test_indices_into_what_another_input_has_become_stay_below_its_size() -> None:
    ports = [making.port("x", ["nodes", 4]), making.port("edges", [2, "many"], TensorProto.INT64)]
    nodes = [node("MatMul", "x", "w", output="h"), node("Gather", "h", "edges")]
    model = making.model(nodes, ports, [making.port("y", None)], weights=[making.weight("w", zeros(4, 4))])
    facts = signature.read_signature(model)
    texts = input_values.choose_fills(model, facts, required(model))
    made = inputs.make_seeded_inputs(model, facts, chosen={"nodes": 5, "many": 200}, seed=0, fills=texts)
    assert texts["edges"] == "below:nodes"
    assert (made["edges"].min(), made["edges"].max()) == (0, 4)


def test_a_pair_of_sizes_that_many_nodes_want_equal_is_one_pair() -> None:
    ports = [making.port("x", ["rows", "a"]), making.port("y", ["rows", "b"])]
    nodes = [node("Concat", "x", "y", output=f"z{number}", axis=0) for number in range(50)]
    assert len(required(making.model(nodes, ports, [making.port("z0", None)])).equal_dims) == 1
