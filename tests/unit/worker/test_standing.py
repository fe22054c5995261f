"""Where a node stands, as far as its own folder knows it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from worker.agent.connection import node_status
from worker.agent.home import Identity, NodeHome
from worker.node import EXIT_USAGE


@pytest.fixture
def home(tmp_path: Path) -> NodeHome:
    made = NodeHome(tmp_path)
    made.store_identity(
        Identity(url="https://farm.example", node_id="7", name="bench", private_key="x", fingerprint="aa:bb")
    )
    return made


def test_a_node_whose_agent_runs_waits_for_approval_and_nothing_else(home: NodeHome) -> None:
    with home.hold():
        found = node_status.read_status(home)
    assert found.farm_answer == "waits for approval by its fingerprint"
    assert found.as_plain()["is_known"] is False


def test_a_node_that_was_never_started_may_be_either(home: NodeHome) -> None:
    assert node_status.read_status(home).farm_answer == "waits for approval, or was never started: it has no secret"


def test_an_agent_of_a_folder_in_use_ends_with_a_sentence(home: NodeHome) -> None:
    with home.hold():
        ended = subprocess.run(
            [sys.executable, "-m", "worker.node", "--home", str(home.folder)],
            cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert ended.returncode == EXIT_USAGE
    assert "runs already" in ended.stderr
    assert "Traceback" not in ended.stderr
