"""A team with one node and one inspected version."""

import pytest

from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Run
from tests.integration.runs.making import make_node, make_run, make_version


@pytest.fixture
def node(team: Team, owner: User) -> Node:
    return make_node(team, owner=owner)


@pytest.fixture
def version(team: Team) -> Version:
    return make_version(team)


@pytest.fixture
def run(node: Node, version: Version, member: User) -> Run:
    """A run of one block with two arms, queued."""
    return make_run(version, member)
