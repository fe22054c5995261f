"""What a token of somebody who may do everything lets a program do."""

import pytest
from django.test import Client

from farm.accounts.models import Team, User
from farm.accounts.states import ALL_OF_A_PERSON, Scope
from farm.fleet.models import EnrolmentCode, Node
from farm.fleet.states import NodeHealth
from tests.conftest import ApiOf
from tests.integration.dashboard.rows import make_node

INVITE = "/api/v1/nodes/invitations"
JSON = "application/json"

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(team: Team, owner: User) -> Node:
    return make_node(team, owner, health=NodeHealth.PENDING)


@pytest.mark.parametrize("scopes", [(Scope.READ,), (Scope.READ, Scope.WRITE), (Scope.ADMIN,)])
def test_a_stolen_ci_token_neither_invites_nor_approves_a_machine(
    api_of: ApiOf, owner: User, node: Node, scopes: tuple[Scope, ...]
) -> None:
    thief = api_of(owner, *scopes)
    for answer in (
        thief.post(INVITE, {}, content_type=JSON),
        thief.post(f"/api/v1/nodes/{node.pk}/approve"),
        thief.post(f"/api/v1/nodes/{node.pk}/revoke"),
        thief.patch(f"/api/v1/nodes/{node.pk}", {"teams": ["elsewhere"]}, content_type=JSON),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "scope")
        assert "`nodes`" in answer.json()["hint"]
    node.refresh_from_db()
    assert node.health == NodeHealth.PENDING
    assert not EnrolmentCode.objects.exists()


@pytest.mark.parametrize("scopes", [(Scope.NODES,), ALL_OF_A_PERSON])
def test_a_token_for_nodes_invites_and_approves_them(api_of: ApiOf, owner: User, node: Node, scopes: tuple[Scope, ...]):
    client = api_of(owner, *scopes)
    assert client.post(INVITE, {}, content_type=JSON).status_code == 201
    assert client.post(f"/api/v1/nodes/{node.pk}/approve").json()["health"] == "active"


def test_a_token_for_nodes_uploads_nothing_makes_no_tokens_and_shares_nothing(api_of: ApiOf, owner: User) -> None:
    client = api_of(owner, Scope.NODES)
    share = {"kind": "run", "subject": "1"}
    for path, body in (("uploads", {}), ("runs", {"version": 1}), ("tokens", {"name": "x"}), ("shares", share)):
        assert client.post(f"/api/v1/{path}", body, content_type=JSON).json()["code"] == "scope", path
    assert client.get("/api/v1/nodes").status_code == 200


def test_a_tokens_scope_gives_no_right_that_its_person_lacks(api_of: ApiOf, viewer: User, node: Node) -> None:
    client = api_of(viewer, Scope.NODES)
    assert client.post(INVITE, {}, content_type=JSON).json()["code"] == "not_allowed"
    assert client.post(f"/api/v1/nodes/{node.pk}/approve").json()["code"] == "not_allowed"


def test_the_settings_page_offers_the_scope(client: Client, owner: User) -> None:
    client.force_login(owner)
    assert 'name="scopes" value="nodes"' in client.get("/settings/tokens/").content.decode()
    assert "ofk_" in client.post("/settings/tokens/", {"scopes": ["nodes"]}).content.decode()
    assert owner.tokens.get().scopes == ["nodes"]
