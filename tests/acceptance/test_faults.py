"""Nothing is lost when a process dies: each test breaks one farm of its own and sees its run end all the same."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from farm.config.embedded.supervisor import Started
from tests.acceptance.conftest import LiveFarm, live_farm

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

RELU = Path(__file__).parents[1] / "models" / "relu_op13_ir7.onnx"
# two threads: a sample of one is measured again and again while other tests keep the cores busy
ONE_CELL = {"budget": "quick", "matrix": {"runtime": ["onnxruntime==1.31.1"], "provider": ["cpu"], "threads": [2]}}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveFarm]:
    """A farm with short leases, for the tests of this module alone; each leaves it whole."""
    folder = tmp_path_factory.mktemp("broken")
    with pytest.MonkeyPatch.context() as patch:
        # long enough for a gateway to start again on a busy machine, short enough to wait for its end
        patch.setenv("ONNXFARM_LEASE_S", "12")
        patch.setenv("ONNXFARM_HOST_LOCK", str(folder / "lock"))
        yield from live_farm(folder / "home")


def process(farm: LiveFarm, name: str) -> Started:
    """The process of this name that was started last."""
    return [one for one in farm.processes.supervisor._started if one.name == name][-1]


def kill(farm: LiveFarm, name: str) -> None:
    started = process(farm, name)
    os.killpg(started.handle.pid, signal.SIGKILL)
    started.handle.wait()


def wait_for(farm: LiveFarm, run: str, holds: Callable[[dict[str, Any]], bool], *, within_s: float) -> dict[str, Any]:
    deadline = time.monotonic() + within_s
    while True:
        known: dict[str, Any] = farm.api("GET", f"/runs/{run}").json()
        if holds(known):
            return known
        assert time.monotonic() < deadline, json.dumps(known, indent=1)
        time.sleep(0.2)


def finished(farm: LiveFarm, run: str) -> dict[str, Any]:
    wait_for(farm, run, lambda known: known["state"] == "finished", within_s=200)
    document: dict[str, Any] = farm.api("GET", f"/runs/{run}/results").json()
    assert {cell["status"] for cell in document["cells"]} == {"done"}, document["cells"]
    return document


def kinds(farm: LiveFarm, run: str) -> list[str]:
    return [event["kind"] for event in farm.api("GET", f"/runs/{run}/events").json()]


def wait_until_measuring(farm: LiveFarm, run: str) -> None:
    """The run's block is leased and a runner process of this farm's agent is at work.

    A runner alone is no evidence: an agent that has just started runs its probes and self-test too.
    """
    agent = psutil.Process(process(farm, "node").handle.pid)
    deadline = time.monotonic() + 90
    while "block_leased" not in kinds(farm, run) or not agent.children(recursive=True):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_killed_agents_block_is_measured_again(broken: LiveFarm) -> None:
    run = broken.start_run(RELU, ONE_CELL)
    wait_until_measuring(broken, run)
    agent = psutil.Process(process(broken, "node").handle.pid)
    family = [agent, *agent.children(recursive=True)]
    kill(broken, "node")
    time.sleep(0.5)
    assert [one for one in family if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []
    assert broken.plan.node_home is not None
    broken.processes.start_node(broken.plan.node_home)
    finished(broken, run)
    assert kinds(broken, run).count("block_requeued") >= 1


def test_a_gateway_that_goes_away_costs_no_attempt(broken: LiveFarm) -> None:
    run = broken.start_run(RELU, ONE_CELL)
    wait_until_measuring(broken, run)
    kill(broken, "gateway")
    time.sleep(2.0)
    broken.processes.start_gateway()
    finished(broken, run)
    assert "block_requeued" not in kinds(broken, run)


def test_a_broker_that_forgets_everything_loses_no_block(broken: LiveFarm) -> None:
    kill(broken, "broker")
    broken.processes.start_broker()
    run = broken.start_run(RELU, ONE_CELL)
    kill(broken, "broker")
    time.sleep(1.0)
    broken.processes.start_broker()
    finished(broken, run)


@pytest.mark.parametrize("name", ["prepare", "ticks"])
def test_a_killed_worker_of_the_farm_loses_no_run(broken: LiveFarm, name: str) -> None:
    run = broken.start_run(RELU, ONE_CELL)
    kill(broken, name)
    time.sleep(1.0)
    getattr(broken.processes, f"start_{name}")()
    finished(broken, run)


def test_a_cancelled_run_ends_its_runner(broken: LiveFarm) -> None:
    run = broken.start_run(RELU, ONE_CELL)
    wait_until_measuring(broken, run)
    assert broken.api("POST", f"/runs/{run}/cancel", json={}).is_success
    wait_for(broken, run, lambda known: known["state"] == "finished", within_s=20)
    agent = psutil.Process(process(broken, "node").handle.pid)
    deadline = time.monotonic() + 20
    while agent.children(recursive=True):
        assert time.monotonic() < deadline
        time.sleep(0.1)
