"""What further sessions and threads take, told of real sessions in a process of their own."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from farm.rules.wording.numbers import MIB
from worker.runner import footprint
from worker.runner.order import CPU, Order

WEIGHTS_MIB = 32
SESSION, THREAD = "memory_per_session_bytes", "addresses_per_thread_bytes"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process its memory this way")


def weighing(folder: Path) -> Path:
    """A product with a matrix of so many MiB, beside which nothing counts."""
    columns = WEIGHTS_MIB * MIB // 4 // 1024
    weights = np.random.default_rng(1).normal(0.0, 0.1, (1024, columns)).astype(np.float32)
    x, y = (helper.make_tensor_value_info(*one) for one in (("x", 1, [1, 1024]), ("y", 1, [1, columns])))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "weighing", [x], [y], [numpy_helper.from_array(weights, "w")]
    )
    path = folder / "weighing.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


PROGRAM = """
import json, sys
import numpy as np
from worker.runner import footprint
from worker.runner.order import CPU, Order, PhaseTimer
from worker.runner.session import SessionOrder

model, threads = sys.argv[1], int(sys.argv[2])
order = Order(kind="check", model=model, inputs="", provider=CPU, session=SessionOrder(threads=threads), batch=1)
inputs = {"x": np.ones((1, 1024), np.float32)}
first = footprint._open_session(order, inputs, threads)
limited = Order(kind="check", model=model, inputs="", provider=CPU, session=SessionOrder(memory_limit_mb=1), batch=1)
print(json.dumps([footprint.measure_for_check(one, inputs, start_ms=1.0, peak_bytes=1) for one in (order, limited)]))
"""


def told(model: Path, threads: int) -> list[dict[str, float]]:
    """The figures of a process of its own, with a limit on its memory last. However busy the machine is."""
    command = [sys.executable, "-c", PROGRAM, str(model), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found: list[dict[str, float]] = json.loads(done.stdout)
    return found


def test_a_further_session_takes_its_weights_again_and_a_further_thread_its_stack(tmp_path: Path) -> None:
    model = weighing(tmp_path)
    (alone, limited), (two, _) = told(model, 1), told(model, 2)
    # a runtime may keep a packed copy beside what it read
    assert all(WEIGHTS_MIB * MIB * 0.9 < one[SESSION] < WEIGHTS_MIB * MIB * 2.5 for one in (alone, two))
    assert alone[SESSION] == pytest.approx(two[SESSION], abs=4 * MIB)
    assert THREAD not in alone
    assert 4 * MIB < two[THREAD] < 160 * MIB
    assert limited == {}


@pytest.mark.parametrize(
    ("asked", "spent_ms", "peak_bytes"),
    [({}, 1000.0, MIB), ({}, 1.0, 2 << 30), ({"provider": "CUDAExecutionProvider"}, 1.0, MIB), ({}, 1.0, MIB)],
    ids=["slow", "large", "another provider", "no model there"],
)
def test_where_a_further_session_is_dear_or_cannot_be_opened_nothing_is_told(
    tmp_path: Path, asked: dict[str, str], spent_ms: float, peak_bytes: int
) -> None:
    given = {"provider": CPU, **asked}
    order = Order(kind="check", model=str(tmp_path / "none.onnx"), inputs="", **given)
    assert footprint.measure_for_check(order, {}, start_ms=spent_ms, peak_bytes=peak_bytes) == {}
