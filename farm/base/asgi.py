"""What ASGI says of a request, as far as it is read here."""

import ipaddress
from collections.abc import Iterable
from typing import TypedDict

IPV6_SITE = 64


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


def read_header(scope: Scope, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == wanted), "")


def network_of(host: str) -> str:
    """An address to count by; of IPv6 the site, since each has more addresses than could be counted."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:64] or "an unknown address"
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(address) >> IPV6_SITE << IPV6_SITE, IPV6_SITE)))
    return str(address)
