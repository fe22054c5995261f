"""For whom a proxy asks, and who may say so."""

from typing import Any

import pytest

from farm.base.forwarded import Forwarded
from tests.coroutines import awaited

CHAIN = [(b"x-forwarded-for", b"198.51.100.9, 203.0.113.7"), (b"x-forwarded-proto", b"https")]


def seen(believed: str, *, peer: str, headers: list[tuple[bytes, bytes]]) -> tuple[str, str]:
    """Client and scheme as the application gets them."""
    scope: dict[str, Any] = {"type": "http", "client": (peer, 4), "scheme": "http", "headers": headers}

    async def application(given: dict[str, Any], receive: object, send: object) -> None:
        scope.update(given)

    awaited(Forwarded(application, believed)(dict(scope), None, None))
    return scope["client"][0], scope["scheme"]


@pytest.mark.parametrize("believed", ["*", "10.0.0.0/8, 127.0.0.1", "10.1.2.3"])
def test_what_the_nearest_proxy_saw_counts_and_not_what_a_visitor_wrote_before_it(believed: str) -> None:
    assert seen(believed, peer="10.1.2.3", headers=CHAIN) == ("203.0.113.7", "https")


def test_nobody_else_is_believed() -> None:
    assert seen("10.0.0.0/8", peer="192.0.2.1", headers=CHAIN) == ("192.0.2.1", "http")


def test_headers_that_say_nothing_change_nothing() -> None:
    odd = [(b"x-forwarded-for", b" , "), (b"x-forwarded-proto", b"gopher")]
    assert seen("*", peer="10.1.2.3", headers=odd) == ("10.1.2.3", "http")


def test_a_setting_that_names_no_address_is_refused_at_the_start() -> None:
    with pytest.raises(SystemExit, match="names 'proxy': give addresses"):
        Forwarded(lambda scope, receive, send: None, "proxy")  # type: ignore[return-value]
