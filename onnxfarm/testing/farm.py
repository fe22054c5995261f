"""A farm in memory for tests of nodes: it serves the node API of `farm.contract.node` over real HTTP.

It refuses invalid requests as a farm does: a body that does not fit the contract with 422, a stale token with 409. It
offers the blocks that the test gives it, and stores the reports, without judging them.
"""

import base64
import hashlib
import json
import queue
import threading
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Self, TypeVar

from pydantic import BaseModel, ValidationError

from farm.contract import node as messages
from farm.contract import signatures
from farm.contract.blocks import BlockOrder, Lease
from farm.contract.cells import FileRef
from farm.contract.reports import Reply, Report, RoundReport
from farm.contract.version import MEASURE_TASK, name_node_queue
from onnxfarm.testing.http import Request, Response, Server

Body = TypeVar("Body", bound=BaseModel)
# a function of a request's address and JSON; it returns a status and JSON, or None to let the farm answer
Instead = Callable[[str, Mapping[str, object]], "tuple[int, Mapping[str, object] | None] | None"]

NODE_ID = "7"
SECRET = "ofn_fake"
TOKEN = "fake-token"


class _RefusedError(Exception):
    """The farm refuses a request: the HTTP status, and the fields of a Problem."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


class FakeFarm:
    """A farm with one node, which may have any name. `offer` gives it a block, and `reports` returns what it reported.

    It serves as soon as it is made, until `close`. `port` 0: any free port. `health`: what the farm says about the
    node. `lease_s`: the seconds for which the node keeps a block without a heartbeat. `rounds`: after how many rounds
    the farm stops a block. `instead`: answers requests in place of the farm, so that a test can simulate failures.
    `hellos` and `traces`: what the node sent, the traces by SHA-256. `reports` returns the reports about a block in the
    order in which they came; none for an unknown block.
    """

    def __init__(self, *, port: int = 0, rounds: int = 1, lease_s: float = 2.0) -> None:
        self.health: messages.Health = "active"
        self.rounds, self.lease_s = rounds, lease_s
        self.instead: Instead = lambda address, body: None
        self.hellos: list[messages.Hello] = []
        self.traces: dict[str, bytes] = {}
        self._requests: list[tuple[str, dict[str, object]]] = []
        self._changed = threading.Condition()
        self._offers: queue.Queue[tuple[str, int]] = queue.Queue()
        self._orders: dict[str, BlockOrder] = {}
        self._reports: dict[str, list[Report]] = {}
        self._files: dict[str, bytes] = {}
        self._public_key = ""
        self._server = Server(port, self._answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.cut()

    def offer(self, order: BlockOrder) -> None:
        """Offer a block to the node, once per call."""
        self._orders[order.block] = order
        self._offers.put((order.block, order.attempt))

    def add_file(self, content: bytes, *, name: str = "file") -> FileRef:
        """Add a file that nodes may download, and return its reference for an order."""
        digest = hashlib.sha256(content).hexdigest()
        self._files[digest] = content
        return FileRef(name=name, sha256=digest, bytes=len(content))

    def reports(self, block: str) -> list[Report]:
        return list(self._reports.get(block, []))

    def asked(self, ending: str) -> list[dict[str, object]]:
        """Return the JSON bodies of all requests so far whose address ends with `ending`, in their order."""
        return [body for address, body in list(self._requests) if address.endswith(ending)]

    def wait_for(self, ending: str, *, count: int = 1, within_s: float = 120.0) -> list[dict[str, object]]:
        """Wait for at least `count` requests whose address ends with `ending`, and return their bodies as `asked` does.

        Earlier requests count. Raises AssertionError after `within_s` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.asked(ending)) >= count, timeout=within_s):
                came = [address for address, _ in self._requests]
                raise AssertionError(f"{count} requests to …{ending} did not come within {within_s:g} s, but {came}.")
        return self.asked(ending)

    def _answer(self, request: Request) -> Response:
        body = request.json
        with self._changed:
            self._requests.append((request.address, body))
            self._changed.notify_all()
        instead = self.instead(request.address, body)
        if instead is not None:
            return Response.of(*instead)
        try:
            return self._answer_as_farm(request)
        except _RefusedError as refusal:
            problem = messages.Problem(detail=refusal.detail, code=refusal.code)
            return Response.of(refusal.status, problem.model_dump(mode="json"))

    def _answer_as_farm(self, request: Request) -> Response:
        if request.address == "enrol":
            return _make_response(self._enrol(_parse_body(request, messages.Enrolment)), status=201)
        if request.address == "secret":
            return _make_response(self._grant(_parse_body(request, messages.SecretRequest)))
        if request.headers.get("authorization") != f"Bearer {SECRET}":
            raise _RefusedError(401, "unknown", "No node has this secret.")
        if request.address == "hello":
            self.hellos.append(_parse_body(request, messages.Hello))
            queues = (name_node_queue(NODE_ID), "tag.cpu") if self.health == "active" else ()
            return _make_response(messages.Welcome(health=self.health, queues=queues))
        if request.address == "messages":
            return self._offer_message(wait_s=request.number("wait"))
        if request.address.startswith("files/"):
            return self._send_file(request.address.removeprefix("files/"))
        return self._answer_about_block(request)

    def _enrol(self, enrolment: messages.Enrolment) -> messages.Enrolled:
        self._public_key = enrolment.public_key
        return messages.Enrolled(
            node_id=NODE_ID, health=self.health, fingerprint=signatures.make_fingerprint(enrolment.public_key)
        )

    def _grant(self, request: messages.SecretRequest) -> messages.SecretGrant:
        signed = messages.make_secret_message(request.node_id, request.signed_at)
        if not signatures.is_signature_valid(self._public_key, signed, request.signature):
            raise _RefusedError(403, "signature", "The signature is not of the key that this node enrolled with.")
        if self.health == "pending":
            raise _RefusedError(403, "pending", "Nobody has approved this node.")
        now = datetime.now(UTC)
        return messages.SecretGrant(
            secret=SECRET, rotate_at=now + timedelta(days=60), expires_at=now + timedelta(days=90)
        )

    def _offer_message(self, *, wait_s: float) -> Response:
        try:
            block, attempt = self._offers.get(timeout=min(wait_s, messages.MAX_WAIT_S) or 0.001)
        except queue.Empty:
            return Response.of(204, None)
        return _make_response(
            messages.Offer(queue=name_node_queue(NODE_ID), message=_make_celery_message(block, attempt))
        )

    def _send_file(self, digest: str) -> Response:
        if digest not in self._files:
            raise _RefusedError(404, "missing", f"No order of this farm names a file {digest}.")
        return Response(200, self._files[digest], "application/octet-stream")

    def _answer_about_block(self, request: Request) -> Response:
        kind, _, remaining = request.address.partition("/")
        block, _, action = remaining.partition("/")
        order = self._orders.get(block)
        if kind != "blocks" or order is None:
            raise _RefusedError(404, "missing", f"There is no {request.address}.")
        if action == "claim":
            attempt = _parse_body(request, messages.ClaimRequest).attempt
            _refuse_unless(attempt == order.attempt, f"Attempt {attempt} of block {block} is over.")
            return _make_response(Lease(order=order, token=TOKEN, lease_s=self.lease_s))
        token = request.headers.get(messages.ATTEMPT_TOKEN_HEADER.lower())
        _refuse_unless(token == TOKEN, f"Block {block} is another attempt's.")
        if action == "heartbeat":
            _parse_body(request, messages.HeartbeatRequest)
            return _make_response(messages.HeartbeatReply(lease_s=self.lease_s))
        if action == "reports":
            return _make_response(self._take_report(block, _parse_body(request, messages.ReportPost).report))
        digest = hashlib.sha256(request.content).hexdigest()
        self.traces[digest] = request.content
        return _make_response(messages.TraceStored(sha256=digest))

    def _take_report(self, block: str, report: Report) -> Reply:
        reports = self._reports.setdefault(block, [])
        reports.append(report)
        measured = sum(isinstance(earlier, RoundReport) for earlier in reports)
        return Reply(go_on=measured < self.rounds)


def _parse_body(request: Request, shape: type[Body]) -> Body:
    try:
        return shape.model_validate_json(request.content)
    except ValidationError as problem:
        raise _RefusedError(422, "invalid", f"This is not a {shape.__name__}: {problem}") from problem


def _make_response(answer: BaseModel, *, status: int = 200) -> Response:
    return Response(status, answer.model_dump_json().encode())


def _refuse_unless(is_right: bool, sentence: str) -> None:
    if not is_right:
        raise _RefusedError(409, "stale", sentence)


def _make_celery_message(block: str, attempt: int) -> dict[str, object]:
    """Make the message of a task as kombu's Redis transport stores it."""
    body = json.dumps([[], {"block": block, "attempt": attempt}, {"callbacks": None, "errbacks": None}])
    identity = str(uuid.uuid4())
    return {
        "body": base64.b64encode(body.encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {"lang": "py", "task": MEASURE_TASK, "id": identity, "retries": 0, "timelimit": [None, None]},
        "properties": {
            "correlation_id": identity,
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": name_node_queue(NODE_ID)},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": str(uuid.uuid4()),
        },
    }
