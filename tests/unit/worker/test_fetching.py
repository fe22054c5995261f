"""A node fetches a block's files from a gateway that may be busy, or be started anew."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import httpx2
import pytest

from farm.contract.blocks import Lease
from farm.workshop.divergence import find_first_divergence
from worker.agent.connection.gateway import Gateway
from worker.agent.equipment import NodeEquipment
from worker.agent.home import NodeHome
from worker.agent.installation.cache import FetchError

FARM = "http://127.0.0.1:9"
DIGEST = "a" * 64
TOO_MANY = {"detail": "This node asks too often.", "code": "too_many", "hint": "Wait, then send the same again."}


def equipped(home: Path, *, busy_s: float, sleep: Callable[[float], None] = time.sleep) -> NodeEquipment:
    """At a farm that asks for patience for so long since the first question."""
    asked_at: list[float] = []

    def answer(_: httpx2.Request) -> httpx2.Response:
        asked_at.append(time.monotonic())
        if asked_at[-1] - asked_at[0] < busy_s:
            return httpx2.Response(429, json=TOO_MANY, headers={"Retry-After": "1"})
        return httpx2.Response(200, content=b"onnx")

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    gateway = Gateway(FARM, secret="ofn_1", client=client)
    made = NodeEquipment(NodeHome(home), gateway, search=find_first_divergence, sleep=sleep)
    made._lease = cast(Lease, SimpleNamespace(token="ofa_1"))
    return made


def test_a_node_that_was_told_to_wait_waits_instead_of_giving_up_its_block(tmp_path: Path) -> None:
    equipped(tmp_path, busy_s=1.0)._fetch(DIGEST, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == b"onnx"


def test_a_farm_that_stays_away_is_a_reason_with_its_words(tmp_path: Path) -> None:
    paused: list[float] = []
    with pytest.raises(FetchError, match="asks too often"):
        equipped(tmp_path, busy_s=60, sleep=paused.append)._fetch(DIGEST, tmp_path / "model.onnx")
    assert paused == sorted(paused)
    assert len(paused) == 4
