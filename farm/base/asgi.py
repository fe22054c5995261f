"""Reads an HTTP request as ASGI describes it."""

import ipaddress
from collections.abc import Iterable
from typing import TypedDict

IPV6_SITE_BITS = 64


class Scope(TypedDict):
    """ASGI's description of an HTTP request before its body is read."""

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


def read_header(scope: Scope, name: bytes) -> str:
    """Return the first header of that name, which must be in lower case; empty where there is none."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def make_rate_limit_key(host: str) -> str:
    """Return the text under which requests of a client's address are counted.

    It is the address itself, or for IPv6 its /64 network, as one site has too many addresses to count. A text
    that is no address is counted by its first 64 characters, and an empty one as "an unknown address".
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:64] or "an unknown address"
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(address) >> IPV6_SITE_BITS << IPV6_SITE_BITS, IPV6_SITE_BITS)))
    return str(address)
