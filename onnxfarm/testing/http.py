"""The HTTP server of the fake farm. Its open connections can be cut."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from farm.contract.node import MAX_TRACE_BYTES

PREFIX = "/api/node/v1/"


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request. `address`: its path after PREFIX. `headers`: by lower-case names."""

    address: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> dict[str, object]:
        """The body, if it is a JSON object; else an empty dict."""
        with contextlib.suppress(ValueError):
            value = json.loads(self.content)
            if isinstance(value, dict):
                return value
        return {}

    def number(self, name: str) -> float:
        """Return a number from the query string; 0 if it is missing, invalid or negative."""
        with contextlib.suppress(ValueError):
            return max(0.0, float(self.query.get(name, ["0"])[0]))
        return 0.0


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response. `media_type`: of its content. `of` makes one with a JSON object; None: without content."""

    status: int
    content: bytes = b""
    media_type: str = "application/json"

    @classmethod
    def of(cls, status: int, value: Mapping[str, object] | None) -> "Response":
        return cls(status, b"" if value is None else json.dumps(value).encode())


class Server(ThreadingHTTPServer):
    """A server that only this machine can reach, with a thread for each connection. The constructor starts it.

    It keeps track of its open connections, so that `cut` can end them.
    """

    daemon_threads = True

    def __init__(self, port: int, answer: Callable[[Request], Response]) -> None:
        self.answer = answer
        self._open: set[object] = set()
        super().__init__(("127.0.0.1", port), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True, name="fake-farm").start()

    def process_request(self, request: object, client_address: object) -> None:
        self._open.add(request)
        super().process_request(request, client_address)  # type: ignore[arg-type]

    def shutdown_request(self, request: object) -> None:
        self._open.discard(request)
        super().shutdown_request(request)  # type: ignore[arg-type]

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: a node may be killed during a request."""

    def cut(self) -> None:
        """Stop the server, and cut every open connection."""
        self.shutdown()
        self.server_close()
        for connection in list(self._open):
            if isinstance(connection, socket.socket):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: object) -> None: ...

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_TRACE_BYTES:
            self._send(Response.of(413, {"detail": f"{length} bytes are too many.", "code": "too_large"}))
            self.close_connection = True
            return
        request = Request(
            address=parts.path.removeprefix(PREFIX),
            query=parse_qs(parts.query),
            headers={name.lower(): value for name, value in self.headers.items()},
            content=self.rfile.read(length),
        )
        self._send(self.server.answer(request))

    def _send(self, answer: Response) -> None:
        self.send_response(answer.status)
        if answer.status != 204:
            self.send_header("Content-Type", answer.media_type)
            self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = do_PUT = _serve  # noqa: N815
