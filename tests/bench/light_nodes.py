"""Light nodes: the real protocol without a Celery worker and without a runner, a thousand of them in one process.

Each has a key pair, enrols with a code, signs for its secret, says hello, long-polls, and of every block it is offered
claims, heartbeats and reports made-up samples. One connection a node, by hand, so that a thousand cost little.
"""

import asyncio
import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from farm.contract import node as messages
from farm.contract import signatures
from farm.contract.version import CONTRACT_VERSION
from farm.rules.judging.summaries import pack_timings

PREFIX = "/api/node/v1/"
CPU = "CPUExecutionProvider"


class Answer(NamedTuple):
    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


class Broken(Exception):
    """The connection ended, or the answer was none."""


@dataclass
class Tally:
    """What all nodes saw. Times in seconds."""

    claim_s: list[float] = field(default_factory=list)
    claim_delays: dict[str, float] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    done: int = 0
    working: int = 0
    most_working: int = 0

    def count(self, what: str, status: int) -> None:
        name = f"{what} {status}"
        self.statuses[name] = self.statuses.get(name, 0) + 1


class LightNode:
    """One node. `block_s`: how long it takes for a block, spread over its rounds."""

    def __init__(self, number: int, *, port: int, code: str, tally: Tally, block_s: float) -> None:
        self._name = f"light-{number}"
        self._port, self._code, self._tally, self._block_s = port, code, tally, block_s
        self._dice = random.Random(number)
        self._private = signatures.make_private_key()
        self._secret = ""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._lock = asyncio.Lock()
        self._facts = {"hostname": self._name, "os": "Linux", "arch": "x86_64", "sandbox": "landlock"}
        self._hello_due = 0.0

    async def join(self) -> None:
        """Enrols and gets a secret for a signature."""
        body = {
            "code": self._code,
            "name": self._name,
            "public_key": signatures.derive_public_key(self._private),
            "facts": self._facts,
            "contract_version": CONTRACT_VERSION,
        }
        node_id = (await self._post("enrol", body, wanted=201)).json["node_id"]
        moment = int(time.time())
        signature = signatures.sign(self._private, messages.make_secret_message(node_id, moment))
        asked = {"node_id": node_id, "signed_at": moment, "signature": signature}
        self._secret = (await self._post("secret", asked)).json["secret"]
        await self._hello()

    async def live(self, stop: asyncio.Event) -> None:
        """Polls and works until `stop`."""
        while not stop.is_set():
            if time.monotonic() > self._hello_due:
                await self._hello()
            answer = await self._send("GET", "messages?wait=25", b"")
            self._tally.count("poll", answer.status)
            if answer.status == 200:
                await self._work(answer.json["message"])

    def hang_up(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _hello(self) -> None:
        tags = {"cpu": "made up", "x86": "x86_64"}
        body = {"contract_version": CONTRACT_VERSION, "facts": self._facts, "tags": tags, "providers": [CPU]}
        welcome = (await self._post("hello", body)).json
        # spread, as nodes are that were not all started in the same second
        self._hello_due = time.monotonic() + welcome["settings"]["hello_every_s"] * self._dice.uniform(0.7, 1.0)

    async def _work(self, message: Mapping[str, Any]) -> None:
        kwargs = _kwargs(message)
        asked_at = time.monotonic()
        answer = await self._send("POST", f"blocks/{kwargs['block']}/claim", _json({"attempt": kwargs["attempt"]}))
        took_s = time.monotonic() - asked_at
        self._tally.count("claim", answer.status)
        if answer.status != 200:
            return
        self._tally.claim_s.append(took_s)
        self._tally.working += 1
        self._tally.most_working = max(self._tally.most_working, self._tally.working)
        beating = asyncio.create_task(self._beat(answer.json))
        try:
            await self._measure(answer.json)
        finally:
            beating.cancel()
            self._tally.working -= 1

    async def _measure(self, lease: Mapping[str, Any]) -> None:
        order, arms = lease["order"], [arm["arm"] for arm in lease["order"]["arms"]]
        await self._report(lease, {"kind": "facts", "facts": self._facts})
        for arm in arms:
            check = {"kind": "check", "arm": arm, "requested_providers": [CPU], "active_providers": [CPU]}
            await self._report(lease, check)
        number, reply = order["first_round"], {"go_on": True}
        while reply["go_on"]:
            await asyncio.sleep(self._block_s / 8 * self._dice.uniform(0.5, 1.5))
            self._dice.shuffle(arms)
            places = [{"arm": arm, "position": place, "sample": self._sample()} for place, arm in enumerate(arms)]
            reply = await self._report(lease, {"kind": "round", "round": number, "samples": places})
            number += 1
        await self._report(lease, {"kind": "end", "wall_s": self._block_s})
        self._tally.done += 1

    async def _beat(self, lease: Mapping[str, Any]) -> None:
        order = lease["order"]
        while True:
            await asyncio.sleep(lease["lease_s"] / 4)
            body = _json({"attempt": order["attempt"]})
            answer = await self._send("POST", f"blocks/{order['block']}/heartbeat", body, token=lease["token"])
            self._tally.count("heartbeat", answer.status)

    async def _report(self, lease: Mapping[str, Any], report: Mapping[str, Any]) -> dict[str, Any]:
        order = lease["order"]
        body = _json({"attempt": order["attempt"], "report": report})
        answer = await self._send("POST", f"blocks/{order['block']}/reports", body, token=lease["token"])
        self._tally.count("report", answer.status)
        if answer.status != 200:
            raise Broken(f"report {report['kind']}: {answer.status} {answer.body[:300]!r}")
        reply: dict[str, Any] = answer.json
        return reply

    def _sample(self) -> dict[str, Any]:
        """Samples of half a millisecond within half a percent."""
        nanoseconds = round(500_000 * self._dice.uniform(0.995, 1.005))
        p50_ms = nanoseconds / 1e6
        timings = pack_timings(np.full(4, nanoseconds).tolist())
        known = dict.fromkeys(("p50_ms", "mean_ms", "min_ms", "max_ms"), p50_ms)
        return {**known, "std_ms": 0.0, "n": 4, "timings": timings}

    async def _post(self, address: str, body: Mapping[str, Any], *, wanted: int = 200) -> Answer:
        answer = await self._send("POST", address, _json(body))
        self._tally.count(address, answer.status)
        if answer.status != wanted:
            raise Broken(f"{address}: {answer.status} {answer.body[:300]!r}")
        return answer

    async def _send(self, method: str, address: str, body: bytes, *, token: str = "") -> Answer:
        """One request; a connection that the farm closed meanwhile is opened again, once."""
        head = [f"{method} {PREFIX}{address} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
        head += [f"Authorization: Bearer {self._secret}"] if self._secret else []
        head += ["Content-Type: application/json"] if body else []
        head += [f"{messages.ATTEMPT_TOKEN_HEADER}: {token}"] if token else []
        request = "\r\n".join([*head, "", ""]).encode() + body
        async with self._lock:
            for is_last in (False, True):
                try:
                    return await self._exchange(request)
                except (OSError, asyncio.IncompleteReadError) as problem:
                    self.hang_up()
                    if is_last:
                        raise Broken(f"{address}: {problem}") from problem
        raise AssertionError("unreachable")

    async def _exchange(self, request: bytes) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(request)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection", "").lower() == "close":
            self.hang_up()
        return Answer(int(lines[0].split()[1]), body)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _kwargs(message: Mapping[str, Any]) -> dict[str, Any]:
    """The hint in a message as kombu wrote it."""
    import base64

    arguments = json.loads(base64.b64decode(message["body"]))[1]
    return {"block": arguments["block"], "attempt": arguments["attempt"]}
