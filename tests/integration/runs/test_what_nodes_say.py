"""What a node does, or waits for, reaches whoever looks at a run: in the API, and on its page."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.contract.blocks import Lease
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import EndReport
from farm.fleet.models import Node
from farm.fleet.services import mark_silent_nodes_offline
from farm.fleet.states import NodeState
from farm.runs import selectors, services
from farm.runs.models import Attempt, Block, Report, Run
from farm.runs.selectors.queues import current_work
from farm.runs.states import AttemptState, BlockState
from tests.conftest import ApiOf
from tests.integration.runs.making import claim, first_block, make_node, post
from tests.unit.rules.making import make_facts, make_round

pytestmark = pytest.mark.django_db
INSTALLING = "installing onnxruntime==1.29.0"
WAITING = "`onnxfarm bench` (process 4711) has been measuring on this machine since 14:02:00. Measurements take turns"


def say(node: Node, doing: str) -> None:
    Node.objects.filter(pk=node.pk).update(doing=doing, state=NodeState.ONLINE)


def test_a_run_says_what_its_node_does(run: Run, node: Node) -> None:
    say(node, "")
    lease = claim(node, first_block(run))
    before = Run.objects.get(pk=run.pk).revision
    services.heartbeat(
        node=node, block_id=lease.order.block, attempt=lease.order.attempt, token=lease.token, doing=INSTALLING
    )
    assert selectors.runs.progress(run).words.endswith(f"; {node.name}: {INSTALLING}")
    assert Run.objects.get(pk=run.pk).revision > before


def test_a_run_that_waits_is_submitted_and_starts_with_its_first_claim(run: Run, node: Node, api_of: ApiOf) -> None:
    """ "started 19 s ago" stood beside "begins in about 35 s", and `started_at` was when it was asked for."""
    assert run.requested_by is not None
    page = Client()
    page.force_login(run.requested_by)

    def told() -> tuple[bool, str]:
        shown = page.get(f"/runs/{run.pk}/").content.decode()
        words = re.findall(r"(started|submitted) <time", shown)
        is_started = api_of(run.requested_by).get(f"/api/v1/runs/{run.pk}").json()["started_at"] is not None
        return is_started, *words

    assert told() == (False, "submitted")
    lease = claim(node, first_block(run))
    assert told() == (True, "started")
    at = Run.objects.get(pk=run.pk).started_at
    post(node, lease, EndReport(wall_s=1.0, reason=Reason(code=ReasonCode.CANCELLED, text="It leaves.")))
    claim(node, first_block(run))
    assert Run.objects.get(pk=run.pk).started_at == at


def test_the_same_words_again_change_nothing(run: Run, node: Node, lease: Lease) -> None:
    beat = {"node": node, "block_id": lease.order.block, "attempt": lease.order.attempt, "token": lease.token}
    services.heartbeat(**beat, doing=INSTALLING)
    before = Run.objects.get(pk=run.pk).revision
    services.heartbeat(**beat, doing=INSTALLING)
    assert Run.objects.get(pk=run.pk).revision == before


def test_a_round_that_is_counted_is_not_said_to_go_on(run: Run, node: Node, lease: Lease) -> None:
    beat = {"node": node, "block_id": lease.order.block, "attempt": lease.order.attempt, "token": lease.token}
    services.heartbeat(**beat, doing="round 1: onnxruntime==1.29.0, fp32, arm 1")
    # by the cell's name: "arm 7" was c9, and c7 another cell
    said = "0 of 8 rounds; bench-1: round 1: onnxruntime==1.29.0, fp32, c2"
    assert selectors.runs.progress(run).words.endswith(said)
    assert [(busy.doing, busy.cell) for busy in selectors.runs.busy_blocks(run)] == [
        ("round 1: onnxruntime==1.29.0, fp32", "c2")
    ]
    post(node, lease, make_round(0, {0: 1.0, 1: 1.0}))
    assert selectors.runs.progress(run).words.endswith("1 of 8 rounds")
    (busy,) = selectors.runs.busy_blocks(run)
    assert (busy.doing, busy.rounds) == ("", 1)
    services.heartbeat(**beat, doing="round 2: onnxruntime==1.31.1, fp32, arm 0")
    assert "1 of 8 rounds; bench-1: round 2: onnxruntime==1.31.1" in selectors.runs.progress(run).words


def test_a_run_that_waits_says_who_has_the_machine(run: Run, node: Node) -> None:
    say(node, WAITING)
    before = Run.objects.get(pk=run.pk).revision
    services.touch_waiting_runs(node)
    assert "process 4711" in selectors.runs.progress(run).words
    assert Run.objects.get(pk=run.pk).revision > before


def test_a_claim_ends_the_waiting_at_once(run: Run, node: Node) -> None:
    say(node, WAITING)
    node.refresh_from_db()  # each request reads the node that asks
    claim(node, first_block(run))
    assert Node.objects.get(pk=node.pk).doing == ""


def test_a_silent_node_keeps_nobody_waiting(run: Run, node: Node) -> None:
    say(node, WAITING)
    Node.objects.filter(pk=node.pk).update(state=NodeState.OFFLINE)
    assert "process 4711" not in selectors.runs.progress(run).words


def test_the_page_of_a_run_and_the_api_show_it(run: Run, node: Node, api_of: ApiOf) -> None:
    say(node, WAITING)
    assert run.requested_by is not None
    page = Client()
    page.force_login(run.requested_by)
    assert "process 4711" in page.get(f"/runs/{run.pk}/").content.decode()
    client = api_of(run.requested_by)
    assert "process 4711" in client.get(f"/api/v1/runs/{run.pk}").json()["progress"]["block"]


def test_minutes_left_follow_the_pace_of_the_rounds(run: Run, node: Node, block: Block) -> None:
    lease = claim(node, block)
    post(node, lease, make_facts())
    for number in range(3):
        post(node, lease, make_round(number, {0: 1.0, 1: 1.0}))
    rows = list(Report.objects.filter(kind="round").order_by("pk"))
    for place, row in enumerate(reversed(rows)):
        Report.objects.filter(pk=row.pk).update(received_at=row.received_at - timedelta(seconds=4 * place))
    found = selectors.runs.progress(run)
    most = sum(Block.objects.filter(run=run).values_list("max_rounds", flat=True))
    assert found.minutes_left == pytest.approx(4 / 60 * (most - 3), abs=0.05)


def test_a_round_that_does_not_end_lengthens_what_is_left(run: Run, node: Node, lease: Lease) -> None:
    for number in range(3):
        post(node, lease, make_round(number, {0: 1.0, 1: 1.0}))
    rows = list(Report.objects.filter(kind="round").order_by("pk"))
    for place, row in enumerate(reversed(rows)):
        Report.objects.filter(pk=row.pk).update(received_at=row.received_at - timedelta(seconds=10 + 2 * place))
    found = selectors.runs.progress(run)
    # (2 + 2 + 10) / 3 s a round, one of which is under way
    assert found.minutes_left == pytest.approx(14 / 3 / 60 * (found.rounds_most - 4), abs=0.05)
    assert (found.outlook.is_slowed, found.outlook.words_left.endswith(", longer while this machine is busy")) == (
        True,
        True,
    )


def test_while_it_waits_the_api_says_for_what_and_what_comes_then(run: Run, node: Node, api_of: ApiOf):
    say(node, WAITING)
    assert run.requested_by is not None
    told = api_of(run.requested_by).get(f"/api/v1/runs/{run.pk}").json()["progress"]
    assert told["waiting"] == f"{node.name}: {WAITING}"
    assert told["minutes_left"] == pytest.approx(run.minutes)
    assert "; waiting since " in told["block"]
    assert selectors.runs.progress(run).outlook.words_left.endswith("once it begins")
    claim(node, first_block(run))
    assert api_of(run.requested_by).get(f"/api/v1/runs/{run.pk}").json()["progress"]["waiting"] == ""


def test_rounds_of_an_attempt_that_was_lost_are_not_counted_as_done(run: Run, node: Node, block: Block) -> None:
    lease = claim(node, block)
    for number in range(3):
        post(node, lease, make_round(number, {0: 1.0, 1: 1.0}))
    Attempt.objects.filter(block=block).update(state=AttemptState.LOST)
    assert selectors.runs.progress(run).minutes_left == pytest.approx(run.minutes, rel=0.05)


def test_rounds_that_only_one_node_may_measure_ask_for_that_node_and_for_no_other(
    run: Run, node: Node, team: Team
) -> None:
    """ "No node that takes blocks for cpu is online. Start bench-2, or add a node" stood there while a cpu node was."""
    make_node(team, name="bench-2")
    Block.objects.filter(run=run).update(only_node=node, first_round=8, state=BlockState.QUEUED)
    Node.objects.filter(pk=node.pk).update(state=NodeState.OFFLINE)
    words = selectors.runs.progress(run).words
    assert f"Only {node.name} (offline, last heard of on 2026-01-01" in words
    assert "add a node" not in words
    Node.objects.filter(pk=node.pk).update(state=NodeState.ONLINE, settings_json={"is_paused": True})
    assert f"Only {node.name} (paused by its owner) may" in selectors.runs.progress(run).words


@pytest.fixture
def pair(team: Team, owner: User) -> tuple[Node, Node]:
    """Two nodes of one owner on one machine; the second was heard of last."""
    one, other = (make_node(team, name=name, owner=owner, host="0123456789abcdef") for name in ("one", "other"))
    Node.objects.filter(pk=other.pk).update(seen_at=timezone.now())
    return one, other


def told_of(node: Node, reader: User) -> str:
    return current_work(reader, [Node.objects.get(pk=node.pk)])[node.pk].words


def test_of_one_machine_the_newest_word_of_who_has_it_holds(pair: tuple[Node, Node], owner: User, run: Run) -> None:
    """Two programs at once "has been measuring on this machine", of which one had ended."""
    one, other = pair
    say(one, WAITING)
    say(other, WAITING.replace("4711", "4712"))
    assert [process_of(told_of(node, owner)) for node in pair] == ["4712", "4712"]
    Node.objects.exclude(pk=one.pk).exclude(pk=other.pk).update(state=NodeState.OFFLINE)
    assert re.findall(r"process \d+", selectors.runs.progress(run).words) == ["process 4712"]


def process_of(words: str) -> str:
    found = re.search(r"process (\d+)", words)
    return found[1] if found else words


def test_a_node_waits_for_what_another_of_its_machine_measures(pair: tuple[Node, Node], owner: User, run: Run) -> None:
    one, other = pair
    say(one, WAITING)
    claim(other, first_block(run))
    assert told_of(one, owner) == f"waits while other measures run {run.pk} on its machine"


def test_a_node_that_went_silent_is_offline_after_one_missed_hello_and_says_since_when(node: Node, owner: User) -> None:
    say(node, WAITING)
    Node.objects.filter(pk=node.pk).update(seen_at=timezone.now() - timedelta(seconds=95))
    mark_silent_nodes_offline()
    assert told_of(node, owner) == Node.objects.get(pk=node.pk).last_heard
