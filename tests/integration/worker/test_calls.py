"""Both calls of a short inference, in the launches of real runners: the cell's own, and the other beside it."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from farm.contract.reports import RoundReport, Sample
from tests.bench.blocks import shortened_windows
from tests.integration.worker.making import MODELS, Workbench, of_kind

WINDOWS = {"warmup_s": 0.05, "warmup_cap_s": 0.5, "window_s": 0.15, "window_runs": 3, "windows_agreeing": 1}


def sample_of(folder: Path, model: Path, *, call: str) -> Sample:
    bench = Workbench(folder)
    with shortened_windows(WINDOWS):
        reports = bench.execute([bench.arm(0, model, session={"call": call})])
    (measured,) = of_kind(reports, RoundReport)
    sample = measured.samples[0].sample
    assert sample is not None
    return sample


@pytest.mark.parametrize(("call", "other"), [("bound", "run"), ("run", "bound")])
def test_a_short_inference_is_timed_by_the_other_call_too(call: str, other: str, tmp_path: Path) -> None:
    sample = sample_of(tmp_path, MODELS / "relu_op21_ir10.onnx", call=call)
    times = {call: sample.p50_ms, other: sample.metrics[f"{other}_p50_ms"]}
    assert times["bound"] < times["run"]
    assert sample.metrics[f"{other}_cpu_p50_ms"] > 0
    assert f"{call}_p50_ms" not in sample.metrics


@pytest.mark.parametrize(("kind", "call"), [("long", "bound"), ("sequence", "run")])
def test_there_is_no_other_call_of_a_long_inference_and_of_one_that_gives_no_tensor(
    kind: str, call: str, tmp_path: Path
) -> None:
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [400, 400])
    if kind == "long":
        nodes = [helper.make_node("MatMul", [f"x{i}" if i else "x", "x"], [f"x{i + 1}"]) for i in range(4)]
        found = helper.make_tensor_value_info("x4", TensorProto.FLOAT, [400, 400])
    else:
        nodes = [helper.make_node("SplitToSequence", ["x"], ["y"], axis=0)]
        found = helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, kind, [given], [found])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "model.onnx"
    )
    np.savez(tmp_path / "model.inputs.npz", x=np.full((400, 400), 0.01, dtype=np.float32))
    assert not any(name.endswith("p50_ms") for name in sample_of(tmp_path, tmp_path / "model.onnx", call=call).metrics)
