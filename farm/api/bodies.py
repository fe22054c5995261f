"""Bodies of requests at the gateway: counted as they come, and no longer than they may take."""

import asyncio
import io
import time
from collections.abc import Awaitable, Callable
from typing import NotRequired, TypedDict

from farm.accounts.refusals import Invalid, TooLarge, TooSlow
from farm.api.doors import Scope, header_of
from farm.api.endpoints import Endpoint

# between two pieces of a long body
IDLE_S = 20.0
# a long body comes at this rate at least, counted over the seconds in which it is waited for, but for the first few
LEAST_PER_S = 16_384
SLOW_START_S = 20.0
# for the loop to tell a thread that a piece did not come
GRACE_S = 5.0
# of a refused body, so that its sender gets to the answer: thrown away as it comes, and no more than this
DRAINED_BYTES = 4 * 1024**2
DRAINED_S = 2.0


class Piece(TypedDict):
    """What ASGI hands over of a request: a piece of its body, or that the client is gone."""

    type: str
    body: NotRequired[bytes]
    more_body: NotRequired[bool]


Receive = Callable[[], Awaitable[Piece]]


class HungUp(Exception):
    """The client is gone: nobody waits for an answer."""


def check_length(scope: Scope, endpoint: Endpoint) -> None:
    """Raises TooLarge for a body that says that it is too long, before any of it is read, and Invalid for nonsense."""
    length = header_of(scope, b"content-length")
    if length and not (length.isascii() and length.isdigit() and len(length) <= 18):
        raise Invalid("Content-Length is not a number of bytes.")
    if int(length or 0) > endpoint.most_bytes:
        raise _too_large(f"{int(length):,}", endpoint)
    if not endpoint.most_bytes and header_of(scope, b"transfer-encoding"):
        raise _too_large("some", endpoint)


async def read_body(receive: Receive, endpoint: Endpoint) -> bytes:
    """The whole body. Raises TooLarge as soon as it is, TooSlow, and HungUp."""
    body = bytearray()
    try:
        async with asyncio.timeout(endpoint.body_s):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HungUp
                body += message.get("body", b"")
                if len(body) > endpoint.most_bytes:
                    raise _too_large(f"more than {endpoint.most_bytes:,}", endpoint)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise _too_slow(endpoint.body_s) from None


async def drain(scope: Scope, receive: Receive) -> None:
    """Throws away what is under way of a refused body: most clients read no answer before they have sent everything."""
    if header_of(scope, b"expect"):
        return  # it has sent nothing, and waits for leave to
    left = DRAINED_BYTES
    try:
        async with asyncio.timeout(DRAINED_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        return


class Incoming(io.RawIOBase):
    """A body as a file for a thread that reads it while it comes: nothing is kept on the way.

    `read` raises TooLarge, TooSlow, and Invalid when the client hung up. Make it inside the event loop.
    """

    def __init__(self, receive: Receive, endpoint: Endpoint) -> None:
        self._receive, self._endpoint = receive, endpoint
        self._loop = asyncio.get_running_loop()
        self._ends_at = time.monotonic() + endpoint.body_s
        self._held = b""
        self._left = endpoint.most_bytes
        self._waited_s = 0.0
        self.is_read = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; none at the end."""
        while not self.is_read and (size < 0 or not self._held):
            self._held += self._next()
        cut = len(self._held) if size < 0 else size
        given, self._held = self._held[:cut], self._held[cut:]
        return given

    def _next(self) -> bytes:
        wait_s = min(IDLE_S, self._ends_at - time.monotonic())
        if wait_s <= 0:
            raise _too_slow(self._endpoint.body_s)
        message = self._message(wait_s)
        if message["type"] == "http.disconnect":
            raise Invalid("The body ended in the middle.", code="cut_off")
        body = message.get("body", b"")
        self._left -= len(body)
        if self._left < 0:
            raise _too_large(f"more than {self._endpoint.most_bytes:,}", self._endpoint)
        self.is_read = not message.get("more_body", False)
        self._check_rate()
        return body

    def _message(self, wait_s: float) -> Piece:
        began = time.monotonic()
        piece = asyncio.wait_for(self._receive(), wait_s)
        try:
            return asyncio.run_coroutine_threadsafe(piece, self._loop).result(wait_s + GRACE_S)
        except TimeoutError:
            raise _too_slow(wait_s) from None
        finally:
            self._waited_s += time.monotonic() - began

    def _check_rate(self) -> None:
        """Who sends a byte now and then would hold one of a few threads for as long as a whole file may take."""
        read = self._endpoint.most_bytes - self._left
        if not self.is_read and self._waited_s > SLOW_START_S + read / LEAST_PER_S:
            raise TooSlow(
                f"{read:,} bytes came within {self._waited_s:.0f} s; at least {LEAST_PER_S:,} bytes a second have to.",
                hint="Send the same again over a faster line.",
            )


def _too_large(length: str, endpoint: Endpoint) -> TooLarge:
    return TooLarge(f"The body has {length} bytes; at most {endpoint.most_bytes:,} are taken here.")


def _too_slow(seconds: float) -> TooSlow:
    return TooSlow(f"The body did not come within {seconds:.0f} s.", hint="Send the same again.")
