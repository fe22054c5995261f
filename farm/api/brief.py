"""Brief requests of nodes: read whole, and answered by one call of Django in one thread that stays, in turn.

Django's own ASGI handler makes a thread for each request, which opens a database connection of its own, and goes from
that thread to the event loop and back for every middleware: on a busy machine each of these steps waits for its turn.
What a node waits for before it measures, and what keeps its block, goes before the reports of others, and these before
what nodes say of themselves.
"""

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from django.core.handlers.asgi import ASGIRequest, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.signals import request_started
from django.db import connections
from django.http import HttpResponse, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

from farm.api.turns import Press, Turns
from farm.contract.node import MAX_REPORT_BYTES

# by the last word of the address; what a node says of itself can wait for what others measure
PRESSING = {"claim": Press.LEASE, "heartbeat": Press.LEASE, "reports": Press.REPORT}
# how long a thread keeps its database connection, which costs more to open than a request takes
KEPT_S = 60
# one byte more than the longest message: enough to be refused
MOST_BYTES = MAX_REPORT_BYTES + 1

# status, headers and body
Answer = tuple[int, list[tuple[bytes, bytes]], bytes]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


def keep_connection() -> None:
    """Lets the thread that calls this keep its database connections between requests; see Django's CONN_MAX_AGE."""
    for alias in connections:
        kept = {"CONN_MAX_AGE": KEPT_S, "CONN_HEALTH_CHECKS": True}
        connections[alias].settings_dict = {**connections[alias].settings_dict, **kept}


def _make_ready() -> None:
    """Before the first request: the statistics that a report may need take a second to import."""
    keep_connection()
    import_module("scipy.special")


class BriefHandler(BaseHandler):
    """ASGI: Django for requests whose body and answer are small."""

    def __init__(self) -> None:
        super().__init__()
        self.load_middleware()
        self._turns: Turns[Answer] = Turns("gateway-brief", _make_ready)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        if body is None:
            return
        press = PRESSING.get(scope["path"].rpartition("/")[2], Press.OTHER)
        answer = self._turns.take(press, partial(self._answer, scope, body))
        status, headers, content = await asyncio.wrap_future(answer)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def stop(self) -> None:
        """Takes no more requests; what waits is left to end."""
        self._turns.stop()

    def _answer(self, scope: Scope, body: bytes) -> Answer:
        set_script_prefix(get_script_prefix(scope))
        request_started.send(sender=type(self), scope=scope)
        response = self._response(scope, body)
        try:
            headers = [(name.encode("ascii"), value.encode("latin-1")) for name, value in response.items()]
            return response.status_code, headers, response.getvalue()
        finally:
            # tells whoever waits for the request's end, such as the connections
            response.close()

    def _response(self, scope: Scope, body: bytes) -> HttpResponse:
        try:
            request = ASGIRequest(scope, io.BytesIO(body))
        except UnicodeDecodeError:
            return HttpResponseBadRequest()
        return _whole(self.get_response(request))


def _whole(response: HttpResponseBase) -> HttpResponse:
    assert isinstance(response, HttpResponse), f"{response!r} is streamed: it is not brief"
    return response


async def _body(receive: Receive) -> bytes | None:
    """The request's body, cut off where it is too long for any message; None when the client hung up."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")[: MOST_BYTES - len(body)]
        if not message.get("more_body", False):
            return bytes(body)
