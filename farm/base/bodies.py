"""Bodies of requests, of people and of nodes: counted as they come, put aside, and no longer than they may take.

No thread waits for a client: what answers a request is called once its body is whole.
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

# of a body in memory; what is longer goes to a temporary file, in pieces of a size that is worth a thread's turn
MAX_BYTES_IN_MEMORY = 64 * 1024
PIECE_BYTES = 256 * 1024
# of a refused body, so that its sender gets to the answer: thrown away as it comes, and no more than this
DRAINED_BYTES = 4 * 1024**2
DRAINED_S = 2.0


class Piece(TypedDict):
    """What ASGI hands over of a request: a piece of its body, or that the client is gone."""

    type: str
    body: NotRequired[bytes]
    more_body: NotRequired[bool]


Receive = Callable[[], Awaitable[Piece]]


@dataclass(frozen=True)
class Pace:
    """How slowly a body may come: bytes in a second, and how long before that it may begin, or pause."""

    start_s: float = 10.0
    idle_s: float = 20.0
    bytes_per_s: int = 2048

    def seconds_left(self, before_s: float, *, waited_s: float, size: int) -> float:
        """How long the next piece may take, after one of `size` bytes that took `waited_s` of the `before_s` it had.

        What came quickly buys no longer pause: whoever has sent a gigabyte may not hold it for days.
        """
        return min(self.idle_s, before_s - waited_s + size / self.bytes_per_s)


PACE = Pace()


class ClientGoneError(Exception):
    """The client is gone: nobody waits for an answer."""


class Body(NamedTuple):
    """A whole body, to be read from its beginning."""

    file: IO[bytes]
    size: int


def declared_length(scope: Scope) -> int | None:
    """The length that a body says it has; None where it comes in chunks. Raises Invalid for nonsense."""
    length = read_header(scope, b"content-length")
    if length and not (length.isascii() and length.isdigit() and len(length) <= 18):
        raise Invalid("Content-Length is not a number of bytes.")
    return None if read_header(scope, b"transfer-encoding") else int(length or 0)


def check_length(scope: Scope, *, max_bytes: int) -> None:
    """Raises TooLarge for a body that says that it is too long, before any of it is read, and Invalid for nonsense."""
    length = declared_length(scope)
    if length is None and not max_bytes:
        raise make_too_large("some", max_bytes)
    if (length or 0) > max_bytes:
        raise make_too_large(f"{length:,}", max_bytes)


async def read_body(receive: Receive, *, max_bytes: int, max_s: float) -> bytes:
    """The whole body in memory. Raises TooLarge as soon as it is, TooSlow, and ClientGoneError."""
    body = bytearray()
    async for piece in _pieces(receive, max_bytes=max_bytes, max_s=max_s, pace=PACE):
        body += piece
    return bytes(body)


async def spool_body(
    receive: Receive,
    *,
    max_bytes: int,
    max_s: float = math.inf,
    folder: str | None = None,
    check_room: Callable[[int], None] = lambda size: None,
    keeps_part: bool = False,
    pace: Pace = PACE,
) -> Body:
    """The whole body, a long one in a temporary file of `folder`. Raises TooLarge, TooSlow, ClientGoneError.

    `check_room` is called in a thread with the bytes so far before each piece is written, and may raise a refusal.
    `keeps_part`: what came before the client hung up is a body too.
    """
    file = tempfile.SpooledTemporaryFile(max_size=MAX_BYTES_IN_MEMORY, dir=folder)  # noqa: SIM115 - its reader closes
    held, size = bytearray(), 0

    def write() -> None:
        check_room(size)
        file.write(held)

    try:
        try:
            async for piece in _pieces(receive, max_bytes=max_bytes, max_s=max_s, pace=pace):
                held += piece
                size += len(piece)
                if len(held) >= PIECE_BYTES:
                    await asyncio.to_thread(write)
                    held = bytearray()
        except ClientGoneError:
            if not keeps_part:
                raise
        if size > MAX_BYTES_IN_MEMORY:
            await asyncio.to_thread(write)
        else:
            file.write(held)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return Body(file, size)


async def drain_body(scope: Scope, receive: Receive) -> None:
    """Throws away what is under way of a refused body: most clients read no answer before they have sent everything."""
    if read_header(scope, b"expect"):
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


def make_too_large(length: str, max_bytes: int) -> TooLarge:
    return TooLarge(f"The body has {length} bytes; at most {max_bytes:,} are taken here.")


async def _pieces(receive: Receive, *, max_bytes: int, max_s: float, pace: Pace) -> AsyncIterator[bytes]:
    # what the farm itself takes to write a piece is not the client's
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
        left_s = pace.seconds_left(left_s, waited_s=took_s, size=len(piece))
        size += len(piece)
        if size > max_bytes:
            raise make_too_large(f"more than {max_bytes:,}", max_bytes)
        yield piece
        if not message.get("more_body", False):
            return
