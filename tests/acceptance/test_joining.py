"""A second machine's owner joins from the command line alone: enrol, wait, be approved, work, be revoked."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.conftest import LiveFarm, accepted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def node(farm: LiveFarm, home: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "onnxfarm.main", "node", *words, "--home", str(home)]


def run(farm: LiveFarm, argv: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, env=farm.plan.environment, capture_output=True, text=True, check=False, timeout=180)


def start(farm: LiveFarm, home: Path, log: Path, *words: str) -> subprocess.Popen[bytes]:
    argv, environment = [*node(farm, home, "start"), *words], farm.plan.environment
    with log.open("wb") as said:
        return subprocess.Popen(argv, env=environment, stdout=said, stderr=subprocess.STDOUT, process_group=0)


def order(farm: LiveFarm, what: str) -> None:
    """What the owner of the farm orders of the second machine."""
    [second] = [one["id"] for one in farm.api("GET", "/nodes").json() if one["name"] == "second"]
    accepted(farm.api("POST", f"/nodes/{second}/{what}"))


def wait_until(holds: Callable[[], bool], *, what: str, within_s: float = 160.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def test_a_second_machine_joins_works_and_is_taken_out(farm: LiveFarm, tmp_path: Path) -> None:
    home = tmp_path / "second"
    code = accepted(farm.api("POST", "/nodes/invitations", json={}))["code"]
    # the address of the pages, as people have it in front of them
    enrolled = run(farm, [*node(farm, home, "enroll", farm.opened.url), "--token", code, "--name", "second"])
    assert enrolled.returncode == 0, enrolled.stderr
    assert f"of {farm.opened.gateway_url}" in enrolled.stdout
    assert "Ask an admin of the farm to compare it" in enrolled.stdout

    again = run(farm, [*node(farm, tmp_path / "third", "enroll", farm.opened.gateway_url), "--token", code])
    assert again.returncode == 2
    assert again.stderr.count("\n") == 1

    agent = start(farm, home, tmp_path / "log")
    try:
        wait_until(lambda: "waits for approval" in (tmp_path / "log").read_text(), what="the node asked for its secret")
        waiting = run(farm, node(farm, home, "status"))
        assert (waiting.returncode, f"running, process {agent.pid}, not ready yet" in waiting.stdout) == (1, True)
        second = run(farm, node(farm, home, "start"))
        assert (second.returncode, f"runs already (process {agent.pid})" in second.stderr) == (2, True)
        order(farm, "approve")
        wait_until(lambda: (home / "ready").exists(), what="the node is ready")
        words = (tmp_path / "log").read_text()
        assert ("second is approved and works for" in words, "Started consuming" in words) == (True, False)
        status = run(farm, node(farm, home, "status"))
        assert (status.returncode, "knows this node" in status.stdout) == (0, True)
        assert f"running, process {agent.pid}" in status.stdout

        order(farm, "drain")
        agent.terminate()
        assert agent.wait(160) == 0
        assert not (home / "ready").exists()
        agent = start(farm, home, tmp_path / "log")
        wait_until(lambda: (home / "ready").exists(), what="a draining node is ready, though it takes no block")
        draining = run(farm, node(farm, home, "status", "--json"))
        assert draining.returncode == 0
        assert json.loads(draining.stdout)["farm"] == "knows this node. Draining: accepts no new blocks."

        order(farm, "revoke")
        assert agent.wait(160) == 3
        refused = run(farm, node(farm, home, "status"))
        assert (refused.returncode, "refused" in refused.stdout, "not running" in refused.stdout) == (1, True, True)
    finally:
        if agent.poll() is None:
            os.killpg(agent.pid, signal.SIGKILL)
            agent.wait()


def test_a_code_that_nobody_made_is_refused_in_one_sentence(farm: LiveFarm, tmp_path: Path) -> None:
    done = run(farm, [*node(farm, tmp_path / "n", "enroll", farm.opened.gateway_url), "--token", "ofe_12345678"])
    assert done.returncode == 2
    assert done.stderr.startswith("onnxfarm: ")
    assert done.stderr.count("\n") == 1


def test_starting_without_enrolling_says_how_to_join(farm: LiveFarm, tmp_path: Path) -> None:
    done = run(farm, node(farm, tmp_path / "nobody", "start"))
    assert done.returncode == 2
    assert "onnxfarm node enroll URL --token CODE" in done.stderr


@pytest.mark.parametrize("url", ["farm.example", "http://farm.example"])
def test_a_bad_address_is_a_usage_error(farm: LiveFarm, tmp_path: Path, url: str) -> None:
    done = run(farm, [*node(farm, tmp_path / "n", "enroll", url), "--token", "ofe_12345678"])
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
