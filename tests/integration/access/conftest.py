"""The two teams whose addresses are asked for."""

import pytest

from farm.accounts.models import Team, User
from tests.integration.access.world import World


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is committed here, so nothing would be rung; a settled run may ring at once."""
    monkeypatch.setattr("farm.runs.services.bell.ring", lambda block: True)


@pytest.fixture
def world(team: Team, owner: User, member: User, viewer: User, stranger: User) -> World:
    return World(team=team, people={"owner": owner, "mate": member, "viewer": viewer, "stranger": stranger})
