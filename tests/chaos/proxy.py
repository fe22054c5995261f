"""A small HTTP proxy between agents and gateway that misbehaves on order.

drop    the request reaches the farm and is answered, and the answer never comes back;
double  the request reaches the farm twice;
hold    the request waits: a half-open connection.
"""

import contextlib
import http.client
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOP_HEADERS = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that are killed break their connections; nobody needs to read of it."""


class Proxy:
    """Listens on a free port and forwards to `target_port` on this machine."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.mode = ""
        self.counts: dict[str, int] = {}
        self._lock = threading.Lock()
        self._server = _QuietServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def forward(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, list[Any], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.target_port, timeout=60)
        try:
            connection.request(method, path, body=body or None, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

            def do_GET(self) -> None:
                # a client that was killed, or a gateway that is away: the connection just ends
                with contextlib.suppress(OSError, http.client.HTTPException):
                    self._pass_on()
                    return
                self.close_connection = True

            do_POST = do_PUT = do_GET  # noqa: N815

            def _pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_HEADERS}
                mode, is_poll = proxy.mode, self.path.partition("?")[0].endswith("/messages")
                while proxy.mode == "hold":
                    time.sleep(0.05)
                if mode == "double" and not is_poll:
                    proxy.count("doubled")
                    proxy.forward(self.command, self.path, headers, body)
                status, answered, content = proxy.forward(self.command, self.path, headers, body)
                if mode == "drop":
                    proxy.count("dropped")
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self._answer(status, answered, content)

            def _answer(self, status: int, answered: list[Any], content: bytes) -> None:
                self.send_response(status)
                for name, value in answered:
                    if name.lower() not in HOP_HEADERS:
                        self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        return Handler
