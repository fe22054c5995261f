"""What the fleet can take, asked without a query a node."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from farm.accounts.models import Membership, Team, User
from farm.fleet.models import Lending, Node, NullEstimate
from farm.fleet.selectors import node_offers
from farm.fleet.services import store_null_estimates
from farm.fleet.states import LendingState
from tests.integration.fleet.nulls import keep_null_estimate
from tests.integration.runs.making import make_node

pytestmark = pytest.mark.django_db


def queries(team: Team, user: User) -> int:
    with CaptureQueriesContext(connection) as captured:
        node_offers(team=team, uploader=user)
    return len(captured)


def test_a_larger_fleet_takes_no_more_queries(team: Team, owner: User) -> None:
    for number in range(2):
        make_node(team, name=f"few-{number}")
    few = queries(team, owner)
    for number in range(20):
        make_node(team, name=f"many-{number}")
    assert queries(team, owner) == few
    assert len(node_offers(team=team, uploader=owner)) == 22


def test_the_noise_of_a_node_that_has_measured_pairs_is_in_its_offer(team: Team, owner: User) -> None:
    node = make_node(team, name="measured")
    make_node(team, name="new")
    keep_null_estimate(
        node=node,
        cell_class="cpu",
        block=1,
        arms=(0, 1),
        rounds=4,
        estimate=0.01,
        log_ratios=[0.01, -0.01, 0.02, 0.0],
        verdict="same",
    )
    measured, new = node_offers(team=team, uploader=owner)
    assert measured.noise is not None
    assert measured.noise > 0
    assert new.noise is None


def test_a_node_lent_to_many_teams_is_offered_once(team: Team, owner: User, stranger: User) -> None:
    lender = Team.objects.get(name="elsewhere")
    node = make_node(lender, name="lent")
    for other in (team, Team.objects.create(name="third")):
        Membership.objects.create(team=other, user=stranger)
        Lending.objects.create(node=node, team=other, asked_by=stranger, state=LendingState.AGREED)
    assert [offer.name for offer in node_offers(team=team, uploader=owner)] == ["lent"]
    assert [one.name for one in Node.objects.serving(lender, uploader=stranger)] == ["lent"]


def test_a_hundred_pairs_of_a_metric_give_the_node_its_margin(team: Team, owner: User) -> None:
    node = make_node(team, name="measured")
    known = {"cell_class": "cpu", "rounds": 8, "estimate": 0.0, "verdict": "equal", "log_ratios": [0.01, -0.01]}
    rows = [
        NullEstimate(node=node, block=number, arm=0, twin=1, metrics={"session_ms": 0.25, "few_ms": 0.25}, **known)
        for number in range(100)
    ]
    rows[0].metrics = {"session_ms": -0.25}
    store_null_estimates(node=node, estimates=rows)
    (offer,) = node_offers(team=team, uploader=owner)
    assert offer.margins == {"session_ms": pytest.approx(0.284, abs=0.001)}
