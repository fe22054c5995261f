"""A farm as small as a node can tell: the node API over real HTTP, kept in memory. Tests break it on purpose."""

import contextlib
import json
import queue
import socket
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from farm.contract.version import MEASURE_TASK, node_queue

NODE_ID = "7"
PREFIX = "/api/node/v1/"
Answer = tuple[int, dict[str, Any] | None]


def celery_message(block: str, attempt: int) -> dict[str, Any]:
    """A task message as kombu's Redis transport stores it."""
    import base64

    body = json.dumps([[], {"block": block, "attempt": attempt}, {"callbacks": None, "errbacks": None}])
    identity = str(uuid.uuid4())
    return {
        "body": base64.b64encode(body.encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {"lang": "py", "task": MEASURE_TASK, "id": identity, "retries": 0, "timelimit": [None, None]},
        "properties": {
            "correlation_id": identity,
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": node_queue(NODE_ID)},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": str(uuid.uuid4()),
        },
    }


class Server(ThreadingHTTPServer):
    """Can be cut off: open connections end too, as if the machine had gone."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A node that was killed while its request ran."""

    def cut(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class NodeApiTwin:
    """`offers` holds blocks to ring; `log` what was asked; `override` may answer a request instead of the twin."""

    def __init__(self, *, port: int = 0, order: dict[str, Any] | None = None) -> None:
        self.offers: queue.Queue[tuple[str, int]] = queue.Queue()
        self.log: list[tuple[str, dict[str, Any]]] = []
        self.order = order
        self.health = "active"
        self.lease_s = 2.0
        self.override: Callable[[str, dict[str, Any]], Answer | None] = lambda address, body: None
        self.server = Server(("127.0.0.1", port), self._handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def close(self) -> None:
        self.server.cut()

    def asked(self, address: str) -> list[dict[str, Any]]:
        """The bodies of all requests so far whose address ends so."""
        return [body for known, body in list(self.log) if known.endswith(address)]

    def wait_for(self, address: str, *, count: int = 1, within_s: float = 60.0) -> list[dict[str, Any]]:
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if len(self.asked(address)) >= count:
                return self.asked(address)
            time.sleep(0.02)
        raise AssertionError(f"{count} requests to …{address} did not come; there were {[a for a, _ in self.log]}")

    def answer(self, address: str, body: dict[str, Any], wait_s: float) -> Answer:
        if address == "enrol":
            return 201, {"node_id": NODE_ID, "health": "active", "fingerprint": "ab:cd"}
        if address == "secret":
            now = datetime.now(UTC)
            later, latest = now + timedelta(days=60), now + timedelta(days=90)
            return 200, {"secret": "ofn_x", "expires_at": latest.isoformat(), "rotate_at": later.isoformat()}
        if address == "hello":
            return 200, {"health": self.health, "queues": [node_queue(NODE_ID), "tag.cpu"]}
        if address == "messages":
            return self._message(wait_s)
        return self._block(address)

    def _message(self, wait_s: float) -> Answer:
        try:
            block, attempt = self.offers.get(timeout=wait_s)
        except queue.Empty:
            return 204, None
        return 200, {"queue": node_queue(NODE_ID), "message": celery_message(block, attempt)}

    def _block(self, address: str) -> Answer:
        what = address.rsplit("/", 1)[-1]
        if what == "claim":
            return 200, {"order": self.order, "token": "t", "lease_s": self.lease_s}
        if what == "heartbeat":
            return 200, {"lease_s": self.lease_s}
        if what == "reports":
            return 200, {"go_on": False}
        return 404, {"detail": f"There is no {address}.", "code": "missing"}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        twin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                wait_s = float(parse_qs(parts.query).get("wait", ["0"])[0])
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                address = parts.path.removeprefix(PREFIX)
                twin.log.append((address, body))
                status, answer = twin.override(address, body) or twin.answer(address, body, wait_s)
                content = b"" if answer is None else json.dumps(answer).encode()
                self.send_response(status)
                if content or status != 204:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_PUT = do_GET  # noqa: N815

        return Handler
