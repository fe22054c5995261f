"""A real webhook receiver on this machine: checks each signature, keeps what it was sent, answers as it is told."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook


class Receiver:
    """`answers`: a status for each request in turn, the last one for all others. `pause_s`: before each answer.

    `port`: 0 for any that is free.
    """

    def __init__(self, *answers: int, pause_s: float = 0.0, drip: bool = False, port: int = 0) -> None:
        self.answers = list(answers) or [204]
        self.pause_s = pause_s
        self.drip = drip
        self.secret = ""
        self.seen: list[tuple[dict[str, str], bytes]] = []
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/hook?team=1"

    @property
    def ids(self) -> list[str]:
        """Message ids in the order in which they came."""
        return [headers["webhook-id"] for headers, _ in self.seen]

    def verified(self, number: int = -1) -> Any:
        """The payload of one request, if its signature is right."""
        return self.payload_of(*self.seen[number])

    def payload_of(self, headers: dict[str, str], body: bytes) -> Any:
        """What a request says, if its signature is right."""
        return Webhook(self.secret).verify(body.decode(), headers)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                with receiver.lock:
                    receiver.seen.append(({key.lower(): value for key, value in self.headers.items()}, body))
                    status = receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0]
                time.sleep(receiver.pause_s)
                if receiver.drip:
                    self._drip()
                    return
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("location", receiver.url)
                self.send_header("content-length", "6")
                self.end_headers()
                self.wfile.write(b"secret")

            def _drip(self) -> None:
                try:
                    for sign in b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200:
                        self.wfile.write(bytes([sign]))
                        self.wfile.flush()
                        time.sleep(0.3)
                except OSError:
                    return

            def log_message(self, *_: object) -> None:
                return

        return Handler


@contextmanager
def receiving(*answers: int, **how: Any) -> Iterator[Receiver]:
    """A receiver that runs while the block does."""
    receiver = Receiver(*answers, **how)
    thread = threading.Thread(target=receiver.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()
