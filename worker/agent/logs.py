"""Configures the agent's log: on stderr, in the node's folder, and its last lines for the farm's page of the node."""

import collections
import logging
import logging.handlers
import sys
from pathlib import Path

LINES = 100
MAX_TAIL = 20_000
FILE_BYTES = 5 * 1024**2
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LogTail(logging.Handler):
    """Keeps the last LINES records of the log in memory. `text` returns at most their last MAX_TAIL characters."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: collections.deque[str] = collections.deque(maxlen=LINES)

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))

    def text(self) -> str:
        return "\n".join(self._lines)[-MAX_TAIL:]


def configure_logging(path: Path, *, level: str = "INFO") -> LogTail:
    """Send the log of all modules to stderr, to the file `path`, which is rotated, and to the returned tail.

    The folder of `path` is made. Loggers that write a line for each request or message are limited to warnings.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    tail = LogTail()
    file = logging.handlers.RotatingFileHandler(path, maxBytes=FILE_BYTES, backupCount=2, delay=True)
    for handler in (logging.StreamHandler(sys.stderr), file, tail):
        handler.setFormatter(logging.Formatter(FORMAT))
        logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(level)
    # the agent itself logs each block, so lines about each message add nothing
    noisy = "httpx2 httpcore2 celery.worker.consumer.consumer celery.worker.strategy celery.app.trace"
    for name in noisy.split():
        logging.getLogger(name).setLevel(logging.WARNING)
    return tail
