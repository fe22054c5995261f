"""The reference models on real runtimes: parity, reasons, placement."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farm.contract.reasons import ReasonCode
from farm.contract.reports import CheckReport, TraceReport
from tests.integration.worker.making import MODELS, Workbench, checks, traces

MANIFEST = json.loads((MODELS / "manifest.json").read_text())["models"]
WITH_EXPECTED = [entry for entry in MANIFEST if entry.get("expected_npz")]
LADDER = [entry for entry in MANIFEST if entry["name"].startswith("relu_op")]
# MEASURING.md, "Opsets each runtime loads": release → highest opset and IR version
LOADS = {
    "1.15.1": (19, 9), "1.16.3": (19, 9), "1.17.3": (20, 9), "1.18.1": (21, 10), "1.20.1": (21, 10), "1.22.1": (22, 10),
    "1.23.2": (23, 11), "1.24.1": (25, 13), "1.25.0": (26, 13), "1.31.1": (26, 13),
}  # fmt: skip
# those that other tests install too; a runtime takes seconds and 140 MB
SHARED = ("1.20.1", "1.31.1")


def data_of(entry: dict[str, Any]) -> list[Path]:
    return [path for path in MODELS.glob(f"{entry['file']}.*") if path.suffix == ".data"]


@pytest.mark.slow
def test_every_reference_model_is_right_on_the_newest_runtime(bench: Workbench) -> None:
    for start in range(0, len(WITH_EXPECTED), 16):
        part = WITH_EXPECTED[start : start + 16]
        arms = [bench.arm(i, MODELS / entry["file"], data=data_of(entry)) for i, entry in enumerate(part)]
        reports = bench.execute_until(arms, TraceReport)
        for arm, entry in enumerate(part):
            check = checks(reports)[arm]
            assert check.reason is None, entry["name"]
            assert check.outputs, entry["name"]
            assert [output.violations for output in check.outputs] == [0] * len(check.outputs), entry["name"]
            assert check.is_repeatable, entry["name"]
            assert traces(reports)[arm].mapped_share == 1.0, entry["name"]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "release", [release if release in SHARED else pytest.param(release, marks=pytest.mark.long) for release in LOADS]
)
def test_the_ladder_of_opsets_runs_exactly_where_the_table_says(bench: Workbench, release: str) -> None:
    opset, ir = LOADS[release]
    arms = [bench.arm(i, MODELS / e["file"], runtime=f"onnxruntime=={release}") for i, e in enumerate(LADDER)]
    reports = bench.execute_until(arms, CheckReport)
    for arm, entry in enumerate(LADDER):
        reason = checks(reports)[arm].reason
        loads = entry["opset"]["ai.onnx"] <= opset and entry["ir_version"] <= ir
        if loads:
            assert reason is None, (entry["name"], reason)
        else:
            assert reason is not None, entry["name"]
            assert reason.code in (ReasonCode.OPSET_TOO_NEW, ReasonCode.IR_TOO_NEW), (entry["name"], reason)


def test_a_custom_operator_and_a_future_ir_version_get_their_reason(bench: Workbench) -> None:
    reports = bench.execute(
        [bench.arm(0, MODELS / "custom_op.onnx"), bench.arm(1, MODELS / "relu_ir_future.onnx")], rounds=1
    )
    custom, future = checks(reports)[0].reason, checks(reports)[1].reason
    assert custom.code == ReasonCode.CUSTOM_DOMAIN
    assert "com.example.unsupported:FancyGelu" in custom.text
    assert future.code == ReasonCode.IR_TOO_NEW
    assert "99" in future.text


def test_a_provider_that_is_not_in_the_build_is_named_with_those_that_are(bench: Workbench) -> None:
    arm = bench.arm(0, MODELS / "cnn_dyn.onnx", provider="CUDAExecutionProvider")
    reason = checks(bench.execute_until([arm], CheckReport))[0].reason
    assert reason.code == ReasonCode.PROVIDER_NOT_IN_BUILD
    assert "CPUExecutionProvider" in reason.text


def test_a_runtime_that_does_not_exist_is_a_reason_with_the_installers_words(bench: Workbench) -> None:
    arms = [bench.arm(0, MODELS / "cnn_dyn.onnx", runtime="onnxruntime==1.99.9")]
    reason = checks(bench.execute_until(arms, CheckReport))[0].reason
    assert reason.code == ReasonCode.RUNTIME_INSTALL_FAILED
    assert "no version of onnxruntime==1.99.9" in reason.text


def test_inputs_of_another_size_than_a_fixed_batch_are_told_so(bench: Workbench, tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", x=np.zeros((2, 3, 32, 32), dtype=np.float32))
    arm = bench.arm(0, MODELS / "cnn_fixed_b1.onnx", inputs=tmp_path / "two.npz")
    assert checks(bench.execute_until([arm], CheckReport))[0].reason.code == ReasonCode.FIXED_BATCH


def test_a_row_of_a_batch_is_compared_with_the_row_alone(bench: Workbench, tmp_path: Path) -> None:
    dice = np.random.default_rng(0)
    np.savez(tmp_path / "eight.npz", x=dice.standard_normal((8, 3, 32, 32)).astype(np.float32))
    arm = bench.arm(0, MODELS / "cnn_dyn.onnx", inputs=tmp_path / "eight.npz", workload={"batch": 8})
    difference = checks(bench.execute_until([arm], CheckReport))[0].batch_row_max_abs
    assert difference is not None
    assert difference < 1e-5


@pytest.mark.slow
def test_an_operator_that_openvino_does_not_take_shows_a_mixed_placement_with_time_shares(
    bench: Workbench, tmp_path: Path
) -> None:
    model, inputs = make_det_between_convolutions(tmp_path)
    arm = bench.arm(
        0,
        model,
        inputs=inputs,
        runtime="onnxruntime-openvino==1.24.1",
        provider="OpenVINOExecutionProvider",
        hardware="openvino",
    )
    reports = bench.execute_until([arm], TraceReport)
    check, trace = checks(reports)[0], traces(reports)[0]
    assert check.reason is None
    assert check.active_providers == ("OpenVINOExecutionProvider", "CPUExecutionProvider")
    shares = {provider.name: provider for provider in trace.providers}
    assert set(shares) == {"OpenVINOExecutionProvider", "CPUExecutionProvider"}
    assert sum(share.time_share for share in shares.values()) == pytest.approx(1.0)
    assert all(share.time_share > 0 for share in shares.values())
    by_node = {operator.node: operator for operator in trace.operators}
    assert by_node["det"].provider == "CPUExecutionProvider"
    assert by_node["conv_b"].provider == "OpenVINOExecutionProvider"
    assert set(by_node["conv_b"].covers) >= {"tanh", "mul"}
    assert trace.mapped_share == 1.0
    assert bench.traces[0, 0].startswith(b"[")
    assert trace.raw_sha256 is not None


def make_det_between_convolutions(folder: Path) -> tuple[Path, Path]:
    """A model whose middle OpenVINO leaves to the CPU, and its inputs."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    dice = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array((dice.standard_normal(shape) * 0.1).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="conv_a", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu_a"),
        helper.make_node("Det", ["r1"], ["d"], name="det"),
        helper.make_node("Unsqueeze", ["d", "axes"], ["u"], name="unsqueeze"),
        helper.make_node("Tanh", ["u"], ["t"], name="tanh"),
        helper.make_node("Mul", ["r1", "t"], ["q"], name="mul"),
        helper.make_node("Conv", ["q", "w2"], ["y"], name="conv_b", pads=[1, 1, 1, 1]),
    ]
    shape = ["n", 8, 32, 32]
    graph = helper.make_graph(
        nodes,
        "det_between_convolutions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [
            weights("w1", 16, 8, 3, 3),
            weights("w2", 8, 16, 3, 3),
            numpy_helper.from_array(np.array([2, 3], dtype=np.int64), "axes"),
        ],
    )
    path = folder / "det_between_convolutions.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    inputs = folder / "det_between_convolutions.inputs.npz"
    np.savez(inputs, x=dice.standard_normal((1, 8, 32, 32)).astype(np.float32))
    return path, inputs
