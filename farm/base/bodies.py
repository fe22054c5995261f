"""Reads request bodies from ASGI, within limits of size and time.

No thread waits for a client: a request is handled once its body is complete.
"""

import asyncio
import math
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import IO, NamedTuple, NotRequired, TypedDict

from farm.base.asgi import Scope, read_header
from farm.base.refusals import Invalid, TooLarge, TooSlow

# a longer body goes to a temporary file, in pieces of WRITE_BYTES, so that few calls in a thread are needed
MAX_BYTES_IN_MEMORY = 64 * 1024
WRITE_BYTES = 256 * 1024
# how much of a refused body is read and thrown away, and for how long, so that its sender reads the answer
DRAINED_BYTES = 4 * 1024**2
DRAINED_S = 2.0


class Piece(TypedDict):
    """An ASGI event of a request: a piece of its body, or `http.disconnect`."""

    type: str
    body: NotRequired[bytes]
    more_body: NotRequired[bool]


Receive = Callable[[], Awaitable[Piece]]


@dataclass(frozen=True)
class Pace:
    """How slowly a body may come: seconds to its first piece, the longest pause, and average bytes per second."""

    start_s: float = 10.0
    idle_s: float = 20.0
    bytes_per_s: int = 2048

    def next_timeout_s(self, allowed_s: float, *, waited_s: float, size: int) -> float:
        """Return how many seconds the next piece may take.

        The piece before it had `size` bytes and took `waited_s` of the `allowed_s` seconds that it might. The
        result is at most `idle_s`, so that nobody sends a gigabyte quickly and then holds the connection for days.
        """
        return min(self.idle_s, allowed_s - waited_s + size / self.bytes_per_s)


PACE = Pace()


class ClientGoneError(Exception):
    """The client has disconnected, and nobody waits for an answer."""


class Body(NamedTuple):
    """A complete body, whose file is at its beginning, and its size in bytes."""

    file: IO[bytes]
    size: int


def parse_content_length(scope: Scope) -> int | None:
    """Return the length in bytes that the request declares: 0 without a Content-Length, None for a chunked body.

    Raises Invalid where Content-Length is not a number.
    """
    length = read_header(scope, b"content-length")
    if length and not (length.isascii() and length.isdigit() and len(length) <= 18):
        raise Invalid("Content-Length is not a number of bytes.")
    return None if read_header(scope, b"transfer-encoding") else int(length or 0)


def check_length(scope: Scope, *, max_bytes: int) -> None:
    """Check the declared length, before any of the body is read.

    Raises TooLarge where it exceeds `max_bytes`, or where a chunked body comes and none is allowed, and Invalid where
    Content-Length is not a number.
    """
    length = parse_content_length(scope)
    if length is None and not max_bytes:
        raise make_too_large("some", max_bytes)
    if (length or 0) > max_bytes:
        raise make_too_large(f"{length:,}", max_bytes)


async def read_body(receive: Receive, *, max_bytes: int, max_s: float) -> bytes:
    """Read the whole body into memory.

    Raises TooLarge as soon as more than `max_bytes` came, TooSlow after `max_s` seconds of waiting or where the body
    comes more slowly than PACE, and ClientGoneError where the client hung up.
    """
    body = bytearray()
    async for piece in _receive_pieces(receive, max_bytes=max_bytes, max_s=max_s, pace=PACE):
        body += piece
    return bytes(body)


async def spool_body(
    receive: Receive,
    *,
    max_bytes: int,
    max_s: float = math.inf,
    folder: str | None = None,
    check_room: Callable[[int], None] = lambda size: None,
    accepts_partial: bool = False,
    pace: Pace = PACE,
) -> Body:
    """Read the whole body into a file that the caller closes: in memory if short, else a temporary file in `folder`.

    `check_room` is called in a thread with the number of bytes so far before each write to disk, and may raise a
    refusal. With `accepts_partial`, what came before the client hung up is returned as the body. Raises TooLarge,
    TooSlow and, without `accepts_partial`, ClientGoneError.
    """
    file = tempfile.SpooledTemporaryFile(max_size=MAX_BYTES_IN_MEMORY, dir=folder)  # noqa: SIM115 - its reader closes
    buffer, size = bytearray(), 0

    def write() -> None:
        check_room(size)
        file.write(buffer)

    try:
        try:
            async for piece in _receive_pieces(receive, max_bytes=max_bytes, max_s=max_s, pace=pace):
                buffer += piece
                size += len(piece)
                if len(buffer) >= WRITE_BYTES:
                    await asyncio.to_thread(write)
                    buffer = bytearray()
        except ClientGoneError:
            if not accepts_partial:
                raise
        if size > MAX_BYTES_IN_MEMORY:
            await asyncio.to_thread(write)
        else:
            file.write(buffer)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return Body(file, size)


async def drain_body(scope: Scope, receive: Receive) -> None:
    """Read and throw away a refused body, up to DRAINED_BYTES or DRAINED_S seconds.

    Most clients read no answer before they have sent everything. Nothing is read where the client asked by `Expect`
    whether to send its body.
    """
    if read_header(scope, b"expect"):
        return  # the client has sent nothing yet: it waits for "100 Continue"
    undrained_bytes = DRAINED_BYTES
    try:
        async with asyncio.timeout(DRAINED_S):
            while undrained_bytes > 0:
                message = await receive()
                undrained_bytes -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        return


def make_too_large(length: str, max_bytes: int) -> TooLarge:
    return TooLarge(f"The body has {length} bytes; at most {max_bytes:,} are taken here.")


async def _receive_pieces(receive: Receive, *, max_bytes: int, max_s: float, pace: Pace) -> AsyncIterator[bytes]:
    # counts the time that the client takes, without the time that the farm takes to write a piece
    waited_s, left_s, size = 0.0, pace.start_s, 0
    while True:
        began = time.monotonic()
        try:
            async with asyncio.timeout(min(max_s - waited_s, left_s)):
                message = await receive()
        except TimeoutError:
            waited_s += time.monotonic() - began
            detail = f"The body did not come in time: {size:,} bytes of it within {waited_s:.0f} s."
            raise TooSlow(detail, hint="Send the same again over a faster line.") from None
        took_s = time.monotonic() - began
        waited_s += took_s
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        piece = message.get("body", b"")
        left_s = pace.next_timeout_s(left_s, waited_s=took_s, size=len(piece))
        size += len(piece)
        if size > max_bytes:
            raise make_too_large(f"more than {max_bytes:,}", max_bytes)
        yield piece
        if not message.get("more_body", False):
            return
