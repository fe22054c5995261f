"""A team with one node, one inspected version and a watch; channels go nowhere unless a test has a receiver."""

import pytest
from django.test import Client

from farm.accounts.models import Team, User
from farm.alerts.models import Watch
from farm.fleet.models import Node
from farm.registry.models import Version
from tests.integration.alerts.driving import Lab, make_watch, offer
from tests.integration.dashboard.rows import make_node, make_version


@pytest.fixture
def node(team: Team, owner: User) -> Node:
    return make_node(team, owner)


@pytest.fixture
def lab(node: Node) -> Lab:
    """A node on which every runtime is as fast as any other."""
    return Lab(node)


@pytest.fixture
def version(team: Team, owner: User) -> Version:
    return make_version(team, owner)


@pytest.fixture
def watch(version: Version, member: User, node: Node) -> Watch:
    offer("1.29.0")
    return make_watch(version, member)


@pytest.fixture
def client(member_api: Client) -> Client:
    """What the member's token may."""
    return member_api
