"""What Qualcomm's provider compiled, from a cell to a file and back: `bash deploy/test --long compiled`.

The node simulates the device (`node start --probe qnn`): what is compiled is real, and its latency is nobody's.
"""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.conftest import LiveFarm, accepted, live_farm
from tests.acceptance.test_joining import node, order, run, start, wait_until
from tests.conftest import MODELS
from tests.integration.worker.making import share_runtimes

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1200)]
ASKED = {"runtime": ["onnxruntime-qnn==2.7.0"], "hardware": ["qnn-simulated"], "batch": [1], "threads": [1]}
WITHIN_S = 600.0


def has_proven(farm: LiveFarm, tag: str) -> bool:
    return any(tag in one["tags"] for one in farm.api("GET", "/nodes").json())


def test_what_was_compiled_is_downloaded_and_measured_again_on_that_provider_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONNXFARM_HOST_LOCK", str(tmp_path / "lock"))
    home, log, compiled = tmp_path / "second", tmp_path / "log", tmp_path / "net_ctx.onnx"
    for farm in live_farm(tmp_path / "home", with_node=False):
        code = accepted(farm.api("POST", "/nodes/invitations", json={}))["code"]
        enrolled = run(farm, [*node(farm, home, "enroll", farm.opened.url), "--token", code, "--name", "second"])
        assert enrolled.returncode == 0, enrolled.stderr
        share_runtimes(home)
        agent = start(farm, home, log, "--probe", "qnn")
        try:
            wait_until(lambda: "waits for approval" in log.read_text(), what="the node waits", within_s=WITHIN_S)
            order(farm, "approve")
            wait_until(partial(has_proven, farm, "qnn-simulated"), what="qnn is proven", within_s=WITHIN_S)
            matrix = {"matrix": {**ASKED, "provider": ["qnn"], "precision": ["fp16"]}, "budget": "glance"}
            first = farm.submit(MODELS / "cnn_fixed_b1.onnx", matrix, within_s=WITHIN_S)
            (cell,) = first["cells"]
            assert (cell["status"], cell["simulated"], cell["parity"]["verdict"]) == ("done", True, "pass"), cell
            told = accepted(farm.api("GET", f"/runs/{first['run']}/cells/{cell['id']}/compiled"))
            assert told["sentence"].startswith("Compiled by QNNExecutionProvider (")
            assert "of onnxruntime-qnn 2.7.0 on ONNX Runtime 1.31.1, for a simulator on x86." in told["sentence"]
            farm.command("results", str(first["run"]), "--compiled", cell["id"], "-o", str(compiled))
            assert compiled.stat().st_size == told["bytes"]
            matrix = {"matrix": {**ASKED, "provider": ["qnn", "cpu"]}, "budget": "glance"}
            again = farm.submit(compiled, matrix, within_s=WITHIN_S)
        finally:
            os.killpg(agent.pid, signal.SIGTERM)
            agent.wait(160)
    cells = {one["provider"]: one for one in again["cells"]}
    assert (cells["QNNExecutionProvider"]["status"], cells["QNNExecutionProvider"]["simulated"]) == ("done", True)
    refused = cells["CPUExecutionProvider"]
    assert refused["status"] == "refused"
    said = "net_ctx.onnx holds code that was compiled for QNNExecutionProvider, SDK "
    assert refused["reason"]["text"].startswith(said), refused
    assert refused["reason"]["text"].endswith("set `provider: qnn`, or upload the model that it was compiled from.")
