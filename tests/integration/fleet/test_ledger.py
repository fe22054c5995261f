"""What an owner reads of their machine: for whom it worked, for how long, what was installed, and what waits."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.reading.ledgers import work_table
from farm.accounts.models import Team, User
from farm.contract.api.fleet import LedgerOut
from farm.contract.blocks import Lease
from farm.contract.reports import EndReport
from farm.fleet.models import Node
from farm.fleet.services import record_hello
from farm.registry.models import Version
from farm.runs import services
from farm.runs.models import Attempt, Block, Run
from farm.runs.states import AttemptState, RunReason
from onnxfarm.commands.fleet import format_ledger
from tests.conftest import ApiOf
from tests.integration.runs.making import claim, make_node, make_version, measure, say
from tests.integration.runs.test_queue_order import run_of
from tests.unit.rules.making import make_facts

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(team: Team, owner: User) -> Node:
    return make_node(team, owner=owner)


@pytest.fixture
def version(team: Team) -> Version:
    return make_version(team)


def worked(node: Node, block: Block, minutes: float, *, days_ago: float = 0.0) -> None:
    """Measures the block, and has it have taken so long."""
    measure(node, block, [1.0, 1.0])
    end = timezone.now() - timedelta(days=days_ago)
    Attempt.objects.filter(block=block).update(claimed_at=end - timedelta(minutes=minutes), ended_at=end)


def told(client: Client, node: Node, **asked: object) -> LedgerOut:
    answer = client.get(f"/api/v1/nodes/{node.pk}/ledger", asked)
    assert answer.status_code == 200, answer.content
    return LedgerOut.model_validate(answer.json())


def test_the_ledger_says_for_whom_it_worked_and_how_long(
    node: Node, version: Version, member: User, owner: User, api_of: ApiOf, team: Team
) -> None:
    for minutes in (3.0, 4.0):
        worked(node, run_of(version, member), minutes)
    worked(node, run_of(version, owner, reason=RunReason.WATCH), 10.0)
    worked(node, run_of(version, member), 60.0, days_ago=31)
    found = told(api_of(owner), node)
    assert [
        (work.team, work.person, work.reason, work.runs, work.blocks, round(work.minutes, 3)) for work in found.work
    ] == [
        (team.name, owner.username, "watch", 1, 1, 10.0),
        (team.name, member.username, "", 2, 2, 7.0),
    ]
    assert (found.blocks, round(found.minutes, 3)) == (3, 17.0)
    assert told(api_of(owner), node, days=60).blocks == 4
    lines = list(format_ledger(node.name, found, days=30))
    assert lines[0] == "bench-1 measured 3 blocks in 30 days, 17 min in all."
    assert lines[1] == f"  10 min for {owner.username} of {team.name}, watch: 1 run, 1 block"


def test_the_rows_of_a_ledger_add_up_to_its_sum_on_the_page_and_in_the_terminal(
    node: Node, version: Version, member: User, owner: User, api_of: ApiOf
) -> None:
    """A page had 5:28, 1:21 and 1:05, a terminal 5:27, 1:20 and 1:04, and both 7:52 in all."""
    for person, seconds in ((member, 327.4), (owner, 80.4)):
        worked(node, run_of(version, person), seconds / 60)
    found = told(api_of(owner), node)
    lines = list(format_ledger(node.name, found, days=30))
    shown = [row[4].text for row in work_table(found.work).rows]
    assert shown == ["5 min 27 s", "1 min 20 s"]
    assert [line.split(" for ")[0].strip() for line in lines[1:3]] == shown
    assert "6 min 47 s in all" in lines[0]


def test_a_block_that_was_cancelled_or_still_runs_takes_time_but_is_not_counted_as_measured(
    node: Node, version: Version, member: User, owner: User, api_of: ApiOf
) -> None:
    for state in (AttemptState.CANCELLED, AttemptState.LOST, AttemptState.LEASED, AttemptState.DONE):
        block = run_of(version, member)
        worked(node, block, 2.0)
        Attempt.objects.filter(block=block).update(state=state)
    found = told(api_of(owner), node)
    assert (found.blocks, round(found.minutes, 3)) == (1, 8.0)


def test_what_it_measures_and_what_waits_is_in_it(
    node: Node, version: Version, member: User, owner: User, api_of: ApiOf
) -> None:
    first, second, third = (run_of(version, member) for _ in range(3))
    for block, minutes in ((first, 2.0), (second, 4.0), (third, 1.0)):
        Block.objects.filter(pk=block.pk).update(plan_json={**block.plan_json, "minutes": minutes})
    claim(node, first)
    found = told(api_of(owner), node)
    assert found.measuring == first.run_id
    waits = [
        (waiting.run, round(waiting.begins_in_minutes or 0), round(waiting.minutes or 0, 3)) for waiting in found.next
    ]
    assert waits == [(second.run_id, 2, 4.0), (third.run_id, 6, 1.0)]
    assert "Next: run" in "\n".join(format_ledger(node.name, found, days=30))
    page = Client()
    page.force_login(owner)
    fleet, own = (page.get(address).content.decode() for address in ("/fleet/", f"/fleet/{node.pk}/"))
    assert f'data-next="{second.run_id}"' in fleet
    assert 'id="next"' in own
    assert 'id="ledger"' in own


def cancelled(node: Node, lease: Lease) -> None:
    run = Block.objects.get(pk=lease.order.block).run
    services.cancel_run(run=run, by=node.owner)


def lost(node: Node, lease: Lease) -> None:
    Node.objects.filter(pk=node.pk).update(health="retired")
    services.sweep()
    Node.objects.filter(pk=node.pk).update(health="active")


@pytest.mark.parametrize("ended", [partial(say, report=EndReport(wall_s=1.0)), cancelled, lost])
def test_a_node_whose_block_is_over_is_idle_at_once_and_next_begins(
    ended: Callable[[Node, Lease], object],
    node: Node,
    version: Version,
    member: User,
    owner: User,
    api_of: ApiOf,
) -> None:
    """The last word of its heartbeats stood on, until its next hello, as what it did; nobody could tell what begins."""
    owner.memberships.update(role="admin")
    lease = claim(node, run_of(version, member))
    beat = {"node": node, "block_id": lease.order.block, "attempt": lease.order.attempt, "token": lease.token}
    services.heartbeat(**beat, doing="round 7: onnxruntime==1.31.1")
    assert told(api_of(owner), node).now == f"run {Block.objects.get(pk=lease.order.block).run_id}"
    run_of(version, member)
    ended(node, lease)
    found = told(api_of(owner), node)
    assert (found.now, found.measuring, found.next[0].begins_in_minutes) == ("idle", None, 0.0)
    assert "Now: idle." in list(format_ledger(node.name, found, days=30))
    page = Client()
    page.force_login(owner)
    for address in ("/fleet/", f"/fleet/{node.pk}/"):
        shown = page.get(address).content.decode()
        assert "idle" in shown.lower()
        assert "round 7" not in shown


def test_a_node_that_went_away_waits_for_nothing(node: Node, owner: User, api_of: ApiOf) -> None:
    Node.objects.filter(pk=node.pk).update(doing="another program")
    assert told(api_of(owner), node).now == "another program"
    Node.objects.filter(pk=node.pk).update(state="offline")
    assert told(api_of(owner), node).now == "last heard of on 2026-01-01 at 00:00 UTC"


def test_what_waits_is_in_it_while_another_program_has_the_machine(
    node: Node, version: Version, member: User, owner: User, api_of: ApiOf
) -> None:
    blocks = [run_of(version, member) for _ in range(2)]
    Node.objects.filter(pk=node.pk).update(doing="another program")
    found = told(api_of(owner), node)
    assert [(waiting.run, waiting.begins_in_minutes, waiting.minutes) for waiting in found.next] == [
        (block.run_id, None, None) for block in blocks
    ]
    lines = list(format_ledger(node.name, found, days=30))
    assert [f"run {block.run_id}," in line for block, line in zip(blocks, lines[-2:], strict=True)] == [True, True]
    page = Client()
    page.force_login(owner)
    assert f'data-next="{blocks[0].run_id}"' in page.get("/fleet/").content.decode()
    assert 'id="next"' in page.get(f"/fleet/{node.pk}/").content.decode()
    # what waits for it goes on waiting while it takes no block for now, and not once it is retired
    Node.objects.filter(pk=node.pk).update(health="draining")
    assert [waiting.run for waiting in told(api_of(owner), node).next] == [block.run_id for block in blocks]
    Node.objects.filter(pk=node.pk).update(health="retired")
    assert told(api_of(owner), node).next == []


def test_a_run_that_the_owner_may_not_see_waits_without_its_number(
    node: Node, version: Version, member: User, owner: User, api_of: ApiOf
) -> None:
    block = run_of(version, member)
    hidden = Team.objects.create(name="hidden")
    Run.objects.filter(pk=block.run_id).update(team=hidden)
    node.lendings.create(team=hidden, state="agreed", asked_by=node.owner)
    hidden.memberships.create(user=member)
    node.lendings.update(asked_by=member)
    (waiting,) = told(api_of(owner), node).next
    assert (waiting.run, waiting.team) == (None, "hidden")
    claim(node, block)
    found = told(api_of(owner), node)
    assert (found.measuring, found.now) == (None, "a run of hidden")
    page = Client()
    page.force_login(owner)
    for address in ("/fleet/", f"/fleet/{node.pk}/"):
        assert f"/runs/{block.run_id}/" not in page.get(address).content.decode()


def test_what_is_installed_and_removed_is_logged_once(node: Node, owner: User, api_of: ApiOf) -> None:
    def install(*runtimes: str, block: str | None = None) -> None:
        from farm.contract.node import Hello
        from farm.contract.version import CONTRACT_VERSION

        record_hello(
            node=Node.objects.get(pk=node.pk),
            hello=Hello.model_validate(
                {
                    "contract_version": CONTRACT_VERSION,
                    "facts": make_facts().facts,
                    "runtimes": [
                        dict(zip(("distribution", "version"), name.split("=="), strict=True)) for name in runtimes
                    ],
                    "block": block,
                }
            ),
        )

    install("onnxruntime==1.31.1", block="7")
    install("onnxruntime==1.31.1")
    install("onnxruntime==1.30.0")
    texts = [installed.text for installed in told(api_of(owner), node).installed]
    assert texts == [
        "Installed onnxruntime==1.30.0; removed onnxruntime==1.31.1.",
        "Installed onnxruntime==1.31.1.",
    ]
    assert node.events.filter(kind="runtimes").last().facts == {"block": "7"}


def test_a_ledger_is_its_owner_s_and_of_so_many_days(
    node: Node, owner: User, member: User, stranger: User, api_of: ApiOf
) -> None:
    address = f"/api/v1/nodes/{node.pk}/ledger"
    assert [api_of(user).get(address).status_code for user in (owner, member, stranger)] == [200, 403, 404]
    for days in ("0", "367", "-1", "x", "9" * 30):
        assert api_of(owner).get(address, {"days": days}).status_code in (400, 422), days
    page = Client()
    page.force_login(member)
    shown = page.get(f"/fleet/{node.pk}/")
    assert (shown.status_code, 'id="ledger"' in shown.content.decode()) == (200, False)
