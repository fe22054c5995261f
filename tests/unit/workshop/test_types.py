"""Inputs that are no plain numbers, and models that take none: shown by an inspection, and fed or refused."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from farm.workshop import arrays
from farm.workshop.child import feed, inputs, reference, signature
from farm.workshop.child.inspection import inspect
from farm.workshop.inspection import Feed, Inspection
from tests.unit.workshop import making

OPSETS = {"": 18, "ai.onnx.ml": 3, "com.microsoft": 1}


def built(nodes: list[Any], ports: list[Any], kind: int = TensorProto.INT64) -> onnx.ModelProto:
    return making.model(nodes, ports, [making.port("y", None, kind)], opsets=OPSETS)


def seen(model: onnx.ModelProto, tmp_path: Path) -> tuple[Inspection, Feed, arrays.Arrays]:
    """What an inspection shows, what is chosen, and the arrays that are made of it, with which the model ran."""
    folder, out = making.save(model, tmp_path / "bundle"), tmp_path / "out"
    out.mkdir()
    bundle = {"folder": str(folder), "main": "model.onnx"}
    found = Inspection.model_validate(inspect(bundle)["answer"])
    chosen = Feed.model_validate(feed.choose_feed({**bundle, "out": str(out)})["answer"])
    if chosen.problem:
        return found, chosen, {}
    path = out / "inputs.npz"
    order = {**bundle, "out": str(path), "batch": None, "shapes": chosen.sizes, "inputs": chosen.inputs, "seed": 0}
    assert "answer" in inputs.make_inputs(order)
    ran = reference.make_reference({**bundle, "inputs": str(path), "out": str(out / "reference.npz")})
    assert "answer" in ran, ran
    return found, chosen, arrays.read_npz(path)


def test_categories_are_those_of_the_models_own_table(tmp_path: Path) -> None:
    encode = helper.make_node(
        "LabelEncoder",
        ["flat"],
        ["y"],
        domain="ai.onnx.ml",
        keys_strings=["red", "b|ue", "green"],
        values_int64s=[1, 2, 3],
    )
    nodes = [helper.make_node("Identity", ["colour"], ["flat"]), encode]
    found, chosen, made = seen(built(nodes, [making.port("colour", ["n", 1], TensorProto.STRING)]), tmp_path)
    assert (found.inputs[0].dtype, chosen.inputs) == ("string", {"colour": "text:red|green"})
    assert set(made["colour"].flat) <= {"red", "green"}


def test_strings_that_are_split_are_words(tmp_path: Path) -> None:
    split = {"mark": 0, "mincharnum": 1, "pad_value": "#", "separators": [" "]}
    nodes = [
        helper.make_node("Tokenizer", ["text"], ["words"], domain="com.microsoft", **split),
        helper.make_node("LabelEncoder", ["words"], ["y"], domain="ai.onnx.ml", keys_strings=["fox", "dog"],
                         values_int64s=[1, 2]),
    ]  # fmt: skip
    _, chosen, made = seen(built(nodes, [making.port("text", ["n"], TensorProto.STRING)]), tmp_path)
    assert chosen.inputs == {"text": "words:fox|dog"}
    assert set(made["text"][0].split()) == {"fox", "dog"}


def test_strings_of_which_nothing_is_known_are_seeded_words(tmp_path: Path) -> None:
    model = built(
        [helper.make_node("Identity", ["x"], ["y"])], [making.port("x", [2], TensorProto.STRING)], TensorProto.STRING
    )
    _, chosen, made = seen(model, tmp_path)
    facts = signature.read_signature(model)
    again, other = (inputs.make_seeded_inputs(model, facts, chosen={}, seed=seed) for seed in (0, 1))
    assert chosen.inputs == {"x": "words"}
    assert (made["x"] == again["x"]).all()
    assert (made["x"] != other["x"]).any()


def test_bfloat16_is_numbers(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)]
    model = built(nodes, [making.port("x", ["n", 500], TensorProto.BFLOAT16)], TensorProto.FLOAT)
    found, chosen, made = seen(model, tmp_path)
    numbers = (made["x"].astype(np.uint32) << 16).view(np.float32)
    assert (found.inputs[0].dtype, chosen.inputs, made["x"].dtype) == ("bfloat16", {"x": "normal"}, np.uint16)
    assert 0.8 < numbers.std() < 1.2


def test_a_model_without_inputs_runs(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["w"], ["y"])
    w = making.weight("w", np.ones(2, np.float32))
    # listed as an input, as old exporters do, a weight is none
    made = making.model([node], [making.port("w", [2])], [making.port("y", [2])], weights=[w])
    found, chosen, given = seen(made, tmp_path)
    assert (found.inputs, found.batch, chosen.problem, given) == ((), None, "", {})


def test_an_optional_input_is_left_away(tmp_path: Path) -> None:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"]))
    nodes = [helper.make_node("OptionalHasElement", ["bias"], ["has"])]
    nodes.append(helper.make_node("Cast", ["has"], ["y"], to=TensorProto.INT64))
    found, _, made = seen(built(nodes, [helper.make_value_info("bias", kind), making.port("x", ["n", 2])]), tmp_path)
    assert [port.name for port in found.inputs] == list(made) == ["x"]


@pytest.mark.parametrize(
    ("port", "words"),
    [
        (helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None), ("sequence", "run_with_iobinding")),
        (making.port("x", ["n"], TensorProto.FLOAT8E4M3FN), ("float8", "ortvalue_from_numpy")),
    ],
)
def test_what_cannot_be_fed_is_shown_and_refused_by_the_call_that_misses(
    port: onnx.ValueInfoProto, words: tuple[str, ...], tmp_path: Path
) -> None:
    found, chosen, _ = seen(built([helper.make_node("Identity", ["x"], ["y"])], [port]), tmp_path)
    assert [port.name for port in found.inputs] == ["x"]
    assert all(word in chosen.problem for word in words)
