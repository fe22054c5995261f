"""The node's Celery worker on the HTTP transport, as a real process against a farm that is broken on purpose."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from farm.contract.blocks import ArmOrder, BlockOrder
from farm.contract.cells import Bundle, CellSpec, FileRef, Runtime
from onnxfarm.testing import FakeFarm
from tests.integration import small_agent
from tests.processes import wait_for

ZERO = "0" * 64
FILE = FileRef(name="m.onnx", sha256=ZERO, bytes=1)
BUNDLE = Bundle(main="m.onnx", files=(FILE,))
CELL = CellSpec(artifact_sha256=ZERO, runtime=Runtime(distribution="onnxruntime", version="1.31.1"))
ORDER = BlockOrder(block="b1", attempt=1, arms=(ArmOrder(arm=0, cell=CELL, bundle=BUNDLE, source=BUNDLE, inputs=FILE),))

pytestmark = pytest.mark.slow
StartAgent = Callable[..., ForkServerProcess]


@pytest.fixture
def farm() -> Iterator[FakeFarm]:
    with FakeFarm() as farm:
        yield farm


@pytest.fixture
def start_agent(tmp_path: Path) -> Iterator[StartAgent]:
    processes = []

    def start(url: str, *, seconds: float = 0.1) -> ForkServerProcess:
        processes.append(small_agent.start(tmp_path, url=url, seconds=seconds))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.join()


def ending(process: ForkServerProcess) -> int | None:
    """Its exit code, None when it does not end."""
    process.join(60)
    return process.exitcode


def kinds_of(farm: FakeFarm) -> list[str]:
    """The kinds of all reports that were posted, those that came again too."""
    return [post["report"]["kind"] for post in farm.asked("blocks/b1/reports")]


def spooled(folder: Path) -> list[Path]:
    return sorted((folder / "node" / "spool").glob("*.json"))


def test_a_message_becomes_a_claim_and_reports(farm: FakeFarm, start_agent: StartAgent, tmp_path: Path) -> None:
    start_agent(farm.url)
    farm.offer(ORDER)
    reports = farm.wait_for("blocks/b1/reports", count=2)
    assert farm.asked("blocks/b1/claim") == [{"attempt": 1}]
    assert [post["report"]["kind"] for post in reports] == ["facts", "end"]
    wait_for(lambda: spooled(tmp_path) == [], what="an empty spool", seconds=10)


def test_no_message_is_asked_for_while_a_block_is_measured(farm: FakeFarm, start_agent: StartAgent) -> None:
    at_the_end: list[int] = []

    def count_messages(address: str, body: Mapping[str, object]) -> None:
        if address == "blocks/b1/reports" and body["report"]["kind"] == "end":
            at_the_end.append(len(farm.asked("messages")))

    farm.instead = count_messages
    start_agent(farm.url, seconds=1.0)
    farm.offer(ORDER)
    farm.wait_for("blocks/b1/reports", count=2)
    # the one that brought the block
    assert at_the_end == [1]
    farm.wait_for("messages", count=2)


def test_heartbeats_go_on_while_a_block_is_measured(farm: FakeFarm, start_agent: StartAgent) -> None:
    farm.lease_s = 0.4
    start_agent(farm.url, seconds=60.0)
    farm.offer(ORDER)
    farm.wait_for("heartbeat", count=8)
    # it measures on
    assert len(farm.asked("blocks/b1/reports")) == 1


def test_a_heartbeat_answered_409_ends_the_measuring(farm: FakeFarm, start_agent: StartAgent) -> None:
    farm.lease_s = 0.4
    start_agent(farm.url, seconds=60.0)
    farm.offer(ORDER)
    farm.wait_for("heartbeat", count=2)
    refusal = {"detail": "The run was cancelled.", "code": "stale"}
    polls = len(farm.asked("messages"))
    farm.instead = lambda address, body: (409, refusal) if address.endswith("heartbeat") else None
    farm.wait_for("messages", count=polls + 1)


def test_a_claim_answered_409_is_dropped_and_the_next_message_taken(farm: FakeFarm, start_agent: StartAgent) -> None:
    refusal = {"detail": "Somebody else has it.", "code": "stale"}
    farm.instead = lambda address, body: (409, refusal) if address == "blocks/b1/claim" else None
    start_agent(farm.url)
    farm.offer(ORDER)
    farm.wait_for("blocks/b1/claim")
    farm.offer(ORDER.model_copy(update={"block": "b2"}))
    farm.wait_for("blocks/b2/claim")
    assert farm.asked("blocks/b1/reports") == []


def test_a_farm_that_goes_away_is_waited_for(farm: FakeFarm, start_agent: StartAgent) -> None:
    process = start_agent(farm.url)
    farm.wait_for("messages")
    port = farm.port
    farm.close()
    time.sleep(1.0)
    assert process.is_alive()
    back = FakeFarm(port=port)
    try:
        back.offer(ORDER)
        back.wait_for("blocks/b1/reports", count=2, within_s=120)
    finally:
        back.close()


def test_a_report_whose_answer_was_lost_is_sent_again(farm: FakeFarm, start_agent: StartAgent, tmp_path: Path) -> None:
    problem = {"detail": "The database is away.", "code": "unavailable"}
    farm.instead = lambda address, body: (503, problem) if address.endswith("reports") else None
    start_agent(farm.url)
    farm.offer(ORDER)
    farm.wait_for("blocks/b1/reports", count=2)
    assert len(spooled(tmp_path)) == 1
    farm.instead = lambda address, body: None
    wait_for(lambda: "end" in kinds_of(farm), what="the end of the block", seconds=15)
    assert kinds_of(farm)[-2:] == ["facts", "end"]


def test_a_report_survives_the_agent(farm: FakeFarm, start_agent: StartAgent, tmp_path: Path) -> None:
    problem = {"detail": "The database is away.", "code": "unavailable"}
    farm.instead = lambda address, body: (503, problem) if address.endswith("reports") else None
    process = start_agent(farm.url)
    farm.offer(ORDER)
    farm.wait_for("blocks/b1/reports")
    process.kill()
    process.join()
    assert [json.loads(path.read_text())["block"] for path in spooled(tmp_path)] == ["b1"]
    count = len(farm.asked("blocks/b1/reports"))
    farm.instead = lambda address, body: None
    start_agent(farm.url)
    farm.wait_for("blocks/b1/reports", count=count + 1)


def test_a_401_stops_the_agent(farm: FakeFarm, start_agent: StartAgent, tmp_path: Path) -> None:
    process = start_agent(farm.url)
    farm.wait_for("messages")
    refusal = {"detail": "This node was removed from the farm.", "code": "revoked"}
    farm.instead = lambda address, body: (401, refusal)
    farm.offer(ORDER)
    assert ending(process) == 3
    assert "removed from the farm" in (tmp_path / "stderr").read_text()


def test_a_restored_farm_that_knows_the_nodes_key_alone_gives_it_another_secret(
    farm: FakeFarm, start_agent: StartAgent
) -> None:
    process = start_agent(farm.url)
    farm.wait_for("messages")
    granted = len(farm.asked("secret"))
    unknown = {"detail": "This node's secret opens nothing.", "code": "unauthorized"}
    farm.instead = lambda address, body: (
        (401, unknown) if address != "secret" and len(farm.asked("secret")) == granted else None
    )
    farm.offer(ORDER)
    farm.wait_for("blocks/b1/reports")
    assert process.is_alive()
    # this farm's secret is always the same one: a heartbeat that was refused at the same moment asks for it too
    assert granted < len(farm.asked("secret")) <= granted + 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_measuring_agent_soon(farm: FakeFarm, start_agent: StartAgent, number: signal.Signals) -> None:
    process = start_agent(farm.url, seconds=60.0)
    farm.offer(ORDER)
    farm.wait_for("blocks/b1/reports")
    began = time.monotonic()
    os.kill(process.pid, number)
    assert ending(process) == 0
    # it would have measured for a minute
    assert time.monotonic() - began < 30
    assert farm.asked("hello")[-1]["state"] == "leaving"


def test_a_node_waits_until_it_is_approved(farm: FakeFarm, start_agent: StartAgent) -> None:
    pending = {"detail": "small waits for approval.", "code": "pending"}
    farm.instead = lambda address, body: (403, pending) if address == "secret" else None
    start_agent(farm.url)
    farm.wait_for("secret", count=2)
    assert farm.asked("messages") == []
    farm.instead = lambda address, body: None
    farm.wait_for("messages")
    assert "is approved and works for" in "".join(one["log_tail"] for one in farm.asked("hello"))


def test_a_retired_node_stops(farm: FakeFarm, start_agent: StartAgent) -> None:
    retired = {"detail": "small was removed from the farm.", "code": "retired"}
    farm.instead = lambda address, body: (403, retired) if address == "secret" else None
    assert ending(start_agent(farm.url)) == 3
