"""Formats log lines without secrets, which may be in addresses, such as that of a sign-in link."""

import logging
import re

from farm.contract.texts import escape_line_breaks

# the secrets that farm.base.secrecy and farm.fleet make; their public beginning stays, to tell them apart
SECRET = re.compile(r"\b(of[a-z]_[A-Za-z0-9_-]{6})[A-Za-z0-9_-]{6,}")
# a message may hold an address, a header or a name that somebody made up; tracebacks are ours and stay whole
MAX_MESSAGE_CHARS = 1000


class RedactingFormatter(logging.Formatter):
    """A log formatter that cuts each secret off after its public beginning, in tracebacks too."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's own name
        """Format the line before the traceback: escape control characters, and limit the message's length."""
        message = escape_line_breaks(record.message[:MAX_MESSAGE_CHARS])
        record.message = message if len(record.message) <= MAX_MESSAGE_CHARS else f"{message}…"
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        return SECRET.sub(r"\1…", super().format(record))
