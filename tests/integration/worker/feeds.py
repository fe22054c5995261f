"""A package index on this machine that answers whatever a test tells it to."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from farm.contract.blocks import WheelFile
from tests.acceptance.served import Served

Answer = tuple[int, dict[str, str], bytes]


class Feed(Served):
    """Answers by path, whatever it is told to."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        super().__init__(server)
        self.url = f"http://127.0.0.1:{server.server_port}/"
        self.seen: list[str] = []

    def _handler(feed) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                feed.seen.append(self.path)
                status, heads, body = feed.answers.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in {"content-length": str(len(body)), **heads}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        return Handler

    def list(self, *wheels: WheelFile) -> None:
        """The page of onnxruntime names these files."""
        files = [{"filename": one.name, "url": one.url, "hashes": {"sha256": one.sha256}} for one in wheels]
        body = {"files": files}
        heads = {"content-type": "application/vnd.pypi.simple.v1+json"}
        self.answers["/onnxruntime/"] = (200, heads, json.dumps(body).encode())
