"""Inputs for a workload: seeded within what the model takes, or given and looked at."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from farm.contract.reasons import ReasonCode
from farm.workshop import arrays, orders
from farm.workshop.child import inputs as feeding
from tests.conftest import MODELS
from tests.unit.workshop import making


def made(model: onnx.ModelProto, tmp_path: Path, **order: Any) -> dict[str, np.ndarray]:
    answer = answered(model, tmp_path, **order)
    assert "answer" in answer, answer
    return arrays.read_npz(tmp_path / "inputs.npz")


def answered(model: onnx.ModelProto, tmp_path: Path, **order: Any) -> dict[str, Any]:
    folder = making.save(model, tmp_path / "bundle")
    payload = {"folder": str(folder), "main": "model.onnx", "out": str(tmp_path / "inputs.npz")}
    return feeding.make_inputs({**payload, "batch": None, "shapes": {}, "inputs": {}, "seed": 0, **order})


def given(model: onnx.ModelProto, tmp_path: Path, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
    folder = making.save(model, tmp_path / "bundle")
    path = arrays.write_npz(tmp_path / "given.npz", inputs)
    payload = {"folder": str(folder), "main": "model.onnx", "inputs": str(path), "out": str(tmp_path / "inputs.npz")}
    return feeding.accept_inputs(payload)


def gather(rows: int = 7) -> onnx.ModelProto:
    """`ids` [batch, seq] reshaped, cast and looked up in a table of `rows` rows."""
    nodes = [
        helper.make_node("Cast", ["ids"], ["wide"], to=TensorProto.INT64),
        helper.make_node("Unsqueeze", ["wide", "axes"], ["more"]),
        helper.make_node("Gather", ["table", "more"], ["y"]),
    ]
    weights = [making.weight("table", np.ones((rows, 3), np.float32)), making.weight("axes", np.array([0]))]
    ids = making.port("ids", ["batch", "seq"], TensorProto.INT32)
    return making.model(nodes, [ids], [making.port("y", None)], weights=weights)


def test_the_same_seed_makes_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    made(making.linear(), tmp_path, seed=3)
    first = (tmp_path / "inputs.npz").read_bytes()
    made(making.linear(), tmp_path, seed=3)
    assert (tmp_path / "inputs.npz").read_bytes() == first
    made(making.linear(), tmp_path, seed=4)
    assert (tmp_path / "inputs.npz").read_bytes() != first


def test_batch_and_named_dimensions_are_what_was_asked(tmp_path: Path) -> None:
    assert made(gather(), tmp_path, batch=5, shapes={"seq": 9})["ids"].shape == (5, 9)


def test_without_a_wish_the_batch_is_one_and_a_sequence_64(tmp_path: Path) -> None:
    answer = answered(gather(), tmp_path)["answer"]
    assert (answer["batch"], answer["sizes"]) == (1, {"batch": 1, "seq": 64})


def test_whole_numbers_stay_inside_the_table_that_they_index(tmp_path: Path) -> None:
    ids = made(gather(7), tmp_path, batch=64)["ids"]
    assert ids.dtype == np.int32
    assert (ids.min(), ids.max()) == (0, 6)


def test_whole_numbers_stay_below_the_depth_of_a_one_hot(tmp_path: Path) -> None:
    weights = [making.weight("depth", np.array(5)), making.weight("values", np.array([0, 1], np.float32))]
    node = helper.make_node("OneHot", ["ids", "depth", "values"], ["y"])
    model = making.model([node], [making.port("ids", ["batch", 200], TensorProto.INT64)], [making.port("y", None)],
                         weights=weights)  # fmt: skip
    assert made(model, tmp_path)["ids"].max() == 4


@pytest.mark.parametrize(
    ("kind", "dtype", "low", "high"),
    [
        (TensorProto.FLOAT, "float32", -6, 6), (TensorProto.FLOAT16, "float16", -6, 6),
        (TensorProto.DOUBLE, "float64", -6, 6), (TensorProto.BOOL, "bool", 0, 1), (TensorProto.UINT8, "uint8", 0, 255),
        (TensorProto.INT8, "int8", -128, 127), (TensorProto.INT64, "int64", 0, 1), (TensorProto.UINT16, "uint16", 0, 1),
    ],
)  # fmt: skip
def test_every_type_gets_values_of_its_kind(kind: int, dtype: str, low: int, high: int, tmp_path: Path) -> None:
    node = helper.make_node("Identity", ["x"], ["y"])
    x = made(making.model([node], [making.port("x", [50, 50], kind)], [making.port("y", None, kind)]), tmp_path)["x"]
    assert str(x.dtype) == dtype
    assert low <= x.min() < x.max() <= high


def test_a_mask_lets_everything_through(tmp_path: Path) -> None:
    node = helper.make_node("Identity", ["attention_mask"], ["y"])
    mask = making.port("attention_mask", ["batch", "seq"], TensorProto.INT64)
    assert made(making.model([node], [mask], [making.port("y", None)]), tmp_path)["attention_mask"].all()


def test_an_input_called_file_is_no_trouble(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["file"], ["y"])
    assert list(made(making.model([node], [making.port("file")], [making.port("y")]), tmp_path)) == ["file"]


def problem(answer: dict[str, Any]) -> tuple[str, str]:
    assert "problem" in answer, answer
    return answer["problem"]["code"], answer["problem"]["text"]


def test_another_batch_than_the_fixed_one_is_refused(tmp_path: Path) -> None:
    code, text = problem(answered(making.relu(), tmp_path, batch=8))
    assert code == "fixed_batch"
    assert "fixed batch 2" in text


@pytest.mark.parametrize(
    ("kind", "hidden", "is_second", "fed"),
    [
        (TensorProto.BOOL, -np.inf, False, 0),
        (TensorProto.BOOL, -65504.0, False, 0),
        (TensorProto.INT64, -np.inf, False, 0),
        (TensorProto.BOOL, -np.inf, True, 1),
        (TensorProto.BOOL, 0.0, False, 1),
    ],
)
def test_a_mask_of_what_is_hidden_hides_nothing(
    kind: int, hidden: float, is_second: bool, fed: int, tmp_path: Path
) -> None:
    """As torch's key padding masks are: true is padding."""
    chosen = ("x", "low") if is_second else ("low", "x")
    nodes = [
        helper.make_node("Cast", ["padding_mask"], ["flags"], to=TensorProto.BOOL),
        helper.make_node("Where", ["flags", *chosen], ["y"]),
    ]
    ports = [making.port("padding_mask", ["batch", 4], kind), making.port("x", ["batch", 4])]
    low = making.weight("low", np.float32(hidden))
    model = making.model(nodes, ports, [making.port("y", None)], weights=[low])
    assert (made(model, tmp_path)["padding_mask"] == fed).all()


def test_a_batch_where_there_is_none_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("Identity", ["x"], ["y"])
    model = making.model([node], [making.port("x", ["rows"])], [making.port("y", None)])
    assert problem(answered(model, tmp_path, batch=8))[0] == "no_batch"


def test_an_unknown_dimension_is_told_the_nearest_one(tmp_path: Path) -> None:
    code, text = problem(answered(gather(), tmp_path, shapes={"sequ": 9}))
    assert code == "unknown_dim"
    assert "did you mean 'seq'?" in text


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"idz": "1"}, "has no input 'idz': it takes ids"),
        ({"ids": "0.5"}, "'ids' takes int32: 0.5 is not a whole number"),
        ({"ids": "normal"}, "ids"),
        ({"ids": "0..99999999999"}, "write numbers from -2147483648 to 2147483647"),
        ({"ids": "size:rows"}, "cannot be the size of 'rows': the model has no such dynamic dimension"),
        ({"ids": "what"}, "'what'"),
    ],
)
def test_an_input_that_cannot_be_made_so_is_told(asked: dict[str, str], words: str, tmp_path: Path) -> None:
    assert words in problem(answered(gather(), tmp_path, inputs=asked))[1]


@pytest.mark.parametrize(
    ("text", "values"),
    [("5", [5, 5, 5]), ("positions", [0, 1, 2]), ("size:seq", [3, 3, 3]), ("0..0", [0, 0, 0]), ("6..6@4", [6, 6, 6])],
)
def test_an_input_is_made_as_it_was_asked(text: str, values: list[int], tmp_path: Path) -> None:
    ids = made(gather(), tmp_path, shapes={"seq": 3}, inputs={"ids": text})["ids"]
    assert ids.tolist() == [values]


def test_a_seed_of_its_own_makes_an_input_the_same_in_every_run(tmp_path: Path) -> None:
    runs = [made(gather(), tmp_path, seed=seed, inputs={"ids": "0..6@1"})["ids"].tolist() for seed in (0, 9)]
    assert runs[0] == runs[1]
    other = [made(gather(), tmp_path, seed=seed, inputs={"ids": "0..6"})["ids"].tolist() for seed in (0, 9)]
    assert other[0] != other[1]
    # what was tried with the seed 0 is what every run is given
    assert made(gather(), tmp_path, seed=5, inputs={"ids": "0..6@0"})["ids"].tolist() == other[0]


def test_inputs_of_unknown_rank_must_be_given(tmp_path: Path) -> None:
    node = helper.make_node("Identity", ["x"], ["y"])
    model = making.model([node], [making.port("x", None)], [making.port("y", None)])
    assert "upload inputs" in problem(answered(model, tmp_path))[1]


def test_inputs_larger_than_memory_allows_are_refused(tmp_path: Path) -> None:
    assert problem(answered(making.linear(), tmp_path, batch=1 << 30))[0] == "inputs_too_large"


def test_given_inputs_tell_their_batch_and_sizes(tmp_path: Path) -> None:
    answer = given(gather(), tmp_path, {"ids": np.zeros((3, 11), np.int32)})["answer"]
    assert (answer["batch"], answer["sizes"]) == (3, {"batch": 3, "seq": 11})


@pytest.mark.parametrize(
    ("inputs", "code", "words"),
    [
        ({}, "inputs_names", "lack 'ids'"),
        ({"ids": np.zeros((1, 2), np.int32), "other": np.zeros(1)}, "inputs_names", "hold 'other'"),
        ({"ids": np.zeros((1, 2), np.int64)}, "inputs_dtype", "is int64, the model takes int32"),
        ({"ids": np.zeros(2, np.int32)}, "inputs_shape", "has the shape [2]"),
    ],
)
def test_given_inputs_that_do_not_fit_are_refused(inputs: dict[str, np.ndarray], code: str, words: str, tmp_path: Path):
    found, text = problem(given(gather(), tmp_path, inputs))
    assert found == code
    assert words in text


def test_given_inputs_must_agree_on_a_shared_dimension(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    ports = [making.port("a", ["batch", 4]), making.port("b", ["batch", 4])]
    inputs = {"a": np.zeros((2, 4), np.float32), "b": np.zeros((3, 4), np.float32)}
    assert problem(given(making.model(nodes, ports, [making.port("y", None)]), tmp_path, inputs))[0] == "inputs_shape"


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 broken"])
def test_given_inputs_that_are_no_archive_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "given.npz"
    path.write_bytes(content)
    with pytest.raises(arrays.ArraysError, match=r"given\.npz"):
        arrays.read_npz(path)


def test_a_pickle_in_an_archive_is_never_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "given.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(arrays.ArraysError, match="plain arrays"):
        arrays.read_npz(tmp_path / "given.npz")


def test_a_single_array_is_not_taken_for_an_archive(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(2))
    (tmp_path / "x.npy").rename(tmp_path / "x.npz")
    with pytest.raises(arrays.ArraysError, match="single array"):
        arrays.read_npz(tmp_path / "x.npz")


def test_reference_files_of_onnx_become_arrays_by_name(tmp_path: Path) -> None:
    folder = making.save(making.linear(), tmp_path / "bundle")
    path = tmp_path / "input_0.pb"
    path.write_bytes(numpy_helper.from_array(np.ones((2, 4), np.float32)).SerializeToString())
    out = orders.unpack_test_data(folder, "model.onnx", files=[path], side="input", out_dir=tmp_path)
    assert arrays.read_npz(out)["x"].shape == (2, 4)


def test_a_broken_reference_file_is_named(tmp_path: Path) -> None:
    folder = making.save(making.linear(), tmp_path / "bundle")
    (tmp_path / "input_0.pb").write_bytes(b"garbage")
    with pytest.raises(orders.WorkshopError, match=r"input_0\.pb holds no tensor"):
        orders.unpack_test_data(
            folder, "model.onnx", files=[tmp_path / "input_0.pb"], side="input", out_dir=tmp_path
        )  # fmt: skip


def test_orders_prepare_inputs_and_reference_in_confined_children(tmp_path: Path) -> None:
    bundle, out = tmp_path / "bundle", tmp_path / "out"
    bundle.mkdir()
    out.mkdir()
    for name in ("mlp_external.onnx", "mlp_external.onnx.data"):
        (bundle / name).write_bytes((MODELS / name).read_bytes())
    prepared = orders.prepare_inputs(bundle, "mlp_external.onnx", out_dir=out, batch=3)
    assert (prepared.batch, arrays.read_npz(prepared.path)["x"].shape) == (3, (3, 256))
    reference = orders.make_reference(bundle, "mlp_external.onnx", inputs=prepared.path, out_dir=out)
    assert arrays.read_npz(reference.path)["y"].shape == (3, 16)
    assert reference.made_by == "onnxruntime==1.31.1 CPU, no optimisations"


def test_a_reference_agrees_with_the_expected_outputs_of_another_framework(tmp_path: Path) -> None:
    for name in ("cnn_dyn", "encoder_dyn", "lstm", "if_loop"):
        bundle = making.save(onnx.load(MODELS / f"{name}.onnx"), tmp_path / name)
        found = orders.make_reference(
            bundle, "model.onnx", inputs=MODELS / f"{name}.inputs.npz", out_dir=bundle
        )  # fmt: skip
        for output, expected in arrays.read_npz(MODELS / f"{name}.expected.npz").items():
            np.testing.assert_allclose(arrays.read_npz(found.path)[output], expected, atol=1e-5, rtol=1e-4)


def test_a_model_that_fails_on_its_inputs_is_told_so(tmp_path: Path) -> None:
    folder = making.save(gather(3), tmp_path / "bundle")
    path = arrays.write_npz(tmp_path / "inputs.npz", {"ids": np.full((1, 2), 99, np.int32)})
    with pytest.raises(orders.WorkshopError, match="fails on the CPU with these inputs") as caught:
        orders.make_reference(folder, "model.onnx", inputs=path, out_dir=tmp_path)
    assert caught.value.reason.code == ReasonCode.INFERENCE_FAILED


def test_a_model_no_runtime_loads_has_no_reference(tmp_path: Path) -> None:
    folder = making.save(onnx.load(MODELS / "relu_ir_future.onnx"), tmp_path / "bundle")
    with pytest.raises(orders.WorkshopError, match="Unsupported model IR version: 99") as caught:
        orders.make_reference(
            folder, "model.onnx", inputs=MODELS / "relu_ir_future.inputs.npz", out_dir=tmp_path
        )  # fmt: skip
    assert caught.value.reason.code == ReasonCode.MODEL_NOT_LOADED
    assert "/onnxruntime_src" not in caught.value.reason.text
