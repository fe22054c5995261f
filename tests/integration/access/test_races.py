"""What may happen once, asked for by many at the same moment: it happens once, and the others are refused in words."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client

from farm.accounts import memberships
from farm.accounts import services as accounts
from farm.accounts.models import Membership, Team, User
from farm.accounts.states import Role
from farm.base.refusals import Refusal
from farm.contract import signatures, version
from farm.contract.node import Enrolment
from farm.fleet.models import EnrolmentCode, Node
from farm.fleet.services import enrolment
from farm.fleet.services.enrolment import MAX_CODES
from farm.fleet.states import NodeHealth
from farm.registry.models import Blob
from tests.integration.runs.making import make_node
from tests.unit.rules.making import make_facts

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 8


def at_once(work: Callable[[int], Any], times: int = AT_ONCE) -> Counter[str]:
    """How each of so many threads ended that began at the same moment: `done`, or by the code of its refusal."""
    gate, ended = threading.Barrier(times), Counter[str]()

    def attempt(number: int) -> None:
        try:
            gate.wait()
            work(number)
            ended["done"] += 1
        except Refusal as refusal:
            ended[refusal.code] += 1
        finally:
            connection.close()

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended.total() == times, ended
    return ended


def test_a_node_is_approved_once(team: Team, owner: User) -> None:
    node = make_node(team, health=NodeHealth.PENDING)
    ended = at_once(lambda _: enrolment.approve(node=Node.objects.get(pk=node.pk), by=owner))
    assert ended["done"] == 1
    assert node.events.filter(kind="approved").count() == 1


def test_a_code_lets_one_machine_in(team: Team, owner: User) -> None:
    _, code = enrolment.invite(team=team, by=owner)

    def enrol(number: int) -> None:
        key = signatures.derive_public_key(signatures.make_private_key())
        facts, spoken = make_facts().facts, version.CONTRACT_VERSION
        enrolment.enrol(Enrolment(code=code, name=f"n{number}", public_key=key, facts=facts, contract_version=spoken))

    assert at_once(enrol)["done"] == 1
    assert Node.objects.filter(team=team).count() == 1


def test_a_sign_in_link_opens_once(member: User) -> None:
    secret = accounts.make_sign_in_link(member).rstrip("/").rsplit("/", 1)[-1]
    assert at_once(lambda _: accounts.redeem_sign_in_link(secret))["done"] == 1


def test_a_team_keeps_an_admin_when_two_take_the_role_from_each_other(team: Team, owner: User, member: User) -> None:
    Membership.objects.filter(team=team, user=member).update(role=Role.ADMIN)
    pairs = [(owner, member), (member, owner)]

    def demote(number: int) -> None:
        by, user = pairs[number]
        memberships.set_role(team=team, user=user, role=Role.VIEWER, by=by)

    at_once(demote, times=2)
    assert Membership.objects.filter(team=team, role=Role.ADMIN).exists()


def test_a_member_has_no_more_codes_than_a_member_may(team: Team, member: User) -> None:
    for _ in range(MAX_CODES - 1):
        enrolment.invite(team=team, by=member)
    at_once(lambda _: enrolment.invite(team=team, by=member))
    assert EnrolmentCode.objects.filter(created_by=member).count() == MAX_CODES


def test_uploads_at_once_stay_within_the_quota(team: Team, member: User) -> None:
    size = 10_000
    Team.objects.filter(pk=team.pk).update(quota_bytes=2 * size + 100)
    token = accounts.issue_token(member)[1]

    def upload(number: int) -> None:
        file = SimpleUploadedFile("a.onnx", bytes([number]) * size)
        Client().post("/api/v1/uploads", {"files": file}, headers={"Authorization": f"Bearer {token}"})

    at_once(upload)
    assert sum(Blob.objects.filter(team=team).values_list("bytes", flat=True)) <= 2 * size + 100
    assert Blob.objects.filter(team=team).count() == 2
