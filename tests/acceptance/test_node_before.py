"""A node that nobody has updated goes on measuring for a farm that was: its own agent and runner, on real runtimes."""

from pathlib import Path

import pytest

from tests.acceptance.conftest import accepted, live_farm
from tests.chaos.releases import NoReleaseError, Release
from tests.conftest import MODELS
from tests.integration.worker.making import share_runtimes
from tests.processes import Process, wait_for

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
# the last release whose web process was gunicorn, and whose children could make sockets
BEFORE = "e675fbd56bc8327357e35199e8f289e6ecf58ea6"
MATRIX = {
    "budget": "quick",
    "matrix": {"runtime": ["onnxruntime==1.29.0", "onnxruntime==1.31.1"], "batch": [1], "threads": [1]},
}


@pytest.fixture
def before(tmp_path: Path) -> Release:
    try:
        return Release.unpacked(BEFORE, tmp_path / "before")
    except NoReleaseError as why:
        pytest.skip(str(why))


def test_a_node_of_the_release_before_measures_for_this_farm(before: Release, tmp_path: Path) -> None:
    home = tmp_path / "node"
    share_runtimes(home)
    for farm in live_farm(tmp_path / "farm", with_node=False):
        told = farm.plan.environment | {"ONNXFARM_HOST_LOCK": str(tmp_path / "lock")}
        code = accepted(farm.api("POST", "/nodes/invitations", json={}))["code"]
        enroll = ("-m", "onnxfarm.main", "node", "enroll", farm.url, "--token", code, "--name", "old")
        before.run(*enroll, "--home", str(home), environment=told)
        agent = ["python", "-m", "onnxfarm.main", "node", "start", "--home", str(home)]
        options = before.options(told)
        with Process(agent, log=tmp_path / "agent.log", **options) as process:
            [node] = farm.api("GET", "/nodes").json()
            accepted(farm.api("POST", f"/nodes/{node['id']}/approve"))
            wait_for((home / "ready").exists, what="the node", seconds=300)
            assert f"PYTHONPATH={before.root}\0" in Path(f"/proc/{process.child.pid}/environ").read_text()
            document = farm.submit(MODELS / "cnn_dyn.onnx", MATRIX, within_s=400)
        assert {cell["status"] for cell in document["cells"]} == {"done"}
        assert {cell["parity"]["verdict"] for cell in document["cells"]} == {"pass"}
        assert document["comparisons"]
