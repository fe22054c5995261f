"""Cells under a memory limit, with real runtimes in the real sandbox: what fits, and what does not."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from farm.contract.reasons import ReasonCode
from farm.contract.reports import RoundReport
from tests.bench.blocks import brief_windows
from tests.integration.worker.making import Workbench, checks, end, of_kind

LIMIT_MB = 700
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to a limit on addresses")


def growing(folder: Path) -> Path:
    """A model whose memory is its batch: each row is expanded to 1 MiB and summed up again."""
    size = helper.make_tensor("size", TensorProto.INT64, [2], [1, 1 << 18])
    nodes = [
        helper.make_node("Expand", ["x", "size"], ["wide"]),
        helper.make_node("ReduceSum", ["wide", "axes"], ["y"], keepdims=1),
    ]
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 1]) for name in "xy")
    graph = helper.make_graph(nodes, "growing", [x], [y], [size, axes])
    path = folder / "growing.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_a_cell_that_reaches_its_limit_ends_alone_in_one_sentence(tmp_path: Path) -> None:
    bench, model = Workbench(tmp_path), growing(tmp_path)
    asked = [(1, LIMIT_MB), (1024, LIMIT_MB), (1, 16), (1, 0)]
    for batch, _ in asked:
        np.savez(tmp_path / f"{batch}.npz", x=np.ones((batch, 1), np.float32))
    arms = [
        bench.arm(
            number, model, inputs=tmp_path / f"{batch}.npz", workload={"batch": batch},
            session={"memory_limit_mb": limit, "threads": 2},
        )
        for number, (batch, limit) in enumerate(asked)
    ]  # fmt: skip
    with brief_windows():
        reports = bench.execute(arms)
    told = [checks(reports)[number].reason for number in range(4)]
    assert told[0] is None
    assert told[3] is None
    assert told[1] is not None
    assert told[1].code == ReasonCode.OUT_OF_MEMORY
    assert told[1].text.startswith(f"Under the memory limit of {LIMIT_MB} MiB memory ran out")
    assert told[2] is not None
    assert told[2].text.startswith("The memory limit of 16 MiB is under what the runtime itself takes: ")
    (measured,) = of_kind(reports, RoundReport)
    assert {one.arm for one in measured.samples if one.sample is not None} == {0, 3}
    assert end(reports).reason is None
