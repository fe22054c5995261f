"""The nodes' long poll, `GET /api/node/v1/messages`: a thousand nodes wait here, each for a message of its queues.

A plain ASGI application beside Django's, because a waiting node should cost a coroutine and nothing else. The broker
stays private: see farm.api.polling for who gets what.
"""

import math
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from farm.api.brief import BriefHandler, Receive, Scope, Send
from farm.api.node import HINT, PREFIX, UNKNOWN_NODE
from farm.api.polling import Exchange
from farm.contract.node import MAX_WAIT_S, Problem
from farm.fleet.selectors import node_of_secret

PATH = "/api/node/v1/messages"
DEFAULT_WAIT_S = 25.0
BEARER = "bearer "

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Gateway:
    """ASGI: answers the long poll itself and leaves every other request to Django, what nodes post to its brief way."""

    def __init__(self, django: Application, brief: BriefHandler) -> None:
        self._django = django
        self._brief = brief
        self._made: Exchange | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http" and scope["path"] == PATH:
            await self._poll(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "POST" and scope["path"].startswith(PREFIX):
            await self._brief(scope, receive, send)
        else:
            await self._django(scope, receive, send)

    @property
    def _exchange(self) -> Exchange:
        """Made with the first poll, inside the server's event loop."""
        if self._made is None:
            self._made = Exchange()
        return self._made

    async def _live(self, receive: Receive, send: Send) -> None:
        """The server's start and end."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                self._brief.stop()
                if self._made is not None:
                    await self._made.stop()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _poll(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            await _refuse(send, 405, Problem(detail="The long poll is a GET.", code="method_not_allowed"))
            return
        node = await self._exchange.ask(node_of_secret, _secret_of(scope))
        if node is None:
            await _refuse(send, 401, Problem(detail=UNKNOWN_NODE, code="unknown_node", hint=HINT))
            return
        offer = await self._exchange.next_offer(node, wait_s=_wait_of(scope), gone=_gone(receive))
        if offer is None:
            await _answer(send, 204, b"")
        else:
            await _answer(send, 200, offer.model_dump_json().encode())


def _secret_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization":
            text: str = value.decode("latin-1")
            return text[len(BEARER) :].strip() if text[: len(BEARER)].lower() == BEARER else ""
    return ""


def _wait_of(scope: Scope) -> float:
    """Seconds to wait, between 0 and MAX_WAIT_S; the default for anything that is no number."""
    asked = parse_qs(scope["query_string"].decode("latin-1")).get("wait", [""])[0]
    try:
        seconds = float(asked)
    except ValueError:
        return DEFAULT_WAIT_S
    return min(max(seconds, 0.0), float(MAX_WAIT_S)) if math.isfinite(seconds) else DEFAULT_WAIT_S


async def _gone(receive: Receive) -> None:
    """Ends when the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _refuse(send: Send, status: int, problem: Problem) -> None:
    await _answer(send, status, problem.model_dump_json(exclude_none=True).encode())


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    if body:
        headers.append((b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
