"""Base of every message: frozen, strict about unknown keys, finite numbers only."""

import hashlib
import json
import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
FILE_NAME = r"^[A-Za-z0-9._-]{1,128}$"
FileName = Annotated[str, StringConstraints(pattern=FILE_NAME)]
# an escaped NUL: a backslash that no other backslash escapes
_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")


class Message(BaseModel):
    """A value sent between farm, node and client."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def without_nul(text: bytes) -> bytes:
    """JSON with U+FFFD for every NUL in its strings: PostgreSQL stores none, and a hostile model may be named so."""
    return _NUL.sub(rb"\1\\ufffd", text) if b"\\u0000" in text else text


def digest_of(value: Any) -> str:
    """SHA-256 of a JSON-able value in canonical form: sorted keys, no spaces, UTF-8."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
