"""Runtimes whose speed is known, measured by the real runner and judged by the real rules."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from onnxfarm.main import app
from onnxfarm.testing import FakeRuntime, Step
from tests.bench.blocks import BRIEF, shortened_windows
from tests.integration.worker.making import MODELS

MODEL = MODELS / "relu_op13_ir7.onnx"
OPENVINO = "OpenVINOExecutionProvider"


def release(version: str, *steps: Step, **other: Any) -> FakeRuntime:
    tensors = {"x": ("tensor(float)", (2, 8))}
    return FakeRuntime(inputs=tensors, outputs={"y": ("tensor(float)", (2, 8))}, steps=steps, version=version, **other)


def bench(home: Path, *words: object) -> tuple[int, dict[str, Any]]:
    out = home / "out.json"
    done = CliRunner().invoke(app, ["bench", *map(str, words), "--home", str(home), "--json", str(out)])
    assert out.exists(), done.output
    return done.exit_code, json.loads(out.read_text())


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    # made-up times need no quiet machine
    monkeypatch.setenv("ONNXFARM_HOST_LOCK", str(tmp_path / "lock"))
    with shortened_windows(BRIEF):
        yield


@pytest.mark.timeout(300)
def test_a_release_that_is_three_times_slower_is_called_slower_at_the_operator_that_is(tmp_path: Path) -> None:
    before = release("1.30.0", Step("Relu_0", "Relu", 500))
    after = release("1.31.1", Step("Relu_0", "Relu", 1500))
    for each in (before, after):
        each.install(tmp_path / "runtimes")
    # two threads: samples of one are dropped while other tests keep the cores busy
    code, document = bench(tmp_path, MODEL, "--ort", "1.30.0,1.31.1", "--threads", 2)
    (comparison,) = document["comparisons"]
    assert (code, comparison["verdict"]) == (0, "slower"), str(comparison)
    assert comparison["ratio"] > 2
    for cell, us in zip(document["cells"], (500, 1500), strict=True):
        (operator,) = cell["operators"]
        assert operator["op_type"] == "Relu"
        assert operator["time_us"] >= us


@pytest.mark.timeout(120)
def test_a_provider_that_is_in_the_build_and_does_not_start_is_no_measurement(tmp_path: Path) -> None:
    silent = release(
        "1.24.1",
        Step("Relu_0", "Relu", 100),
        distribution="onnxruntime-openvino",
        providers=(OPENVINO, "CPUExecutionProvider"),
        starts=(),
    )
    silent.install(tmp_path / "runtimes")
    code, document = bench(tmp_path, MODEL, "--ort", "onnxruntime-openvino==1.24.1", "--provider", "openvino")
    (cell,) = document["cells"]
    assert (code, cell["status"], cell["reason"]["code"]) == (1, "refused", "provider_not_active")
