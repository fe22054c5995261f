"""How a gateway ends while nodes wait: soon, and each node hears that there is nothing."""

import contextlib
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from farm.accounts.models import Team
from farm.config.embedded.plan import find_free_port
from farm.fleet.models import Node
from tests.conftest import PROJECT, farm_environment
from tests.integration.node_api.test_gateway import Gateway, known_node
from tests.processes import PATIENCE, Process, wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_broker")]


def test_a_gateway_ends_while_nodes_wait(team: Team, tmp_path: Path) -> None:
    node = known_node(team)
    port = find_free_port()
    command = [sys.executable, "-m", "farm.config.server", "gateway", "--port", str(port), "--log-level", "info"]
    with Process(command, env=farm_environment(), log=tmp_path / "other.log", cwd=PROJECT) as process:
        wait_for(lambda: "running on" in process.log(), what="the gateway", seconds=30)
        other = Gateway(process, port)
        threading.Thread(target=lambda: _quietly(other, node), daemon=True).start()
        time.sleep(0.5)
        os.kill(process.child.pid, signal.SIGTERM)
        process.child.wait(PATIENCE * 15)


def test_a_node_that_waits_when_a_gateway_ends_hears_that_there_is_nothing(team: Team, tmp_path: Path) -> None:
    node = known_node(team)
    port = find_free_port()
    command = [sys.executable, "-m", "farm.config.server", "gateway", "--port", str(port), "--log-level", "info"]
    command += ["--stop-within", "1"]
    with Process(command, env=farm_environment(), log=tmp_path / "other.log", cwd=PROJECT) as process:
        wait_for(lambda: "running on" in process.log(), what="the gateway", seconds=30)
        other = Gateway(process, port)
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(other.poll, node, wait="25")
            time.sleep(1)
            os.kill(process.child.pid, signal.SIGTERM)
            assert waiting.result(PATIENCE * 15).status_code == 204
        process.child.wait(PATIENCE * 15)
        assert "Exception" not in process.log()


def _quietly(gateway: Gateway, node: Node) -> None:
    with contextlib.suppress(httpx2.TransportError):
        gateway.poll(node, wait="3")
