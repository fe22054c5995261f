"""A team with one node and one inspected version."""

import pytest

from farm.accounts.models import Team, User
from farm.contract.blocks import Lease
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Block, Run
from tests.integration.runs.making import claim, first_block, make_node, make_run, make_version, measure


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


@pytest.fixture
def done(run: Run, node: Node) -> Run:
    """A finished run."""
    measure(node, first_block(run), [1.0, 1.2, 1.0])
    run.refresh_from_db()
    return run


@pytest.fixture
def block(run: Run) -> Block:
    return first_block(run)


@pytest.fixture
def lease(run: Run, node: Node) -> Lease:
    return claim(node, first_block(run))
