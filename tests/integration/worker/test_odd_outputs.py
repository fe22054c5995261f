"""Inputs and outputs that are no plain tensors, or change from run to run, in all three passes of a real runner."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from farm.contract.cells import Runtime
from tests.integration.worker.making import runtime_store
from worker.agent.installation.stages import stage_runner

Shape = list[int | str]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def value(name: str, kind: int, shape: Shape | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(
    nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], output: onnx.ValueInfoProto
) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph(nodes, "odd", inputs, [output]), opset_imports=opsets, ir_version=8)


FLOATS = [value("x", TensorProto.FLOAT, ["n", 3])]
PROBABILITIES = helper.make_sequence_type_proto(
    helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
)
MODELS: dict[str, tuple[onnx.ModelProto, np.ndarray[Any, Any], str, bool]] = {
    # name: model, input, dtype that the check tells, whether a repeat gives the same bits
    "sequence": (
        model_of(
            [helper.make_node("SplitToSequence", ["x"], ["y"], axis=0)],
            FLOATS,
            helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None),
        ),
        X, "seq(tensor(float))", True,
    ),
    "maps": (
        model_of(
            [helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2])],
            FLOATS,
            helper.make_value_info("y", PROBABILITIES),
        ),
        X, "seq(map(int64,tensor(float)))", True,
    ),
    "text": (
        model_of(
            [helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_int64s=[0, 1],
                              values_strings=["a", "b"])],
            [value("x", TensorProto.INT64, ["n"])],
            value("y", TensorProto.STRING, ["n"]),
        ),
        np.array([0, 1, 1]), "object", True,
    ),
    "strings": (
        model_of(
            [helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=["a", "b"],
                              values_int64s=[0, 1])],
            [value("x", TensorProto.STRING, ["n"])],
            value("y", TensorProto.INT64, ["n"]),
        ),
        np.array(["a", "b", "elsewhere"]), "int64", True,
    ),
    "nothing": (
        model_of([helper.make_node("Constant", [], ["y"], value_floats=[1.0, 2.0])], [],
                 value("y", TensorProto.FLOAT, [2])),
        X, "float32", True,
    ),
    "bfloat16": (
        model_of([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)], FLOATS,
                 value("y", TensorProto.BFLOAT16, ["n", 3])),
        X, "float32", True,
    ),
    "empty": (
        model_of([helper.make_node("NonZero", ["x"], ["y"])], FLOATS, value("y", TensorProto.INT64, [2, "k"])),
        np.zeros((2, 3), dtype=np.float32), "int64", True,
    ),
    "random": (
        model_of([helper.make_node("RandomNormalLike", ["x"], ["y"])], FLOATS, value("y", TensorProto.FLOAT, ["n", 3])),
        X, "float32", False,
    ),
    "of random size": (
        model_of(
            [
                helper.make_node("RandomUniformLike", ["x"], ["r"]),
                helper.make_node("Round", ["r"], ["q"]),
                helper.make_node("NonZero", ["q"], ["y"]),
            ],
            [value("x", TensorProto.FLOAT, ["n", 100])],
            value("y", TensorProto.INT64, [2, "k"]),
        ),
        np.ones((2, 100), dtype=np.float32), "int64", False,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stage_runner(tmp_path_factory.mktemp("stage"))


# numpy has no bfloat16 for `run` to give
CALLED = [("bound", name) for name in MODELS] + [("run", name) for name in MODELS if name != "bfloat16"]


@pytest.mark.parametrize("release", ["1.15.1", "1.31.1"])
@pytest.mark.parametrize(("call", "name"), CALLED)
def test_an_odd_model_goes_through_all_passes(call: str, name: str, release: str, stage: Path, tmp_path: Path) -> None:
    model, given, dtype, is_repeatable = MODELS[name]
    onnx.save(model, tmp_path / "model.onnx")
    np.savez(tmp_path / "inputs.npz", x=given)
    python = runtime_store().provide(Runtime(distribution="onnxruntime", version=release)).python

    def run(kind: str) -> dict[str, Any]:
        order = {
            "version": 1,
            "kind": kind,
            "model": str(tmp_path / "model.onnx"),
            "inputs": str(tmp_path / "inputs.npz"),
            "provider": "CPUExecutionProvider",
            "work_dir": str(tmp_path),
            "session": {"call": call},
            "budget": {"warmup_s": 0.01, "window_s": 0.01},
        }
        done = subprocess.run(
            [str(python), "-I", str(stage)], input=json.dumps(order).encode(), capture_output=True, check=True
        )
        answer: dict[str, Any] = json.loads(done.stdout)
        assert "reason" not in answer, answer
        return answer

    check = run("check")
    assert check["outputs"][0]["dtype"] == dtype
    assert check["is_repeatable"] is is_repeatable
    assert run("sample")["sample"]["n"] >= 3
    assert run("trace")["runs"] >= 10
