"""What a model is fed where nobody says: tried out until it runs."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from farm.rules.runtimes.models import ModelFacts
from farm.workshop import orders
from farm.workshop.child import feed, size_candidates, trials
from farm.workshop.inspection import Feed
from tests.unit.workshop import making

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def chosen(model: onnx.ModelProto, tmp_path: Path) -> Feed:
    folder, out = making.save(model, tmp_path / "bundle"), tmp_path / "out"
    out.mkdir(exist_ok=True)
    answer = feed.choose_feed({"folder": str(folder), "main": "model.onnx", "out": str(out)})
    assert "answer" in answer, answer
    return Feed.model_validate(answer["answer"])


def fed(model: onnx.ModelProto, tmp_path: Path) -> dict[str, str]:
    return chosen(model, tmp_path).inputs


def one(op: str, inputs: list[str], ports: list[Any], *, weights: Any = (), **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(op, inputs, ["y"], **attributes)
    return making.model([node], ports, [making.port("y", None)], weights=weights)


def padded(amount: int) -> onnx.ModelProto:
    """A reflecting Pad, which takes nothing shorter than what it mirrors."""
    weights = [making.weight("pads", np.array([0, amount, 0, amount]))]
    return one("Pad", ["x", "pads"], [making.port("x", [1, "n"])], weights=weights, mode="reflect")


def reshaped(size: int) -> onnx.ModelProto:
    """Only one size of `n` fits."""
    weights = [making.weight("shape", np.array([1, size]))]
    return one("Reshape", ["x", "shape"], [making.port("x", [1, "n"])], weights=weights)


def by_rate() -> onnx.ModelProto:
    """Asks for a sampling rate, and takes frames of 512 at 16,000 alone."""
    shapes = {name: making.weight(name, np.array([1, size])) for name, size in (("many", 512), ("few", 7777))}
    branches = {
        f"{kind}_branch": helper.make_graph(
            [helper.make_node("Reshape", ["input", name], [f"{kind}_y"])], kind, [], [making.port(f"{kind}_y", None)]
        )
        for kind, name in (("then", "many"), ("else", "few"))
    }
    nodes = [helper.make_node("Equal", ["sr", "rate"], ["is"]), helper.make_node("If", ["is"], ["y"], **branches)]
    ports = [making.port("input", [1, "sequence"]), making.port("sr", [], INT64)]
    weights = [making.weight("rate", np.array(16000)), *shapes.values()]
    return making.model(nodes, ports, [making.port("y", None)], weights=weights)


def recurrent() -> onnx.ModelProto:
    size = 4
    weights = [
        making.weight("w", np.ones((1, 4 * size, 3), np.float32)),
        making.weight("r", np.ones((1, 4 * size, size), np.float32)),
    ]
    node = helper.make_node("LSTM", ["x", "w", "r", "", "", "begin", "cells"], ["y"], hidden_size=size)
    ports = [making.port("x", ["time", "batch", 3])]
    ports += [making.port(name, [1, "batch", size]) for name in ("begin", "cells")]
    return making.model([node], ports, [making.port("y", None)], weights=weights)


def counted() -> onnx.ModelProto:
    """As many numbers as the first of `ids` says: its work follows the seed."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("ReduceSum", ["rows"], ["many"], keepdims=0),
        helper.make_node("Range", ["zero", "many", "one"], ["y"]),
    ]
    weights = [
        making.weight("table", np.arange(5000)),
        making.weight("zero", np.array(0)),
        making.weight("one", np.array(1)),
    ]
    return making.model(nodes, [making.port("ids", [1, 2], INT64)], [making.port("y", None, INT64)], weights=weights)


def endless() -> onnx.ModelProto:
    """A loop that nothing ends."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Add", ["state", "state"], ["next"])],
        "body",
        [making.port("i", [], INT64), making.port("go", [], TensorProto.BOOL), making.port("state", None)],
        [making.port("go_on", [], TensorProto.BOOL), making.port("next", None)],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "wide"], ["first"]),
        helper.make_node("Loop", ["", "yes", "first"], ["y"], body=body),
    ]
    weights = [making.weight("yes", np.array(True)), making.weight("wide", np.zeros((64, 64), np.float32))]
    return making.model(nodes, [making.port("x", ["rows", 64])], [making.port("y", None)], weights=weights)


def test_a_size_that_a_pad_is_too_large_for_is_not_taken(tmp_path: Path) -> None:
    found = chosen(padded(96), tmp_path)
    assert found.sizes["n"] > 96
    assert (found.problem, found.tries) == ("", 3)


@pytest.mark.parametrize("size", [1, 8, 48, 96, 576, 1024, 7777])
def test_the_one_size_that_fits_is_found(size: int, tmp_path: Path) -> None:
    found = chosen(reshaped(size), tmp_path)
    assert (found.sizes, found.tries) == ({"n": size}, 1)


def test_a_sampling_rate_is_the_one_that_the_model_asks_for(tmp_path: Path) -> None:
    found = chosen(by_rate(), tmp_path)
    assert found.inputs["sr"] == "16000"
    assert found.sizes == {"sequence": 512}


def test_states_start_at_zeros_and_count_one_sequence(tmp_path: Path) -> None:
    found = chosen(recurrent(), tmp_path)
    assert (found.inputs["begin"], found.inputs["cells"], found.inputs["x"]) == ("0", "0", "normal")
    assert found.sizes["batch"] == 1


@pytest.mark.parametrize(
    ("name", "kind", "dims", "text"),
    [
        ("attention_mask", INT64, ["batch", "seq"], "1"),
        ("position_ids", INT64, ["batch", "seq"], "positions"),
        ("x_lengths", INT64, ["batch"], "size:frames"),
        ("speed", FLOAT, [1], "1"),
        ("length_scale", FLOAT, [], "1"),
        ("h0", FLOAT, [1, "batch", 8], "0"),
        ("past_key_values.0.key", FLOAT, ["batch", 2, "past_sequence_length", 8], "0"),
        ("pixels", FLOAT, ["batch", 3, 8, 8], "normal"),
        ("threshold", FLOAT, ["batch", 3], "normal"),
    ],
)
def test_an_input_holds_what_its_meaning_asks(name: str, kind: int, dims: list[Any], text: str, tmp_path: Path) -> None:
    nodes = [helper.make_node("Identity", [name], ["y"]), helper.make_node("Identity", ["x"], ["z"])]
    ports = [making.port("x", ["batch", "frames"]), making.port(name, dims, kind)]
    model = making.model(nodes, ports, [making.port("y", None, kind), making.port("z", None)])
    assert fed(model, tmp_path)[name] == text


def test_nothing_is_divided_by_zero(tmp_path: Path) -> None:
    ports = [making.port("n", [4], INT64), making.port("by", [4], INT64)]
    node = helper.make_node("Div", ["n", "by"], ["y"])
    model = making.model([node], ports, [making.port("y", None, INT64)])
    assert fed(model, tmp_path) == {"n": "0..1", "by": "1"}


def test_the_picture_that_a_model_was_made_for_is_tried_first(tmp_path: Path) -> None:
    model = one("Relu", ["images"], [making.port("images", ["batch", 3, "height", "width"])])
    helper.set_model_props(model, {"imgsz": "[320, 480]"})
    assert chosen(model, tmp_path).sizes == {"batch": 1, "height": 320, "width": 480}


@pytest.mark.parametrize("noted", ["[[[", '["a", 1]', "[0, -5]", "[1e9, 2]", '{"a": 1}', "9" * 5000])
def test_a_note_that_is_no_size_is_left_alone(noted: str, tmp_path: Path) -> None:
    model = one("Relu", ["images"], [making.port("images", ["batch", 3, "height", "width"])])
    helper.set_model_props(model, {"imgsz": noted})
    assert chosen(model, tmp_path).sizes == {"batch": 1, "height": 224, "width": 224}


def test_dimensions_that_exporters_could_not_name_are_different_ones(tmp_path: Path) -> None:
    weights = [making.weight("shape", np.array([1, 3, 48 * 64]))]
    model = one("Relu", ["x"], [making.port("x", ["?", 3, "?", "?"])], weights=weights)
    assert chosen(model, tmp_path).sizes == {"batch": 1, "x.2": 224, "x.3": 224}


def test_a_dimension_that_is_the_sum_of_two_is_their_sum(tmp_path: Path) -> None:
    total = "past_sequence_length + sequence_length"
    ports = [making.port("a", [1, "past_sequence_length"]), making.port("b", [1, "sequence_length"])]
    ports.append(making.port("attention_mask", [1, total]))
    nodes = [helper.make_node("Concat", ["a", "b"], ["both"], axis=1)]
    nodes.append(helper.make_node("Add", ["both", "attention_mask"], ["y"]))
    sizes = chosen(making.model(nodes, ports, [making.port("y", None)]), tmp_path).sizes
    assert sizes[total] == sizes["past_sequence_length"] + sizes["sequence_length"]


def test_work_that_follows_the_seed_is_the_same_in_every_run(tmp_path: Path) -> None:
    assert fed(counted(), tmp_path) == {"ids": "0..4999@0"}


def test_a_model_that_runs_with_nothing_says_what_was_tried_and_what_to_give(tmp_path: Path) -> None:
    found = chosen(padded(5000), tmp_path)
    assert found.tries <= size_candidates.MAX_TRIES
    for words in ("ran in none of 16 tries", "x float32 (normal)", "n 1 to 1024", "--shape", "--input", "--inputs"):
        assert words in found.problem
    assert ModelFacts(bundle_sha256="a" * 64, main_sha256="b" * 64, inputs_problem=found.problem)


def test_the_profile_of_a_run_that_fails_is_deleted(tmp_path: Path) -> None:
    session = trials.load_session(making.save(making.linear(), tmp_path) / "model.onnx", profile=tmp_path / "profile")
    assert trials.count_output_bytes(session, [{"x": np.zeros((1, 5), np.float32)}]) == []
    assert list(tmp_path.glob("profile*")) == []


def test_an_endless_model_is_ended_and_nothing_is_said_against_its_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = trials.load_session(making.save(endless(), tmp_path) / "model.onnx")
    with pytest.raises(trials.TookTooLongError):
        trials.find_run_error(session, {"x": np.zeros((1, 64), np.float32)}, limit_s=0.3)
    monkeypatch.setattr(trials, "find_run_error", _never)
    found = chosen(endless(), tmp_path)
    assert (found.problem, found.tries) == ("", 1)


def _never(*_: object, **__: object) -> None:
    raise trials.TookTooLongError


def test_a_process_that_does_not_end_leaves_the_likeliest(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, out = making.save(padded(96), tmp_path / "bundle"), tmp_path / "out"
    out.mkdir()
    caplog.set_level("INFO")
    found = orders.choose_feed(folder, "model.onnx", out_dir=out, timeout_s=0.05)
    assert (found.sizes, found.problem) == ({"n": 64}, "")
    assert "was not tried out" in caplog.text


def test_sizes_are_tried_in_a_confined_child(tmp_path: Path) -> None:
    folder, out = making.save(counted(), tmp_path / "bundle"), tmp_path / "out"
    out.mkdir()
    assert orders.choose_feed(folder, "model.onnx", out_dir=out).inputs == {"ids": "0..4999@0"}


@pytest.mark.parametrize("inputs", [{"x": "rm -rf"}, {"x": "0..9" * 100}, {"x" * 2000: "1"}])
def test_a_text_that_makes_nothing_is_no_feed(inputs: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Feed.model_validate({"inputs": inputs})
