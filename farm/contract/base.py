"""The base of every message, the types of texts that messages share, and the digest of a JSON value."""

import hashlib
import json
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

from farm.contract.texts import escape_line_breaks

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
# a text from a model, a node or a member, made safe for a line that people read
Line = Annotated[str, AfterValidator(escape_line_breaks)]
FILE_NAME = r"^[A-Za-z0-9._-]{1,128}$"
FileName = Annotated[str, StringConstraints(pattern=FILE_NAME)]


class Message(BaseModel):
    """A value sent between farm, node and client."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def digest_json(value: object) -> str:
    """Compute the SHA-256, in hex, of a JSON value in canonical form: sorted keys, no spaces, UTF-8.

    Raises ValueError for NaN and infinity, TypeError for a value that JSON cannot hold.
    """
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
