"""The log's lines, without the secrets that addresses hold: a sign-in link opened twice, a form without its token."""

import logging
import re

from farm.contract.texts import escape_line_breaks

# what farm.base.secrecy and farm.fleet make; its public beginning is kept, to tell one from another
SECRET = re.compile(r"\b(of[a-z]_[A-Za-z0-9_-]{6})[A-Za-z0-9_-]{6,}")


# of an address, a header or a name that somebody made up; tracebacks are our own and stay whole
MAX_MESSAGE_CHARS = 1000


class WithoutSecrets(logging.Formatter):
    """A line, its traceback included, with each secret cut off after its public beginning."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's own name
        """The line before its traceback: nobody's words begin another line, or command the terminal."""
        message = escape_line_breaks(record.message[:MAX_MESSAGE_CHARS])
        record.message = message if len(record.message) <= MAX_MESSAGE_CHARS else f"{message}…"
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        return SECRET.sub(r"\1…", super().format(record))
