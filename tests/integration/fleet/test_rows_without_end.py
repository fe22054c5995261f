"""Strangers, members and nodes who would write rows without end: codes, refusals, secrets, lines of a log."""

from datetime import timedelta

import pytest
from django.utils import timezone

from farm.accounts.models import AuditEvent, Team, User
from farm.base.refusals import TooMany
from farm.fleet import services
from farm.fleet.models import EnrolmentCode, Node, NodeSecret
from farm.fleet.models.node import MAX_ROUTINE, TRIMMED_EVERY
from farm.fleet.services import enrolment
from farm.fleet.states import NodeEventKind, NodeHealth
from farm.runs.models import Event
from tests.integration.node_api.calls import NodeClient
from tests.integration.runs.making import claim, first_block, make_node, make_run, make_version
from tests.unit.rules.making import make_check

pytestmark = pytest.mark.django_db


def test_a_stranger_who_tries_a_hundred_codes_writes_one_line(team: Team) -> None:
    for number in range(100):
        assert NodeClient(f"stranger-{number}").enrol(f"ofe_{number:08}").status_code == 403
    assert AuditEvent.objects.filter(verb="enrolment refused").count() == 1


def test_a_used_code_shown_again_and_again_is_one_line_that_its_team_sees(team: Team, owner: User) -> None:
    codes = [services.invite(team=team, by=owner)[1] for _ in range(2)]
    for number, code in enumerate(codes):
        assert NodeClient(f"first-{number}").enrol(code).status_code == 201
        for again in range(5):
            assert NodeClient(f"late-{number}-{again}").enrol(code).status_code == 403
    refused = AuditEvent.objects.filter(verb="enrolment refused")
    assert (refused.count(), set(refused.values_list("team", flat=True))) == (2, {team.pk})


def test_a_stranger_cannot_choose_the_address_that_stands_in_the_audit_log(team: Team) -> None:
    for letters in ("abcdef", "fedcba", "aaaaaa", "bbbbbb"):
        NodeClient().get(f"files/{letters}")
    (told,) = AuditEvent.objects.filter(verb="node refused")
    assert told.facts["address"] == "files"


def test_refusals_of_last_year_go_as_new_ones_come(team: Team) -> None:
    NodeClient().hello()
    AuditEvent.objects.update(at=timezone.now() - timedelta(days=365))
    AuditEvent.objects.create(verb="node approved", at=timezone.now() - timedelta(days=365))
    NodeClient().hello()
    assert sorted(AuditEvent.objects.values_list("verb", flat=True)) == ["node approved", "node refused"]


def test_a_member_has_twenty_open_codes_and_no_more(team: Team, member: User) -> None:
    for _ in range(enrolment.MAX_CODES):
        services.invite(team=team, by=member)
    with pytest.raises(TooMany, match="wait for a machine") as refused:
        services.invite(team=team, by=member)
    assert 0 < refused.value.retry_s <= 3600
    EnrolmentCode.objects.update(expires_at=timezone.now() - timedelta(days=8))
    services.invite(team=team, by=member)
    assert EnrolmentCode.objects.count() == 1


def test_an_owner_cannot_pile_up_nodes_that_wait_for_approval(team: Team, member: User) -> None:
    for number in range(enrolment.MAX_PENDING - 2):
        make_node(team, owner=member, name=f"waiting-{number}", health=NodeHealth.PENDING)
    codes = [services.invite(team=team, by=member)[1] for _ in range(3)]
    answers = [NodeClient(f"n-{number}").enrol(code) for number, code in enumerate(codes)]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert int(answers[2]["Retry-After"]) > 0
    Node.objects.filter(health=NodeHealth.PENDING).first().delete()
    assert NodeClient("n-2").enrol(codes[2]).status_code == 201


def test_a_node_that_asks_for_secrets_without_end_gets_a_dozen_an_hour(team: Team, owner: User) -> None:
    machine = NodeClient()
    machine.enrol(services.invite(team=team, by=owner, auto_approve=True)[1])
    answers = [machine.ask_for_secret().status_code for _ in range(enrolment.MAX_SECRETS + 3)]
    assert answers == [200] * enrolment.MAX_SECRETS + [429] * 3
    assert NodeSecret.objects.count() == enrolment.MAX_SECRETS
    long_ago = timezone.now() - timedelta(days=200)
    NodeSecret.objects.update(created_at=long_ago, expires_at=long_ago)
    assert machine.ask_for_secret().status_code == 200
    assert NodeSecret.objects.count() == 1


def test_a_node_that_comes_and_goes_without_end_keeps_a_log_of_a_thousand_lines(team: Team) -> None:
    node = make_node(team)
    node.log(NodeEventKind.APPROVED, "bench-1 is active.")
    from farm.fleet.models import NodeEvent

    lines = [NodeEvent(node=node, kind=NodeEventKind.ONLINE) for _ in range(MAX_ROUTINE + 100)]
    NodeEvent.objects.bulk_create(lines)
    for _ in range(TRIMMED_EVERY):
        node.log(NodeEventKind.OFFLINE, "bench-1 is offline.")
    assert node.events.exclude(kind=NodeEventKind.APPROVED).count() <= MAX_ROUTINE + TRIMMED_EVERY
    assert node.events.filter(kind=NodeEventKind.APPROVED).exists()


def test_an_implausible_report_sent_again_and_again_is_one_line_in_each_log(team: Team, member: User) -> None:
    node = make_node(team)
    block = first_block(make_run(make_version(team), member))
    lease = claim(node, block)
    from farm.base.refusals import Unprocessable
    from tests.integration.runs.making import post

    for _ in range(5):
        with pytest.raises(Unprocessable):
            post(node, lease, make_check(9))
    assert Event.objects.filter(kind="report_refused").count() == 1
    assert node.events.filter(kind=NodeEventKind.REFUSED).count() == 1
