"""Reads `X-Forwarded-For` and `X-Forwarded-Proto`, from trusted proxies only.

uvicorn's own middleware takes the first address, which the visitor can choose if a proxy appends to the header, as
nginx and haproxy do. This one takes the last address, which the proxy next to us has seen itself.
"""

import ipaddress
import os
from collections.abc import Awaitable, Callable
from typing import Any

# the name that uvicorn and gunicorn use: addresses, networks, or *
SETTING = "FORWARDED_ALLOW_IPS"

Application = Callable[[Any, Any, Any], Awaitable[None]]


class Forwarded:
    """ASGI middleware that takes the address and scheme of HTTP requests from the headers of a trusted proxy.

    `trusted` lists the addresses or networks of trusted proxies, separated by commas, or is *; None takes it from the
    environment variable FORWARDED_ALLOW_IPS, by default 127.0.0.1. A client on a Unix socket is always trusted. Raises
    SystemExit for an entry that is neither an address nor a network.
    """

    def __init__(self, application: Application, trusted: str | None = None) -> None:
        self._application = application
        entries = os.environ.get(SETTING, "127.0.0.1") if trusted is None else trusted
        self._trusts_everybody = entries.strip() == "*"
        self._networks = []
        for name in [] if self._trusts_everybody else filter(None, map(str.strip, entries.split(","))):
            try:
                self._networks.append(ipaddress.ip_network(name))
            except ValueError:
                text = f"{SETTING} names {name!r}: give addresses or networks, by comma, or *."
                raise SystemExit(text) from None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and self._trusts((scope.get("client") or ("",))[0]):
            headers = {name: value for name, value in scope["headers"] if name.startswith(b"x-forwarded-")}
            address = headers.get(b"x-forwarded-for", b"").decode("latin-1").rpartition(",")[2].strip()
            if address:
                scope["client"] = (address, 0)
            scheme = headers.get(b"x-forwarded-proto", b"").decode("latin-1").rpartition(",")[2].strip()
            if scheme in ("http", "https"):
                scope["scheme"] = scheme
        await self._application(scope, receive, send)

    def _trusts(self, peer: str) -> bool:
        if self._trusts_everybody:
            return True
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return not peer  # a Unix socket
        return any(address in network for network in self._networks)
