"""A machine on which no sandbox holds: no filter can be made, so neither level passes its self-test."""

from collections.abc import Iterator

import pytest

from farm.sandbox import confinement, filters, unconfined


@pytest.fixture
def no_walls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where pyseccomp is missing: the levels are tried for real and refused; nobody has accepted that yet."""
    monkeypatch.setattr(filters, "build_seccomp_program", lambda **_: b"")
    unconfined.refuse_unconfined()
    _forget()
    assert confinement.find_available_level() == "none"
    yield
    unconfined.refuse_unconfined()
    _forget()


def _forget() -> None:
    confinement.find_available_level.cache_clear()
    confinement.explain_level_failure.cache_clear()
