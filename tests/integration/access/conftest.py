"""The two teams whose addresses are asked for."""

import pytest

from farm.accounts.models import Team, User
from tests.integration.access.world import World


@pytest.fixture
def world(team: Team, owner: User, member: User, viewer: User, stranger: User) -> World:
    return World(team=team, people={"owner": owner, "mate": member, "viewer": viewer, "stranger": stranger})
