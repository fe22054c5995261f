"""Whose turn it is: people before the farm's own searches, then by arrival; one node of a machine at a time."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.base.refusals import Conflict
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import EndReport
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs import selectors, services
from farm.runs.models import Attempt, Block, Run
from farm.runs.selectors.queue_order import MACHINE_RESERVATION, Claimant
from farm.runs.states import BACKGROUND, BlockState, RunReason
from tests.integration.runs.making import claim, first_block, make_node, make_run, make_version, measure, post
from tests.integration.runs.test_leases import at_once, claim_as

pytestmark = pytest.mark.django_db
HOST = "0123456789abcdef"


def run_of(version: Version, member: User, *, reason: RunReason = RunReason.ASKED, **matrix: object) -> Block:
    """The first block of a new run, queued."""
    run = make_run(version, member, matrix={"runtime": ["1.31.1"], "batch": [1], **matrix})
    Run.objects.filter(pk=run.pk).update(reason=reason)
    return first_block(run)


def told(node: Node, block: Block) -> int | None:
    """The block that the node is told of by a message about this one."""
    taker, _ = selectors.find_claimant(str(block.pk), block.attempt, [node.pk])
    return taker and taker.block


@pytest.mark.parametrize("reason", BACKGROUND)
def test_a_run_that_a_person_asked_for_goes_before_the_farm_s_own(
    node: Node, version: Version, member: User, reason: RunReason
) -> None:
    search, asked = run_of(version, member, reason=reason), run_of(version, member)
    assert told(node, search) == asked.pk
    with pytest.raises(Conflict, match="A run that a person asked for comes first on bench-1"):
        claim(node, search)
    measure(node, asked, [1.0, 1.0])
    assert told(node, search) == search.pk
    assert claim(node, search).order.block == str(search.pk)


def test_a_team_may_let_its_nodes_take_all_runs_by_arrival(
    node: Node, version: Version, member: User, team: Team
) -> None:
    search, asked = run_of(version, member, reason=RunReason.WATCH), run_of(version, member)
    Team.objects.filter(pk=team.pk).update(puts_people_first=False)
    assert told(node, asked) == search.pk
    assert claim(Node.objects.get(pk=node.pk), search)


def test_of_two_runs_the_one_that_came_first_goes_first_whichever_message_is_read(
    node: Node, version: Version, member: User
) -> None:
    first, second = run_of(version, member), run_of(version, member)
    taker, is_there = selectors.find_claimant(str(second.pk), second.attempt, [node.pk])
    assert (taker, is_there) == (Claimant(node.pk, first.pk, first.attempt), True)
    # who was told of the first just now comes for it
    assert (
        selectors.find_claimant(str(second.pk), 1, [node.pk], passed_over={first.pk: "another"})[0].block == second.pk
    )


def test_a_block_that_its_node_lost_keeps_its_place(node: Node, version: Version, member: User) -> None:
    first, second = run_of(version, member), run_of(version, member)
    lease = claim(node, first)
    post(node, lease, EndReport(reason=Reason(code=ReasonCode.CANCELLED, text="The node leaves.")))
    assert told(node, second) == first.pk


def test_a_run_that_goes_on_stands_behind_those_that_came_meanwhile(
    done: Run, node: Node, version: Version, member: User
) -> None:
    other = run_of(version, member)
    services.measure_more_rounds(run=done, by=member, rounds=8, blocks=[1])
    block = first_block(done)
    assert block.state == BlockState.QUEUED
    assert told(node, block) == other.pk


def test_a_block_before_it_that_the_node_may_not_have_holds_up_nothing(
    node: Node, version: Version, member: User, team: Team
) -> None:
    elsewhere = make_node(team, name="bench-2")
    run_of(version, member, hardware=["node:bench-2"])
    mine = run_of(version, member, hardware=["node:bench-1"])
    assert told(node, mine) == mine.pk
    assert told(elsewhere, mine) is None


@pytest.fixture
def neighbours(node: Node, owner: User, team: Team) -> tuple[Node, Node]:
    """Two nodes of one machine."""
    Node.objects.filter(pk=node.pk).update(host=HOST)
    return Node.objects.get(pk=node.pk), make_node(team, name="bench-2", owner=owner, host=HOST)


def test_nodes_of_one_machine_measure_one_block_at_a_time(
    neighbours: tuple[Node, Node], version: Version, member: User
) -> None:
    first, second = run_of(version, member), run_of(version, member)
    claim(neighbours[0], first)
    assert told(neighbours[1], second) is None
    with pytest.raises(Conflict, match="another node of its machine"):
        claim(neighbours[1], second)
    with pytest.raises(IntegrityError), transaction.atomic():
        Block.objects.filter(pk=second.pk).update(state=BlockState.LEASED, device=neighbours[1].device)


@pytest.mark.django_db(transaction=True)
def test_of_two_nodes_of_one_machine_that_claim_at_once_one_has_its_block(
    neighbours: tuple[Node, Node], version: Version, member: User
) -> None:
    blocks = [run_of(version, member, hardware=[f"node:{node.name}"]) for node in neighbours]
    pairs = list(zip(neighbours, blocks, strict=True))
    won, lost = at_once([lambda node=node, block=block: claim_as(node, block) for node, block in pairs])
    assert (len(won), len(lost)) == (1, 1)
    assert Block.objects.filter(state=BlockState.LEASED).count() == Attempt.objects.count() == 1


def test_what_one_node_of_a_machine_was_told_of_is_still_the_first_for_the_other(
    neighbours: tuple[Node, Node], version: Version, member: User
) -> None:
    """While an outside measurement had the machine, one was told of the first block and the other took the second."""
    first, second = run_of(version, member), run_of(version, member)
    named = {first.pk: neighbours[0].device}
    taker, _ = selectors.find_claimant(str(second.pk), second.attempt, [neighbours[1].pk], passed_over=named)
    assert taker == Claimant(neighbours[1].pk, first.pk, first.attempt)


def test_another_owner_s_node_that_says_the_same_keeps_nobody_from_measuring(
    neighbours: tuple[Node, Node], version: Version, member: User, team: Team
) -> None:
    liar = make_node(team, name="liar", owner=member, host=HOST)
    claim(liar, run_of(version, member))
    assert claim(neighbours[0], run_of(version, member))


def test_a_machine_that_became_free_is_left_to_its_other_node_whose_block_came_first(
    neighbours: tuple[Node, Node], version: Version, member: User
) -> None:
    one, other = neighbours
    mine = [run_of(version, member, hardware=["node:bench-1"])]
    theirs = run_of(version, member, hardware=["node:bench-2"])
    mine.append(run_of(version, member, hardware=["node:bench-1"]))
    measure(one, mine[0], [1.0, 1.0])
    assert told(one, mine[1]) is None
    with pytest.raises(Conflict, match="the turn of another node on the machine of bench-1"):
        claim(one, mine[1])
    assert told(other, theirs) == theirs.pk
    measure(other, theirs, [1.0, 1.0])
    assert told(one, mine[1]) == mine[1].pk


@pytest.mark.parametrize("why", ["silent", "offline"])
def test_a_node_that_does_not_come_for_its_turn_keeps_the_other_no_longer(
    neighbours: tuple[Node, Node], version: Version, member: User, why: str
) -> None:
    one = neighbours[0]
    first = run_of(version, member, hardware=["node:bench-1"])
    run_of(version, member, hardware=["node:bench-2"])
    last = run_of(version, member, hardware=["node:bench-1"])
    measure(one, first, [1.0, 1.0])
    assert told(one, last) is None
    if why == "silent":
        Attempt.objects.update(ended_at=timezone.now() - MACHINE_RESERVATION)
    else:
        Node.objects.filter(name="bench-2").update(state="offline")
    assert told(one, last) == last.pk


def spend(run: Run, *, minutes: float, ended_at: object = None) -> None:
    """Makes its attempts as long."""
    end = ended_at or timezone.now()
    Attempt.objects.filter(block__run=run).update(claimed_at=end - timedelta(minutes=minutes), ended_at=end)
    Run.objects.filter(pk=run.pk).update(finished_at=end)


@pytest.mark.parametrize("reason", [RunReason.ASKED, RunReason.WATCH])
def test_a_team_that_has_had_its_minutes_of_the_day_waits_for_the_next_and_says_so(
    done: Run, node: Node, version: Version, member: User, team: Team, stranger: User, reason: RunReason
) -> None:
    # searches and watches count
    Run.objects.filter(pk=done.pk).update(reason=reason)
    block = run_of(version, member)
    noon = timezone.now().replace(hour=0, minute=0) + timedelta(minutes=12)
    spend(done, minutes=10.0, ended_at=noon)
    Team.objects.filter(pk=team.pk).update(daily_minutes=10)
    assert told(node, block) is None
    with pytest.raises(Conflict, match=r"has used 10 of its 10 node minutes of today: its blocks go on at 00:00 UTC"):
        claim(node, block)
    Team.objects.filter(pk=team.pk).update(daily_minutes=11)
    assert told(node, block) == block.pk
    # what was measured yesterday is no minute of today
    Team.objects.filter(pk=team.pk).update(daily_minutes=10)
    spend(done, minutes=10.0, ended_at=noon - timedelta(minutes=13))
    assert claim(node, block)


def test_a_team_without_minutes_holds_up_no_other(node: Node, version: Version, member: User, team: Team) -> None:
    other = Team.objects.create(name="spendthrift", daily_minutes=0)
    lent = make_version(other, name="theirs")
    block = first_block(make_run(lent, make_node(other, name="theirs").owner))
    mine = run_of(version, member)
    assert block.state == BlockState.QUEUED
    assert told(node, mine) == mine.pk
