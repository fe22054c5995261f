"""Limits each client connection of a web process: the time and size of its headers, and the pace of its answers.

uvicorn and httptools have no such limits: a client that sends half a header, or does not read an answer, would keep a
connection for ever. This overrides internals of uvicorn 0.54, so its minor version is pinned.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# from a connection's first moment, or the first byte of its next request, to the end of the headers
MAX_HEADERS_S = 10.0
MAX_HEADER_BYTES = 32 * 1024
# the connection is closed when a client reads less than this of a waiting answer within STALLED_S
STALLED_S = 30.0
MIN_TAKEN_BYTES = 30 * 1024
# after MAX_SHORT_PIECES pieces, a body is cut off if they have fewer bytes on average: each piece costs a call
MAX_SHORT_PIECES = 1000
MIN_PIECE_BYTES = 256
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 36\r\nconnection: close\r\n\r\nThe headers have more than 32768 B.\n"
)


class RefusedError(Exception):
    """Raised in a callback of the parser: it reads nothing more, and uvicorn answers 400 and closes the connection."""


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with limits.

    It closes a connection whose headers take too long or are too large, whose body comes in very short pieces, whose
    answer is not read, or that pipelines requests. Pipelined requests would queue without limit, and no browser, no
    proxy and no client of ours sends any. Trailers are dropped. A request to upgrade to another protocol is refused.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_in_headers = True
        # bytes since the request began, or since the last piece of its body
        self._bytes_outside_body = 0
        self._pieces = self._body_bytes = 0
        self._headers_end: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel both timers, then do what uvicorn does."""
        for timer in (self._headers_end, self._stalled):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Have the parser read the bytes that came.

        Answer 431 and close where the headers have more than MAX_HEADER_BYTES, and cut the connection where as much
        comes outside of headers and body.
        """
        if self._is_in_headers and self._headers_end is None:
            self._await_headers()
        self._bytes_outside_body += len(data)
        super().data_received(data)
        if self._bytes_outside_body <= MAX_HEADER_BYTES or self.transport.is_closing():
            return
        if self._is_in_headers:
            self.transport.write(TOO_LARGE)
            self.transport.close()
        else:
            # extensions of chunks, or trailers, without end
            self.transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin the request whose headers are whole.

        Raises RefusedError for any that asks to upgrade, and where the answer to the one before is not sent yet; then
        the connection is cut.
        """
        self._is_in_headers, self._bytes_outside_body = False, 0
        self._pieces = self._body_bytes = 0
        if self._headers_end is not None:
            self._headers_end.cancel()
        if self.parser.should_upgrade():
            # the parser would take the body of such a request for the next request
            raise RefusedError("The farm upgrades no connection.")
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()
            raise RefusedError("A request came before the answer to the one before.")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body; cut the connection and raise RefusedError where thousands of short ones come."""
        self._bytes_outside_body = 0
        self._pieces += 1
        self._body_bytes += len(body)
        if self._pieces > MAX_SHORT_PIECES and self._body_bytes < self._pieces * MIN_PIECE_BYTES:
            self.transport.abort()
            raise RefusedError("The body comes in thousands of short pieces.")
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_in_headers, self._bytes_outside_body, self._headers_end = True, 0, None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_answer()

    def resume_writing(self) -> None:
        """Send more of the answer, because the client reads again, and stop the clock of STALLED_S."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; an answer still being sent gets STALLED_S seconds, then the connection is cut."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(STALLED_S, self.transport.abort)

    def _await_headers(self) -> None:
        self._headers_end = self.loop.call_later(MAX_HEADERS_S, self.transport.abort)

    def _watch_answer(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._stalled = self.loop.call_later(STALLED_S, self._end_stalled, unsent)

    def _end_stalled(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < MIN_TAKEN_BYTES:
            self.transport.abort()
        else:
            self._watch_answer()
