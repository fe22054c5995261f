"""Answers each request of a node by a single call of Django in a thread that keeps its database connection.

Django's own ASGI handler makes a thread for each request, which opens a database connection of its own. It switches
between that thread and the event loop for every middleware, and on a busy machine each switch waits. Here small
requests are answered one after another by priority: claims and heartbeats first, then reports, then all others, and
machines without a secret last. Uploads are stored while they arrive, and have threads of their own.
"""

import asyncio
import io
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import IO

from django.core.handlers.asgi import ASGIRequest, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.signals import request_started
from django.db import connections
from django.http import HttpResponse, HttpResponseBadRequest
from django.urls import set_script_prefix

from farm.base.asgi import Scope
from farm.gateway.priority_queue import Priority, PriorityThread

# how long a thread keeps its database connection, which costs more to open than a request takes
CONNECTION_AGE_S = 60
# a statement is prepared once it was executed this many times
PREPARED_AFTER = 5
# uploads that one gateway process takes at once; each has a thread with a database connection
MAX_UPLOADS = 4

# an HTTP answer: status, headers and body
Answer = tuple[int, list[tuple[bytes, bytes]], bytes]


def keep_database_connection() -> None:
    """Make the calling thread keep its database connections between requests; see Django's CONN_MAX_AGE.

    A connection is closed after CONNECTION_AGE_S. PostgreSQL also prepares statements that are repeated.
    """
    for alias in connections:
        connection_settings = connections[alias].settings_dict
        options: dict[str, object] = {"CONN_MAX_AGE": CONNECTION_AGE_S, "CONN_HEALTH_CHECKS": True}
        if connections[alias].vendor == "postgresql":
            # nodes cause the same queries again and again, which the server then plans once
            options["OPTIONS"] = {
                **connection_settings["OPTIONS"], "server_side_binding": True, "prepare_threshold": PREPARED_AFTER
            }  # fmt: skip
        connections[alias].settings_dict = {**connection_settings, **options}


def _make_ready() -> None:
    keep_database_connection()
    # the statistics that a report needs take a second to import
    import_module("scipy.special")


class ThreadHandler(BaseHandler):
    """Django for a thread without an event loop. It answers with whole bodies. `urlconf` is the module of its URLs."""

    def __init__(self, urlconf: str | None = None) -> None:
        super().__init__()
        self._urlconf = urlconf
        self.load_middleware()

    def answer(self, scope: Scope, body: IO[bytes]) -> Answer:
        """Return Django's answer: status, headers and whole body. Call this in a thread that has no event loop.

        A request that cannot be decoded gets 400. A streamed answer raises AssertionError.
        """
        set_script_prefix(get_script_prefix(scope))
        request_started.send(sender=type(self), scope=scope)
        response = self._call_django(scope, body)
        try:
            headers = [(name.encode("ascii"), value.encode("latin-1")) for name, value in response.items()]
            return response.status_code, headers, response.getvalue()
        finally:
            # sends request_finished, on which Django closes old database connections
            response.close()

    def _call_django(self, scope: Scope, body: IO[bytes]) -> HttpResponse:
        try:
            request = ASGIRequest(scope, body)
        except UnicodeDecodeError:
            return HttpResponseBadRequest()
        if self._urlconf is not None:
            request.urlconf = self._urlconf
        response = self.get_response(request)
        assert isinstance(response, HttpResponse), f"{response!r} is streamed: it is not brief"
        return response


class CallHandler:
    """Answers requests whose body and answer are small, one after another by priority in a single thread."""

    def __init__(self, django: ThreadHandler) -> None:
        self._django = django
        self._queue: PriorityThread[Answer] = PriorityThread("gateway-calls", _make_ready)

    async def answer(self, scope: Scope, body: bytes, priority: Priority) -> Answer:
        """Queue a request and wait for Django's answer, which is made once its turn has come."""
        return await asyncio.wrap_future(
            self._queue.submit(priority, partial(self._django.answer, scope, io.BytesIO(body)))
        )

    def stop(self) -> None:
        self._queue.stop()


class UploadHandler:
    """Answers uploads of nodes in a few threads of their own, because each file is written and hashed once more."""

    def __init__(self, django: ThreadHandler) -> None:
        self._django = django
        self._threads = ThreadPoolExecutor(
            MAX_UPLOADS, thread_name_prefix="gateway-upload", initializer=keep_database_connection
        )

    async def answer(self, scope: Scope, body: IO[bytes]) -> Answer:
        call = partial(self._django.answer, scope, body)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def stop(self) -> None:
        self._threads.shutdown(wait=False)
