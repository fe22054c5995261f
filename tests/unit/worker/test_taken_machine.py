"""An agent whose machine another program holds gives blocks back, and its log says it once."""

import logging
import threading
import time
from typing import Any

import pytest

from worker.agent import measure_task
from worker.agent.connection import gateway as farm
from worker.agent.connection.presence import Presence
from worker.agent.machine import host_lock


class Nobody:
    """A farm whose blocks are somebody else's."""

    def claim(self, block: str, *, attempt: int) -> None:
        raise farm.LeaseLostError("Block b2 is measured by another node.")


def test_a_machine_that_is_taken_is_logged_when_it_begins_and_when_it_ends(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(tmp_path / "lock"))
    told: list[str] = []
    measurer = measure_task.Measurer(
        gateway=Nobody(),
        outbox=None,
        execute=None,
        stop=threading.Event(),
        on_refused=told.append,
        on_wait=told.append,
        lock_patience_s=0.05,
    )
    with caplog.at_level(logging.INFO, logger="worker.agent.measure_task"):
        with host_lock.hold_machine(patience_s=1.0):
            for _ in range(3):
                measurer.measure("b1", 1)
        assert [record.getMessage().split(":")[0] for record in caplog.records] == ["Blocks wait, first of them b1"]
        measurer.measure("b2", 1)
        measurer.measure("b2", 1)
    lines = [record.getMessage() for record in caplog.records][1:]
    assert lines[0].startswith("The machine is free again, after about ")
    assert [line.startswith("Block b2 is not for this node") for line in lines] == [False, True, True]
    assert told[-1] == ""


def test_what_a_node_waited_for_is_said_no_longer_than_it_is_known() -> None:
    """A hello repeated for minutes that a gate measures, which had ended."""
    nothing: Any = None
    presence = Presence(nothing, nothing, nothing, facts=nothing, runtimes=nothing, block=nothing, log_tail=nothing)
    presence.waits_for, presence.waits_until = "`onnxfarm gate` has been measuring", time.monotonic() + 60.0
    assert presence.doing
    presence.waits_until = time.monotonic()
    assert presence.doing == ""
