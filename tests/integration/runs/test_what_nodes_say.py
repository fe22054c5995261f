"""What a node does, or waits for, reaches whoever looks at a run: in the API, and on its page."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from farm.contract.blocks import Lease
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import EndReport
from farm.fleet.models import Node
from farm.fleet.states import NodeState
from farm.runs import selectors, services
from farm.runs.models import Attempt, Block, Report, Run
from farm.runs.states import AttemptState
from tests.conftest import ApiOf
from tests.integration.runs.making import claim, first_block, post
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
    assert (found.moment.is_slowed, found.words_left.endswith(", longer while this machine is busy")) == (
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
    assert selectors.runs.progress(run).words_left.endswith("once it begins")
    claim(node, first_block(run))
    assert api_of(run.requested_by).get(f"/api/v1/runs/{run.pk}").json()["progress"]["waiting"] == ""


def test_rounds_of_an_attempt_that_was_lost_are_not_counted_as_done(run: Run, node: Node, block: Block) -> None:
    lease = claim(node, block)
    for number in range(3):
        post(node, lease, make_round(number, {0: 1.0, 1: 1.0}))
    Attempt.objects.filter(block=block).update(state=AttemptState.LOST)
    assert selectors.runs.progress(run).minutes_left == pytest.approx(run.minutes, rel=0.05)
