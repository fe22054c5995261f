"""Operators whose speed is known, traced in every round by the real runner, and judged one by one."""

from pathlib import Path

import pytest

from onnxfarm.testing import FakeRuntime, Step
from tests.integration.testing.test_fake_runtime import MODEL, bench
from tests.integration.testing.test_fake_runtime import _short as _short

TENSOR = {"x": ("tensor(float)", (2, 8))}
MICROSECONDS = {"mm": 600.0, "norm": 60.0, "soft": 240.0}


def install(home: Path, version: str, **slower: float) -> None:
    times = {**MICROSECONDS, **slower}
    steps = [Step(name, name.title(), us) for name, us in times.items()]
    outputs = {"y": ("tensor(float)", (2, 8))}
    FakeRuntime(inputs=TENSOR, outputs=outputs, steps=steps, version=version).install(home / "runtimes")


@pytest.mark.timeout(300)
def test_an_operator_that_became_slower_is_called_at_its_node_by_the_rounds_of_the_comparison(tmp_path: Path) -> None:
    install(tmp_path, "1.30.0")
    install(tmp_path, "1.31.1", norm=120.0)
    # two threads: samples of one are dropped while other tests keep the cores busy
    options = ["--ort", "1.30.0,1.31.1", "--threads", 2, "--operators"]
    code, document = bench(tmp_path, MODEL, *options)
    (comparison,) = document["comparisons"]
    by_node = {one["node"]: one for one in comparison["operators"]}
    assert (code, set(by_node)) == (0, set(MICROSECONDS)), str(comparison)
    norm = by_node["norm"]
    assert (norm["verdict"], norm["op_type"], norm["rounds"]) == ("slower", "Norm", 8), str(comparison)
    assert 1.3 < norm["ci_low"] <= norm["ratio"] <= norm["ci_high"] < 3
    assert comparison["traces"] == 8


@pytest.mark.timeout(300)
def test_without_operators_asked_for_no_launch_is_traced(tmp_path: Path) -> None:
    install(tmp_path, "1.30.0")
    install(tmp_path, "1.31.1")
    _, document = bench(tmp_path, MODEL, "--ort", "1.30.0,1.31.1", "--threads", 2)
    (comparison,) = document["comparisons"]
    assert comparison["operators"]
    assert all("verdict" not in one and "rounds" not in one for one in comparison["operators"])
