"""A farm that answers over real HTTP, and the command line against it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from farm.accounts.models import User
from farm.accounts.services import issue_token
from farm.accounts.states import ALL_OF_A_PERSON
from onnxfarm.main import app
from onnxfarm.remote.account import Account
from onnxfarm.remote.client import Client

Command = Callable[..., Result]


@pytest.fixture
def account(live_server: object, member: User) -> Account:
    """The member's account on a farm that answers over HTTP."""
    _, secret = issue_token(member, ALL_OF_A_PERSON)
    return Account(str(live_server), secret)


@pytest.fixture
def farm(account: Account) -> Iterator[Client]:
    with Client(account) as client:
        yield client


@pytest.fixture
def onnxfarm(account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command as the member: onnxfarm("models", "--json")."""
    monkeypatch.setenv("ONNXFARM_SERVER", account.server)
    monkeypatch.setenv("ONNXFARM_TOKEN", account.token)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
