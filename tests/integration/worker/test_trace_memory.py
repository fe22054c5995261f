"""Memory by operator, as the profiles of real releases of ONNX Runtime tell it."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from farm.contract.reports import TraceReport
from tests.integration.worker.making import Workbench, traces

# of a tensor of 64 × 256 float32
TENSOR = 64 * 256 * 4


def softmaxes(folder: Path) -> Path:
    """Two operators that cannot work in place, so that each asks for a tensor of its own."""
    kinds = [("x", "Softmax", "a"), ("a", "CumSum", "b"), ("b", "Softmax", "y")]
    nodes = [
        helper.make_node(op, [source, "axis"] if op == "CumSum" else [source], [to], name=f"{op}-{to}")
        for source, op, to in kinds
    ]
    shape = [64, 256]
    graph = helper.make_graph(
        nodes,
        "memory",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [helper.make_tensor("axis", TensorProto.INT64, [], [1])],
    )
    path = folder / "softmaxes.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)
    np.savez(folder / "softmaxes.inputs.npz", x=np.random.default_rng(1).standard_normal(shape).astype(np.float32))
    return path


def test_operators_say_the_memory_that_they_asked_for_from_1_28_on_where_there_is_an_arena(tmp_path: Path) -> None:
    bench, model = Workbench(tmp_path), softmaxes(tmp_path)
    arms = [
        bench.arm(0, model),
        bench.arm(1, model, runtime="onnxruntime==1.20.1"),
        bench.arm(2, model, session={"arena": False}),
    ]
    found = traces(bench.execute_until(arms, TraceReport))
    assert [found[arm].reason for arm in (0, 1, 2)] == [None, None, None]
    told = {one.node: one.memory_bytes for one in found[0].operators}
    assert told["CumSum-b"] == TENSOR
    assert told["Softmax-a"] == TENSOR
    assert {one.memory_bytes for arm in (1, 2) for one in found[arm].operators} == {None}
