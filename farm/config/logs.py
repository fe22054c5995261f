"""The log's lines, without the secrets that addresses hold: a sign-in link opened twice, a form without its token."""

import logging
import re

from farm.contract.texts import plain_text

# what farm.base.secrecy and farm.fleet make; its public beginning is kept, to tell one from another
SECRET = re.compile(r"\b(of[a-z]_[A-Za-z0-9_-]{6})[A-Za-z0-9_-]{6,}")


class WithoutSecrets(logging.Formatter):
    """A line, its traceback included, with each secret cut off after its public beginning."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's own name
        """The line before its traceback: nobody's words begin another line, or command the terminal."""
        record.message = plain_text(record.message).replace("\r", "\\r").replace("\n", "\\n")
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        return SECRET.sub(r"\1…", super().format(record))
