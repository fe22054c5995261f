"""A mail server on this machine that takes every message and keeps it: as much of SMTP (RFC 5321) as a client needs."""

import socketserver
import threading
from email import message_from_bytes
from email.message import Message

from tests.acceptance.served import Served


class SmtpSink(Served):
    """Listens on `port`; `seen` holds the messages in the order in which they were accepted."""

    def __init__(self, *, port: int) -> None:
        self.seen: list[Message] = []
        self.lock = threading.Lock()
        super().__init__(_Server(("127.0.0.1", port), _session(self)))

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.server.server_address[1]}"


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def _session(sink: SmtpSink) -> type[socketserver.StreamRequestHandler]:
    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 sink")
            while line := self.rfile.readline():
                word = line.split()[0].upper() if line.split() else b""
                if word == b"DATA":
                    self._say("354 go on")
                    self._take()
                elif word == b"QUIT":
                    self._say("221 bye")
                    return
                else:
                    self._say("250 ok" if word in (b"EHLO", b"HELO", b"MAIL", b"RCPT", b"RSET", b"NOOP") else "502 no")

        def _take(self) -> None:
            lines: list[bytes] = []
            for line in iter(self.rfile.readline, b""):
                if line in (b".\r\n", b".\n"):
                    with sink.lock:
                        sink.seen.append(message_from_bytes(b"".join(lines)))
                    self._say("250 kept")
                    return
                lines.append(line.removeprefix(b"."))

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    return Session
