"""What ASGI says of a request, as far as it is read here."""

from collections.abc import Iterable
from typing import TypedDict


class Scope(TypedDict):
    """A request before its body."""

    type: str
    method: str
    path: str
    raw_path: bytes
    query_string: bytes
    http_version: str
    scheme: str
    headers: Iterable[tuple[bytes, bytes]]
    client: tuple[str, int] | None
    server: tuple[str, int | None] | None


def header_of(scope: Scope, wanted: bytes) -> str:
    """A header of a request, empty when it has none."""
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == wanted), "")
