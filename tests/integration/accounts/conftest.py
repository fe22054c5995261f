"""What the tests of signing in share: the farm's identity provider, and its administrator."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from farm.accounts.models import User
from farm.accounts.openid import sessions
from farm.accounts.openid.registration import Registration
from farm.accounts.services import create_owner
from tests.integration.accounts.issuer import CLIENT, SECRET, Issuer, serving


@pytest.fixture
def issuer(settings: Settings, db: None) -> Iterator[Issuer]:
    """The farm's identity provider, for this test."""
    sessions.visitors.forget("127.0.0.1")
    with serving() as one:
        settings.OPENID = Registration(issuer=one.url, client_id=CLIENT, secret=SECRET, name="login.example")
        settings.PUBLIC_URL = "http://testserver"
        yield one


@pytest.fixture
def root(db: None) -> User:
    """The administrator of the installation, in a team of their own."""
    return create_owner(name="root", team_name="operations")
