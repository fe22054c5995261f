"""The same request as a line for a terminal."""

import json
import shlex
from collections.abc import Mapping

TOKEN = "$ONNXFARM_TOKEN"


def curl(method: str, path: str, body: Mapping[str, object] | None = None, *, url: str) -> str:
    """A call of the API with curl. `path` begins below /api/v1; the token is a variable, never a secret."""
    words = ["curl", "-sS", *([] if method == "GET" else ["-X", method])]
    line = " ".join([*words, "-H", f'"Authorization: Bearer {TOKEN}"', shlex.quote(f"{url}/api/v1{path}")])
    if body is None:
        return line
    sent = shlex.quote(json.dumps(body, ensure_ascii=False))
    return f"{line} -H 'Content-Type: application/json' -d {sent}"
