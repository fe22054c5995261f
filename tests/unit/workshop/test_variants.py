"""Variants by recipe: what they are, what was done, and why some cannot be made."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from farm.contract.cells import Recipe
from farm.contract.reasons import ReasonCode
from farm.workshop import arrays, orders
from farm.workshop.child import quantised, reference, version_stamps
from farm.workshop.child.variants import make_variant
from farm.workshop.samples import builders as samples
from tests.conftest import MODELS
from tests.unit.workshop import making


def variant(folder: Path, out: Path, *, main: str = "model.onnx", **recipe: Any) -> dict[str, Any]:
    out.mkdir(exist_ok=True)
    payload = {"folder": str(folder), "main": main, "out": str(out), "precision": "fp32", "opset": None, "options": {}}
    return make_variant({**payload, **recipe})


def done(folder: Path, out: Path, **recipe: Any) -> tuple[onnx.ModelProto, list[str]]:
    answer = variant(folder, out, **recipe)
    assert "answer" in answer, answer
    assert sorted(answer["answer"]["files"]) == sorted(path.name for path in out.iterdir())
    return onnx.load(out / recipe.get("main", "model.onnx")), answer["answer"]["history"]


def problem(folder: Path, out: Path, **recipe: Any) -> tuple[str, str]:
    answer = variant(folder, out, **recipe)
    assert "problem" in answer, answer
    return answer["problem"]["code"], answer["problem"]["text"]


def outputs(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return reference.run_reference(path, inputs)[0]


def test_a_newer_opset_is_stamped_checked_and_told(tmp_path: Path) -> None:
    made, history = done(making.save(making.linear(), tmp_path / "in"), tmp_path / "out", opset=21)
    assert version_stamps.read_default_opset(made) == 21
    assert history[0] == f"Converted from opset 17 to 21 with onnx {onnx.__version__}."
    assert history[-1].startswith("The outputs are the original's on seeded inputs")


def test_an_ir_version_higher_than_needed_is_lowered_and_told(tmp_path: Path) -> None:
    made, history = done(making.save(making.relu(ir=10), tmp_path / "in"), tmp_path / "out", opset=18)
    assert made.ir_version == 8
    assert "Lowered the IR version from 10 to 8, which is all that its operators need." in history


def test_unused_opset_imports_are_left_out_and_told(tmp_path: Path) -> None:
    model = making.relu(opsets={"": 17, "ai.onnx.ml": 5})
    made, history = done(making.save(model, tmp_path / "in"), tmp_path / "out", opset=18)
    assert [entry.domain for entry in made.opset_import] == [""]
    assert "Left out the operator set ai.onnx.ml 5, which no node uses." in history


def test_the_opset_it_has_already_changes_nothing(tmp_path: Path) -> None:
    _, history = done(making.save(making.relu(), tmp_path / "in"), tmp_path / "out", opset=17)
    assert history == ["The model has this opset already."]


def test_a_way_back_without_an_adapter_names_the_operator(tmp_path: Path) -> None:
    code, text = problem(making.save(making.relu(), tmp_path / "in"), tmp_path / "out", opset=13)
    assert code == "no_adapter"
    assert text == (
        "Opset 17 cannot be converted to 13: no adapter leads to an older version of Relu. "
        "Export the model with opset 13 instead."
    )


def test_functions_are_written_out_before_conversion(tmp_path: Path) -> None:
    imports = [helper.make_opsetid("", 17)]
    function = helper.make_function("own", "f", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], imports)
    model = making.relu(opsets={"": 17, "own": 1}, functions=[function])
    model.graph.node[0].op_type, model.graph.node[0].domain = "f", "own"
    made, history = done(making.save(model, tmp_path / "in"), tmp_path / "out", opset=19)
    assert not made.functions
    assert history[-1].startswith("The outputs are the original's")


def test_an_unchecked_conversion_says_so(tmp_path: Path) -> None:
    model = onnx.load(MODELS / "custom_op.onnx")
    _, history = done(making.save(model, tmp_path / "in"), tmp_path / "out", opset=18)
    assert history[-1].startswith("The outputs were not compared with the original's:")


# processors without VNNI add up U8S8 products in 16 bits, which saturate unless weights leave them a bit
REDUCED = {"reduce-range": "true"}


def test_dynamic_int8_of_the_transformer_is_small_and_close(tmp_path: Path) -> None:
    path = samples.write_model("transformer", tmp_path / "in")
    made, history = done(
        tmp_path / "in", tmp_path / "out", main="transformer.onnx", precision="int8-dynamic", options=REDUCED
    )
    assert quantised.is_quantised(made)
    assert (version_stamps.read_default_opset(made), made.ir_version) == (17, 8)
    assert history == ["Quantised with onnxruntime 1.31.1: int8-dynamic, weights int8, reduced range."]
    assert (tmp_path / "out" / "transformer.onnx").stat().st_size < 0.3 * path.stat().st_size
    x = {"x": np.random.default_rng(0).standard_normal((1, 64, 256)).astype(np.float32)}
    old, new = outputs(path, x)["y"].ravel(), outputs(tmp_path / "out" / "transformer.onnx", x)["y"].ravel()
    assert old @ new / np.linalg.norm(old) / np.linalg.norm(new) > 0.99


@pytest.mark.parametrize("name", ["cnn_dyn", "mlp_external", "lstm", "encoder_dyn", "encoder_dyn_opset23"])
def test_dynamic_int8_of_exported_models_runs_and_keeps_its_stamps(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for path in MODELS.glob(f"{name}.onnx*"):
        (folder / path.name).write_bytes(path.read_bytes())
    made, _ = done(folder, tmp_path / "out", main=f"{name}.onnx", precision="int8-dynamic")
    before = onnx.load(folder / f"{name}.onnx", load_external_data=False)
    assert (made.ir_version, version_stamps.read_default_opset(made)) == (
        before.ir_version,
        version_stamps.read_default_opset(before),
    )
    outputs(tmp_path / "out" / f"{name}.onnx", arrays.read_npz(MODELS / f"{name}.inputs.npz"))


def test_a_bundle_with_external_data_keeps_it_outside(tmp_path: Path) -> None:
    folder = making.save_external(making.linear(64, 64), tmp_path / "in")
    answer = variant(folder, tmp_path / "out", opset=19)["answer"]
    assert answer["files"] == ["model.onnx", "model.onnx.data"]


def test_weights_can_be_unsigned_and_nodes_left_out(tmp_path: Path) -> None:
    samples.write_model("digits", tmp_path / "in")
    made, history = done(
        tmp_path / "in", tmp_path / "out", main="digits.onnx", precision="int8-dynamic",
        options={"weight": "uint8", "exclude-nodes": "conv1, conv2", "per-channel": "false"},
    )  # fmt: skip
    kinds = [node.op_type for node in made.graph.node]
    assert (kinds.count("Conv"), kinds.count("ConvInteger")) == (2, 1)
    assert history == ["Quantised with onnxruntime 1.31.1: int8-dynamic, weights uint8, without conv1, conv2."]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"wieght": "int8"}, "Unknown option of int8-dynamic 'wieght': did you mean 'weight'?"),
        ({"weight": "int9"}, "did you mean 'int8'?"),
        ({"per-channel": "perhaps"}, "say true or false"),
        ({"exclude-nodes": "conv9"}, "'conv9'"),
    ],
)
def test_an_unknown_option_is_told_the_nearest_valid_one(options: dict[str, str], words: str, tmp_path: Path) -> None:
    samples.write_model("digits", tmp_path / "in")
    code, text = problem(
        tmp_path / "in", tmp_path / "out", main="digits.onnx", precision="int8-dynamic", options=options
    )  # fmt: skip
    assert code == "bad_option"
    assert words in text


def test_a_quantised_model_is_not_quantised_again(tmp_path: Path) -> None:
    samples.write_model("digits", tmp_path / "in")
    done(tmp_path / "in", tmp_path / "out", main="digits.onnx", precision="int8-dynamic")
    code, text = problem(tmp_path / "out", tmp_path / "again", main="digits.onnx", precision="int8-dynamic")
    assert code == "already_quantised"
    assert "Take precision fp32" in text or "take precision fp32" in text


def test_a_model_with_nothing_to_quantise_says_so(tmp_path: Path) -> None:
    code, _ = problem(making.save(making.relu(), tmp_path / "in"), tmp_path / "out", precision="int8-dynamic")
    assert code == "nothing_quantised"


def test_an_order_makes_a_variant_in_a_confined_child(tmp_path: Path) -> None:
    folder = making.save(making.linear(), tmp_path / "in")
    (tmp_path / "out").mkdir()
    made = orders.make_variant(folder, "model.onnx", recipe=Recipe(opset=19), out_dir=tmp_path / "out")
    assert made.files == ("model.onnx",)
    assert len(made.history) == 2


def test_an_order_that_cannot_be_met_has_a_reason(tmp_path: Path) -> None:
    folder = making.save(making.relu(), tmp_path / "in")
    (tmp_path / "out").mkdir()
    recipe = Recipe(precision="int8-dynamic")
    with pytest.raises(orders.WorkshopError) as caught:
        orders.make_variant(folder, "model.onnx", recipe=recipe, out_dir=tmp_path / "out")
    assert caught.value.reason.code == ReasonCode.VARIANT_IMPOSSIBLE


def test_max_of_runtime_is_resolved_by_the_caller(tmp_path: Path) -> None:
    folder = making.save(making.relu(), tmp_path / "in")
    with pytest.raises(ValueError, match="max-of-runtime"):
        orders.make_variant(folder, "model.onnx", recipe=Recipe(opset="max-of-runtime"), out_dir=tmp_path)
