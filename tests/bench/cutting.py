"""A TCP proxy that cuts the connection at given bytes of what is sent through it, as a bad line does."""

import contextlib
import socket
import threading
from collections.abc import Sequence

CHUNK_BYTES = 1 << 16


class CuttingProxy:
    """Listens on a free port and forwards to `port` on this machine; ends a connection at each byte count of `cuts`."""

    def __init__(self, port: int, *, cuts: Sequence[int]) -> None:
        self._target = port
        self._left = sorted(cuts)
        self._lock = threading.Lock()
        self.sent = 0
        self.cut = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            farm = socket.create_connection(("127.0.0.1", self._target))
            threading.Thread(target=self._forward, args=(client, farm), daemon=True).start()
            threading.Thread(target=self._answer, args=(farm, client), daemon=True).start()

    def _forward(self, client: socket.socket, farm: socket.socket) -> None:
        """What the client sends, counted; in the middle of a chunk when a cut is due there."""
        with contextlib.suppress(OSError):
            while chunk := client.recv(CHUNK_BYTES):
                with self._lock:
                    is_cut = bool(self._left) and self.sent + len(chunk) >= self._left[0]
                    if is_cut:
                        chunk = chunk[: self._left.pop(0) - self.sent]
                        self.cut += 1
                    self.sent += len(chunk)
                farm.sendall(chunk)
                if is_cut:
                    break
        _end(client, farm)

    @staticmethod
    def _answer(farm: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := farm.recv(CHUNK_BYTES):
                client.sendall(chunk)
        _end(client, farm)


def _end(*connections: socket.socket) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()
