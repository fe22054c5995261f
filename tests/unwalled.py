"""A machine on which no sandbox holds: no filter can be made, so neither level passes its self-test."""

from collections.abc import Iterator

import pytest

from farm.sandbox import confinement, filters, unconfined


@pytest.fixture
def no_walls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where pyseccomp is missing: the levels are tried for real and refused; nobody has accepted that yet."""
    monkeypatch.setattr(filters, "program", lambda **_: b"")
    unconfined.refuse()
    _forget()
    assert confinement.available_level() == "none"
    yield
    unconfined.refuse()
    _forget()


def _forget() -> None:
    confinement.available_level.cache_clear()
    confinement.reason.cache_clear()
