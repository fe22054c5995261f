"""Queries that are put into SQL once read the same rows as the querysets that they come from."""

import threading

import pytest
from django.db import connection
from django.db.models import Exists, OuterRef
from django.test.utils import CaptureQueriesContext

from farm.accounts.models import Membership, Team, User
from farm.accounts.prepared import Prepared, PreparedUpdate
from farm.fleet.models import Node
from tests.integration.runs.making import make_node

pytestmark = pytest.mark.django_db


def test_a_prepared_query_reads_rows_with_what_belongs_to_them(team: Team) -> None:
    other = Team.objects.create(name="elsewhere")
    make_node(team, name="one")
    two, three = make_node(team, name="two", tags={"gpu": "probe"}), make_node(other, name="three")
    members = Membership.objects.filter(team=OuterRef("team"), user=OuterRef("owner"))
    asked = Prepared(
        lambda slots: (
            Node.objects.filter(team=slots.number("team"), name__gte=slots.text("name"))
            .annotate(is_member=Exists(members))
            .select_related("team", "owner")
            .defer("log_tail")
            .order_by("-name")
        )
    )
    first = asked.first(team=team.pk, name="two")
    assert first == two
    with CaptureQueriesContext(connection) as captured:
        assert first is not None
        assert (first.team, first.owner, first.tags, first.created_at) == (
            team,
            two.owner,
            {"gpu": "probe"},
            two.created_at,
        )
        assert first.is_member is True  # type: ignore[attr-defined]
    assert len(captured) == 0
    assert [node.name for node in asked.all(team=team.pk, name="a")] == ["two", "one"]
    assert asked.all(team=other.pk, name="a") == [three]
    assert asked.first(team=other.pk, name="z") is None


def test_rows_of_one_answer_are_not_those_of_the_next(team: Team) -> None:
    node = make_node(team)
    asked = Prepared(lambda slots: Node.objects.filter(pk=slots.number("node")))
    first = asked.first(node=node.pk)
    Node.objects.filter(pk=node.pk).update(doing="something else")
    again = asked.first(node=node.pk)
    assert first is not None
    assert again is not None
    assert (first.doing, again.doing) == ("", "something else")


def test_each_thread_has_its_own(member: User) -> None:
    asked = Prepared(lambda slots: User.objects.filter(pk=slots.number("user")))
    asked.first(user=member.pk)
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(hasattr(asked._here, "statement")))
    thread.start()
    thread.join()
    assert (seen, hasattr(asked._here, "statement")) == ([False], True)


def test_a_slot_that_the_query_changes_is_refused() -> None:
    asked = Prepared(lambda slots: Node.objects.filter(name__contains=slots.text("name")))
    with pytest.raises(ValueError, match="name did not reach the query"):
        asked.first(name="one")


def test_a_number_that_no_row_can_have_finds_none(team: Team) -> None:
    make_node(team)
    asked = Prepared(lambda slots: Node.objects.filter(pk=slots.number("node")))
    change = PreparedUpdate(lambda slots: (Node.objects.filter(pk=slots.number("node")), {"doing": "asleep"}))
    assert asked.all(node=10**30) == []
    assert change(node=-(10**30)) == 0
