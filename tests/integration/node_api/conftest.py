"""A machine that has joined and said hello."""

import pytest

from farm.accounts.models import Team, User
from farm.fleet import services as fleet
from tests.integration.node_api.calls import NodeClient


@pytest.fixture
def machine(team: Team, owner: User) -> NodeClient:
    machine = NodeClient()
    machine.enrol(fleet.invite(team=team, by=owner, auto_approve=True)[1])
    machine.ask_for_secret()
    machine.hello()
    return machine
