"""What is found of code that a provider compiled into a model."""

from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from farm.workshop import orders
from farm.workshop.child import compiled


def write(path: Path, **attributes: Any) -> None:
    """A model whose one node is compiled code."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy")
    node = helper.make_node("EPContext", ["x"], ["y"], domain="com.microsoft", ep_cache_context=b"code", **attributes)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "compiled", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def test_by_what_and_for_what_it_was_compiled_is_found(tmp_path: Path) -> None:
    write(tmp_path / "model.onnx", embed_mode=1, source="QNN", ep_sdk_version="2.38.0", hardware_architecture="v73")
    found = orders.inspect(tmp_path, "model.onnx")
    assert found.ok, found.problem
    assert found.compiled.model_dump() == {"by": ("QNN",), "sdk": "2.38.0", "hardware": "v73", "problem": ""}


def test_code_that_lies_in_a_file_of_the_models_choice_is_said_not_to_run(tmp_path: Path) -> None:
    write(tmp_path / "model.onnx", embed_mode=0, source="QNN")
    found = compiled.read_compiled(onnx.load(tmp_path / "model.onnx"))
    assert found["problem"].startswith("The compiled code lies in a file beside the model")


def test_code_that_names_no_provider_is_said_not_to_run(tmp_path: Path) -> None:
    write(tmp_path / "model.onnx", embed_mode=1)
    found = compiled.read_compiled(onnx.load(tmp_path / "model.onnx"))
    assert found["problem"].startswith(
        "The model carries compiled code (EPContext) that does not say for which provider"
    )
