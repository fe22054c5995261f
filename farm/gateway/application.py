"""The nodes' gateway: it identifies the node first, then checks how much it may send, and only then reads a body.

It is a plain ASGI application in front of Django. `GET /api/node/v1/messages`, the long poll on which a thousand nodes
wait, is answered here, because a waiting node should cost no more than a coroutine (farm.gateway.dispatch decides which
node gets which block). Other addresses of nodes go to Django in a thread (farm.gateway.calls), and files of the store
to Django's own ASGI handler. Addresses that are not for nodes are not served.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import parse_qs

from django.db import InterfaceError, OperationalError

from farm.base.asgi import Scope, read_header
from farm.base.bodies import ClientGoneError, Receive, check_length, drain_body, read_body, spool_body
from farm.base.errors import DATABASE_AWAY
from farm.base.refusals import Away, Missing, Refusal, TooMany
from farm.contract.node import ATTEMPT_TOKEN_HEADER, MAX_WAIT_S, Problem, SecretRequest
from farm.fleet.models import Node
from farm.fleet.services import log_refusal
from farm.gateway.admission import Admission, read_node_secret
from farm.gateway.calls import Answer, CallHandler, ThreadHandler, UploadHandler
from farm.gateway.dispatch import Exchange
from farm.gateway.endpoints import PREFIX, Endpoint, Way, find_endpoints
from farm.registry.storage import incoming_dir
from farm.runs.services import find_claim

# open long polls of one node; a newer one ends the oldest
MAX_OF_NODE = 2
log = logging.getLogger(__name__)
# how long a poll waits that does not say how long
DEFAULT_WAIT_S = 25.0
# the code with which farm.fleet.services.grant_secret refuses
PENDING = "pending"
SERVED_HERE = "Only nodes are served here; open the farm's own address for its pages and its API."

Send = Callable[[Mapping[str, object]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class LongPolls:
    """The open long polls of one gateway process. Use it in the event loop alone."""

    def __init__(self) -> None:
        self._open: dict[int, list[asyncio.Future[None]]] = {}

    @contextmanager
    def open(self, node: int) -> Iterator[asyncio.Future[None]]:
        """Register a poll of a node. The future that this yields is done once MAX_OF_NODE newer ones are open."""
        superseded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        polls = self._open.setdefault(node, [])
        polls.append(superseded)
        for older in polls[:-MAX_OF_NODE]:
            if not older.done():
                older.set_result(None)
        try:
            yield superseded
        finally:
            polls.remove(superseded)
            if not polls:
                self._open.pop(node, None)


class WrongMethodError(Refusal):
    """The refusal of a method that an address does not take."""

    status = 405
    default_code = "method_not_allowed"


class Visit:
    """A request with its endpoint and its secret. `node` is the id of its node, None until it is identified."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, *, endpoint: Endpoint) -> None:
        self.scope, self.receive, self.send = scope, receive, send
        self.endpoint = endpoint
        self.secret = read_node_secret(scope)
        self.node: int | None = None


class Gateway:
    """The ASGI application. Django's own handler `django` streams files; `handler` answers all other calls."""

    def __init__(self, django: Application, handler: ThreadHandler) -> None:
        self._django = django
        self._calls, self._uploads = CallHandler(handler), UploadHandler(handler)
        self._admission, self._polls = Admission(), LongPolls()
        self._started_exchange: Exchange | None = None
        self._handlers = {Way.CALL: self._answer_call, Way.UPLOAD: self._take_upload, Way.FILE: self._stream_file}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._handle_lifespan(receive, send)
        elif scope["type"] == "http":
            try:
                await self._serve(Visit(scope, receive, send, endpoint=_find_endpoint(scope)))
            except Refusal as refusal:
                await drain_body(scope, receive)
                await _refuse(send, refusal)
            except (OperationalError, InterfaceError) as problem:
                log.error("%s %s: the database does not answer: %s", scope["method"], scope["path"], problem)
                await _refuse(send, Away(DATABASE_AWAY, code="database_away"))
            except ClientGoneError:
                return

    async def _serve(self, visit: Visit) -> None:
        """Identify the sender, charge the request, and answer it in the way of its endpoint."""
        endpoint = visit.endpoint
        if endpoint.way is Way.POLL:
            await self._poll(visit)
        elif endpoint.is_open:
            await self._answer_stranger(visit)
        else:
            visit.node = await self._admission.identify(visit.scope, self._exchange.ask_database)
            self._admission.charge_request(endpoint, visit.node)
            await self._answer_node(visit, visit.node)

    async def _answer_stranger(self, visit: Visit) -> None:
        """Answer a machine without a secret, and refund its address where it is a node or waits to become one."""
        self._admission.charge_stranger(visit.scope)
        check_length(visit.scope, max_bytes=visit.endpoint.max_bytes)
        with self._admission.hold_stranger_place(visit.scope):
            body = await read_body(visit.receive, max_bytes=visit.endpoint.max_bytes, max_s=visit.endpoint.body_s)
            answer = await self._calls.answer(visit.scope, body, visit.endpoint.priority)
            waiting = _find_waiting_node(body, answer)
            if waiting is not None:
                self._admission.charge_waiting_node(visit.scope, waiting)
            elif answer[0] < 400:
                self._admission.refund_stranger(visit.scope)
            await _send_answer(visit.send, answer)

    async def _answer_node(self, visit: Visit, node: int) -> None:
        """Answer a node. A refusal of the gateway itself is logged like one of Django's."""
        try:
            check_length(visit.scope, max_bytes=visit.endpoint.max_bytes)
            with self._admission.hold_place(visit.endpoint, node):
                status = await self._handlers[visit.endpoint.way](visit)
        except Refusal as refusal:
            if not isinstance(refusal, TooMany):
                await self._exchange.ask_database(_log_refusal, visit, refusal)
            raise
        if status == 401:
            self._admission.forget(visit.secret)
        elif status < 400:
            self._admission.remember(visit.secret, node)

    async def _answer_call(self, visit: Visit) -> int:
        body = await read_body(visit.receive, max_bytes=visit.endpoint.max_bytes, max_s=visit.endpoint.body_s)
        if visit.node is not None:
            self._admission.charge_bytes(visit.endpoint, visit.node, bytes_read=len(body))
        return await _send_answer(visit.send, await self._calls.answer(visit.scope, body, visit.endpoint.priority))

    async def _take_upload(self, visit: Visit) -> int:
        endpoint, folder = visit.endpoint, str(incoming_dir())
        await self._exchange.ask_database(_check_holds_block, visit)
        body = await spool_body(visit.receive, max_bytes=endpoint.max_bytes, max_s=endpoint.body_s, folder=folder)
        with body.file:
            return await _send_answer(visit.send, await self._uploads.answer(visit.scope, body.file))

    async def _stream_file(self, visit: Visit) -> int:
        status = 200

        async def send_and_note_status(message: Mapping[str, object]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(str(message["status"]))
            await visit.send(message)

        await self._django(visit.scope, visit.receive, send_and_note_status)
        return status

    async def _poll(self, visit: Visit) -> None:
        node = await self._admission.fetch_node(visit.scope, visit.secret, self._exchange.ask_database)
        self._admission.charge_request(visit.endpoint, node.pk)
        with self._polls.open(node.pk) as superseded:
            gone = _wait_for_disconnect(visit.receive, superseded)
            try:
                offer = await self._exchange.next_offer(node, wait_s=_parse_wait_s(visit.scope), gone=gone)
            except asyncio.CancelledError:
                # this process ends; the node asks again, and another process answers
                offer = None
        if offer is None:
            await _answer(visit.send, 204, b"")
        else:
            await _answer(visit.send, 200, offer.model_dump_json().encode())

    @property
    def _exchange(self) -> Exchange:
        """Return the exchange, made with the first request because it needs the server's event loop."""
        if self._started_exchange is None:
            self._started_exchange = Exchange()
        return self._started_exchange

    async def _handle_lifespan(self, receive: Receive, send: Send) -> None:
        """Handle the start and the end of the server."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                self._calls.stop()
                self._uploads.stop()
                if self._started_exchange is not None:
                    await self._started_exchange.stop()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return


def _find_endpoint(scope: Scope) -> Endpoint:
    """Return the endpoint of a request. Raises Missing or WrongMethodError."""
    by_method = {endpoint.method: endpoint for endpoint in find_endpoints(scope["path"])}
    if not by_method:
        raise Missing(SERVED_HERE)
    if scope["method"] not in by_method:
        raise WrongMethodError(f"This address takes {' or '.join(by_method)}, not {scope['method']}.")
    return by_method[scope["method"]]


def _find_waiting_node(body: bytes, answer: Answer) -> int | None:
    """Find the id of a node that proved its key and waits for approval, by its answer `pending`; None for any other."""
    status, _, content = answer
    try:
        if status != 403 or Problem.model_validate_json(content).code != PENDING:
            return None
        return int(SecretRequest.model_validate_json(body).node_id)
    except ValueError:
        # Django refused the request before it reached the API, so that the answer has another form
        return None


def _parse_wait_s(scope: Scope) -> float:
    """Parse the seconds to wait, between 0 and MAX_WAIT_S; the default for anything that is not a number."""
    text = parse_qs(scope["query_string"].decode("latin-1")).get("wait", [""])[0]
    try:
        seconds = float(text)
    except ValueError:
        return DEFAULT_WAIT_S
    return min(max(seconds, 0.0), float(MAX_WAIT_S)) if math.isfinite(seconds) else DEFAULT_WAIT_S


async def _wait_for_disconnect(receive: Receive, superseded: asyncio.Future[None]) -> None:
    """Wait until the client is gone or `superseded` is done, and cancel both."""

    async def read_until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    ends: set[asyncio.Future[None]] = {asyncio.ensure_future(read_until_gone()), superseded}
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for end in ends:
            end.cancel()


async def _send_answer(send: Send, answer: Answer) -> int:
    """Send an answer of Django and return its status."""
    status, headers, content = answer
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
    return status


def _check_holds_block(visit: Visit) -> None:
    """Raise Conflict or NotAllowed where the node does not hold the block of an upload, before its body is read."""
    block_id = visit.scope["path"].removeprefix(PREFIX).split("/")[1]
    attempt = parse_qs(visit.scope["query_string"].decode("latin-1")).get("attempt", [""])[0]
    if attempt.isascii() and attempt.isdigit():  # Django refuses any other text
        token = read_header(visit.scope, ATTEMPT_TOKEN_HEADER.lower().encode())
        find_claim(node=Node(pk=visit.node), block_id=block_id, attempt=int(attempt), token=token)


def _log_refusal(visit: Visit, refusal: Refusal) -> None:
    """Write a refusal of the gateway to the audit log."""
    log_refusal(
        node=None,
        secret=visit.secret,
        address=visit.endpoint.name,
        status=refusal.status,
        code=refusal.code,
        detail=refusal.detail,
    )


async def _refuse(send: Send, refusal: Refusal) -> None:
    problem = Problem(detail=refusal.detail, code=refusal.code, hint=refusal.hint or None)
    headers = [(b"connection", b"close")]
    if isinstance(refusal, TooMany):
        headers.append((b"retry-after", str(refusal.retry_s).encode()))
    await _answer(send, refusal.status, problem.model_dump_json(exclude_none=True).encode(), *headers)


async def _answer(send: Send, status: int, body: bytes, *further_headers: tuple[bytes, bytes]) -> None:
    headers = [(b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store"), *further_headers]
    if body:
        headers.append((b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
