"""A server of this process's own, in a thread, for as long as a block lasts."""

import socketserver
import threading
from typing import Self


class Served:
    """Serves from `with` on until its end."""

    def __init__(self, server: socketserver.BaseServer) -> None:
        self.server = server
        self.thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
