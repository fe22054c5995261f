import pytest
from django.test import Client

from farm.accounts.models import Team, User
from farm.alerts.models import Watch
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Run
from tests.integration.alerts.driving import make_watch, offer
from tests.integration.dashboard import rows


@pytest.fixture
def signed_in(owner: User) -> Client:
    """A browser that the owner has signed in with."""
    return client_of(owner)


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def version(team: Team, owner: User) -> Version:
    return rows.make_version(team, owner)


@pytest.fixture
def node(team: Team, owner: User) -> Node:
    return rows.make_node(team, owner)


@pytest.fixture
def run(version: Version, node: Node, owner: User) -> Run:
    """A finished run in which 1.31.1 is a quarter slower."""
    return rows.finished_run(version, node, owner)


@pytest.fixture
def begun(version: Version, node: Node, owner: User) -> Run:
    """A run that waits for a node."""
    return rows.begin_run(version, owner)


@pytest.fixture
def watch(version: Version, owner: User, node: Node) -> Watch:
    offer("1.29.0", "1.30.0", "1.31.1")
    return make_watch(version, owner)
