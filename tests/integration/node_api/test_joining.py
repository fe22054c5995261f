"""How a machine joins a farm, and everything that does not let it in."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from farm.accounts.models import AuditEvent, Team, User
from farm.base.refusals import Conflict, Missing, NotAllowed
from farm.contract import signatures
from farm.contract import version as contract
from farm.contract.version import CONTRACT_VERSION
from farm.fleet import services
from farm.fleet.models import EnrolmentCode, Node, NodeSecret
from farm.fleet.states import NodeHealth, NodeState
from tests.integration.node_api.calls import FACTS, NodeClient

pytestmark = pytest.mark.django_db


@pytest.fixture
def code(team: Team, owner: User) -> str:
    return services.invite(team=team, by=owner)[1]


@pytest.fixture
def machine(code: str, owner: User) -> NodeClient:
    """A machine that has joined, was approved and has its secret."""
    machine = NodeClient()
    machine.enrol(code)
    services.approve(node=Node.objects.get(), by=owner)
    machine.ask_for_secret()
    return machine


def test_a_machine_joins_is_approved_and_says_hello(code: str, owner: User) -> None:
    machine = NodeClient()
    enrolled = machine.enrol(code).json()
    assert (enrolled["health"], enrolled["fingerprint"]) == (
        "pending",
        signatures.make_fingerprint(signatures.derive_public_key(machine.private)),
    )
    pending = machine.ask_for_secret()
    assert (pending.status_code, pending.json()["code"]) == (403, "pending")
    services.approve(node=Node.objects.get(), by=owner)
    assert machine.ask_for_secret().json()["secret"].startswith("ofn_")
    welcome = machine.hello().json()
    assert (welcome["health"], welcome["queues"]) == ("active", [f"node.{machine.node_id}", "tag.cpu", "tag.x86"])
    node = Node.objects.get()
    assert (node.state, node.owner, node.tags["cpu"]) == (NodeState.ONLINE, owner, "probe trace: 3 nodes")


def test_the_farm_s_own_machine_needs_no_approval(team: Team, owner: User) -> None:
    _, code = services.invite(team=team, by=owner, auto_approve=True)
    machine = NodeClient()
    assert machine.enrol(code).json()["health"] == "active"
    assert machine.ask_for_secret().status_code == 200


def test_a_code_works_once(code: str) -> None:
    assert NodeClient("first").enrol(code).status_code == 201
    second = NodeClient("second").enrol(code)
    assert (second.status_code, second.json()["code"]) == (403, "bad_code")
    assert Node.objects.count() == 1
    assert AuditEvent.objects.filter(verb="enrolment refused").count() == 1


def test_a_late_code_is_refused(code: str) -> None:
    EnrolmentCode.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert NodeClient().enrol(code).json()["code"] == "bad_code"


def test_an_unknown_code_is_refused(db: None) -> None:
    assert NodeClient().enrol("ofe_nobody-made-this").status_code == 403


def test_a_key_joins_once(team: Team, owner: User) -> None:
    machine = NodeClient()
    for status in (201, 409):
        _, code = services.invite(team=team, by=owner)
        assert machine.enrol(code).status_code == status
    # the refused attempt has not used up its code
    assert EnrolmentCode.objects.filter(used_at=None).count() == 1


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"contract_version": 99}, 422),
        ({"public_key": "A" * 44}, 422),
        ({"public_key": "short"}, 422),
        ({"name": "../../etc"}, 422),
        ({"name": ""}, 422),
        ({"facts": {**FACTS, "more": {"x": "y" * 70_000}}}, 422),
        ({"facts": {"hostname": 7}}, 422),
        ({"surprise": 1}, 422),
        ({"code": "x"}, 422),
    ],
)
def test_a_malformed_enrolment_is_refused_in_one_sentence(code: str, changes: dict[str, Any], status: int) -> None:
    answer = NodeClient().enrol(code, **changes)
    assert answer.status_code == status
    assert answer.json()["detail"].endswith(".")
    assert Node.objects.count() == 0


@pytest.mark.parametrize("body", ["", "null", "[]", "{", '"x"', "\x00", "NaN"])
def test_a_body_that_is_no_message_is_refused_in_one_sentence(db: None, body: str) -> None:
    answer = NodeClient().post("enrol", body)
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid"


def test_a_body_over_the_limit_is_refused(db: None) -> None:
    assert NodeClient().post("enrol", "x" * 300_000).status_code == 413


def test_a_viewer_cannot_invite_and_a_member_cannot_skip_approval(
    team: Team, viewer: User, member: User, stranger: User
) -> None:
    with pytest.raises(NotAllowed):
        services.invite(team=team, by=viewer)
    with pytest.raises(NotAllowed):
        services.invite(team=team, by=member, auto_approve=True)
    with pytest.raises(Missing):
        services.invite(team=team, by=stranger)


def test_only_an_admin_of_the_team_approves(code: str, member: User, stranger: User) -> None:
    NodeClient().enrol(code)
    for user in (member, stranger):
        with pytest.raises(NotAllowed):
            services.approve(node=Node.objects.get(), by=user)
    assert Node.objects.get().health == NodeHealth.PENDING


def test_a_secret_needs_the_machine_s_own_key(machine: NodeClient) -> None:
    forged = machine.ask_for_secret(private=signatures.make_private_key())
    assert (forged.status_code, forged.json()["code"]) == (403, "bad_signature")


@pytest.mark.parametrize("offset_s", [-3600, 3600])
def test_an_old_or_early_signature_is_refused(machine: NodeClient, offset_s: int) -> None:
    answer = machine.ask_for_secret(signed_at=int(time.time()) + offset_s)
    assert (answer.status_code, answer.json()["code"]) == (403, "bad_clock")


@pytest.mark.parametrize("node_id", ["", "x", "999", "9" * 30, "-1"])
def test_an_unknown_node_gets_no_secret(machine: NodeClient, node_id: str) -> None:
    assert machine.ask_for_secret(node_id=node_id).json()["code"] == "bad_signature"


def test_secrets_rotate_and_the_one_before_works_a_little_longer(machine: NodeClient) -> None:
    before = machine.secret
    machine.ask_for_secret()
    assert machine.secret != before
    for secret in (before, machine.secret):
        machine.secret = secret
        assert machine.hello().status_code == 200
    soon = NodeSecret.objects.filter(expires_at__lt=timezone.now() + timedelta(days=1))
    # a second ago: SQLite's own clock, by which the farm asks, counts milliseconds
    soon.update(expires_at=timezone.now() - timedelta(seconds=1))
    machine.secret = before
    assert machine.hello().status_code == 401


@pytest.mark.parametrize("secret", ["", "ofn_wrong", "Bearer", "\x00", "ofk_" + "a" * 43])
def test_a_wrong_secret_opens_nothing(machine: NodeClient, secret: str) -> None:
    machine.secret = secret
    answer = machine.hello()
    assert answer.status_code == 401
    assert answer.json()["code"] == "unknown_node"


def test_a_revoked_node_is_out_at_once_and_for_good(machine: NodeClient, owner: User) -> None:
    services.revoke(node=Node.objects.get(), by=owner, reason="sold")
    assert machine.hello().status_code == 401
    assert machine.ask_for_secret().json()["code"] == "retired"
    with pytest.raises(Conflict):
        services.resume(node=Node.objects.get(), by=owner)
    assert AuditEvent.objects.filter(verb="node revoked").count() == 1


@pytest.mark.parametrize(
    ("tags", "facts"),
    [({"arm": "trust me"}, FACTS), ({"x86": "trust me"}, {**FACTS, "arch": "aarch64"}), ({"Bad Tag": "x"}, FACTS)],
)
def test_a_node_that_lies_about_its_tags_is_refused_and_keeps_the_old_ones(
    machine: NodeClient, tags: dict[str, str], facts: dict[str, Any]
) -> None:
    machine.hello()
    assert machine.hello(tags=tags, facts=facts).status_code == 422
    assert set(Node.objects.get().tags) == {"cpu", "x86"}


@pytest.mark.parametrize("version", [0, 2**15, 2**64, 10**400])
def test_a_node_whose_version_no_database_holds_is_refused_in_words(machine: NodeClient, version: int) -> None:
    answer = machine.hello(contract_version=version)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_an_older_node_is_told_so_and_gets_no_queue(machine: NodeClient) -> None:
    welcome = machine.hello(contract_version=1).json()
    assert welcome["queues"] == []
    assert "speaks version 1" in welcome["sentence"]


def test_a_node_of_the_version_before_goes_on_after_the_farm_was_upgraded(
    machine: NodeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "CONTRACT_VERSION", CONTRACT_VERSION + 1)
    assert machine.hello(contract_version=CONTRACT_VERSION).json()["queues"]
    later = machine.hello(contract_version=CONTRACT_VERSION + 2).json()
    assert later["queues"] == []
    assert f"the farm speaks {CONTRACT_VERSION} to {CONTRACT_VERSION + 1}" in later["sentence"]


def test_a_new_version_of_the_contract_leaves_nodes_of_the_one_before_at_work() -> None:
    assert max(2, CONTRACT_VERSION - 1) >= contract.OLDEST_VERSION


def test_draining_and_pausing_take_the_queues_away(machine: NodeClient, owner: User) -> None:
    node = Node.objects.get()
    services.drain(node=node, by=owner)
    assert machine.hello().json()["queues"] == []
    services.resume(node=node, by=owner)
    services.change_settings(node=node, by=owner, is_paused=True)
    assert machine.hello().json()["queues"] == []


def test_a_node_hears_what_was_ordered_without_a_hello(machine: NodeClient, owner: User) -> None:
    machine.hello()
    node, seen_at = Node.objects.get(), Node.objects.get().seen_at
    assert machine.get("standing").json()["sentence"] == ""
    services.change_settings(node=node, by=owner, is_paused=True)
    assert machine.get("standing").json()["sentence"] == "Paused by its owner."
    services.revoke(node=node, by=owner)
    assert machine.get("standing").status_code == 401
    assert Node.objects.get().seen_at == seen_at


def test_leaving_makes_a_node_offline(machine: NodeClient) -> None:
    machine.hello()
    machine.hello(state="leaving")
    assert Node.objects.get().state == NodeState.OFFLINE


def test_a_silent_node_becomes_offline(machine: NodeClient) -> None:
    machine.hello()
    assert services.mark_silent_nodes_offline() == 0
    Node.objects.update(seen_at=timezone.now() - timedelta(minutes=10))
    assert services.mark_silent_nodes_offline() == 1
    node = Node.objects.get()
    assert node.state == NodeState.OFFLINE
    assert [event.kind for event in node.events.all()][:2] == ["offline", "online"]


def test_a_stranger_sees_and_orders_nothing(machine: NodeClient, stranger: User, viewer: User) -> None:
    from farm.fleet import selectors

    node = Node.objects.get()
    with pytest.raises(Missing):
        selectors.node(stranger, node.pk)
    for order in (services.drain, services.revoke, services.resume):
        with pytest.raises(NotAllowed):
            order(node=node, by=viewer)


def test_owner_s_settings_out_of_range_are_refused(machine: NodeClient, owner: User) -> None:
    from farm.base.refusals import Invalid

    node = Node.objects.get()
    with pytest.raises(Invalid):
        services.change_settings(node=node, by=owner, cache_bytes="lots")
    with pytest.raises(Invalid):
        services.change_settings(node=node, by=owner, tags=["Not A Tag"])
    services.change_settings(node=node, by=owner, tags=["lab-3"])
    assert "tag.lab-3" in machine.hello().json()["queues"]
