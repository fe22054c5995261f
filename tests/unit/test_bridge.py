"""The bridge between the event loop and Django, with an application of the test's own behind it."""

import asyncio
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from farm.api import bridge as bridge_module
from farm.api.bridge import SIGN_IN_CALLBACK, THREADS, Bridge
from farm.base.refusals import TooMany
from tests.coroutines import awaited


class Unpacking:
    """A WSGI application that works on uploads until it is told to stop, and answers everything else at once."""

    def __init__(self) -> None:
        self.is_done = threading.Event()

    def __call__(self, environ: Mapping[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/sign-in/":
            assert self.is_done.wait(60)
        start_response("200 OK", [])
        return [b"there"]


async def answer_of(bridge: Bridge, path: str, *, body: bytes = b"", length: bytes | None = None) -> int:
    scope = {
        "type": "http",
        "method": "POST" if body else "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "http_version": "1.1",
        "scheme": "http",
        "headers": [(b"content-length", str(len(body)).encode() if length is None else length)],
    }
    sent: list[Mapping[str, Any]] = []

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    await bridge(scope, receive, send)
    return int(sent[0]["status"])


@pytest.mark.parametrize("path", ["/sign-in/", "/models/upload/"])
def test_a_length_that_is_no_number_is_refused_and_nothing_else(path: str) -> None:
    assert awaited(answer_of(Bridge(Unpacking()), path, length=b"1,000")) == 400


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["/models/upload/", "/api/v1/uploads/complete", "/api/v1/runs", "/runs/new/", SIGN_IN_CALLBACK]
)
def test_what_takes_long_keeps_no_page_waiting(path: str) -> None:
    async def visit() -> int:
        application = Unpacking()
        bridge = Bridge(application)
        uploads = [asyncio.ensure_future(answer_of(bridge, path, body=b"a zip")) for _ in range(THREADS + 1)]
        await asyncio.sleep(0.1)
        try:
            return await asyncio.wait_for(answer_of(bridge, "/sign-in/"), timeout=20)
        finally:
            application.is_done.set()
            await asyncio.gather(*uploads)

    assert awaited(visit()) == 200


def test_a_refusal_before_django_says_when_to_try_again() -> None:
    sent: list[Mapping[str, Any]] = []

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    awaited(bridge_module._refuse({"path": "/models/upload/"}, send, TooMany("Too many.", retry_s=30)))
    assert sent[0]["status"] == 429
    assert (b"retry-after", b"30") in sent[0]["headers"]
