"""The log's lines, without the secrets that addresses hold: a sign-in link opened twice, a form without its token."""

import logging
import re

# what farm.accounts.secrecy and farm.fleet make; its public beginning is kept, to tell one from another
SECRET = re.compile(r"\b(of[a-z]_[A-Za-z0-9_-]{6})[A-Za-z0-9_-]{6,}")


class WithoutSecrets(logging.Formatter):
    """A line, its traceback included, with each secret cut off after its public beginning."""

    def format(self, record: logging.LogRecord) -> str:
        return SECRET.sub(r"\1…", super().format(record))
