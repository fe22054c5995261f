"""Reports that are stale, forged, contradictory or cannot be true: refused, in the log, nothing changed."""

import threading
from typing import Any

import pytest
from django.db import connection

from farm.accounts.models import Team, User
from farm.base.refusals import Conflict, NotAllowed, Refusal, Unprocessable
from farm.contract.blocks import Lease
from farm.contract.reports import ArmSample, EndReport, Reply, Report, RoundReport
from farm.fleet.models import Node
from farm.runs import services
from farm.runs.models import Attempt, Block, Event, Run
from farm.runs.models import Report as ReportRow
from farm.runs.states import BlockState
from tests.integration.runs.making import make_node, post
from tests.unit.rules.making import make_check, make_round, make_sample, make_trace

pytestmark = pytest.mark.django_db


def a_round(number: int, **changes: Any) -> RoundReport:
    return make_round(number, {0: make_sample(1.0).model_copy(update=changes), 1: 1.0, 2: 1.0})


def test_the_same_report_again_gets_the_same_answer_and_one_row(lease: Lease, node: Node) -> None:
    report = a_round(0)
    assert post(node, lease, report) == post(node, lease, report)
    assert ReportRow.objects.count() == 1
    assert Attempt.objects.get().timed_s == pytest.approx(0.012)


def test_another_report_for_the_same_place_is_refused(lease: Lease, node: Node) -> None:
    post(node, lease, make_check(0))
    with pytest.raises(Conflict, match="has sent another check report"):
        post(node, lease, make_check(0, first_ms=99.0))


def test_a_report_of_an_earlier_attempt_is_stale(lease: Lease, node: Node) -> None:
    block = Block.objects.select_related("run").get(pk=lease.order.block)
    block.queue(came_from=BlockState.LEASED)
    with pytest.raises(Conflict, match="is over"):
        post(node, lease, make_check(0))
    assert ReportRow.objects.count() == 0


def test_a_report_after_the_end_is_stale(lease: Lease, node: Node) -> None:
    post(node, lease, EndReport())
    with pytest.raises(Conflict, match="is over"):
        post(node, lease, make_check(0))


def test_a_report_with_a_forged_token_is_refused(lease: Lease, node: Node) -> None:
    forged = lease.model_copy(update={"token": "ofa_" + "f" * 64})
    with pytest.raises(NotAllowed):
        post(node, forged, make_check(0))


def test_a_report_of_another_node_is_refused(lease: Lease, team: Team) -> None:
    with pytest.raises(Conflict):
        post(make_node(team, name="liar"), lease, make_check(0))


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (make_check(3), "arm 3"),
        (make_trace(9, ()), "arm 9"),
        (make_trace(0, (), trace_round=65), "never asked for"),
        (make_round(0, {7: 1.0}), "arm 7"),
        (make_round(5, {0: 1.0}), "round 5 came when at most 0"),
        (RoundReport(round=0, samples=(ArmSample(arm=0, position=0), ArmSample(arm=0, position=1))), "an arm twice"),
        (a_round(0, p50_ms=2.0), "not between min and max"),
        (a_round(0, p50_ms=0.5, min_ms=0.5), "is not that of its raw timings"),
        (a_round(0, mean_ms=1.5, max_ms=2.0), "is not that of its raw timings"),
        (a_round(0, timings="u4:AAAA"), "cannot be unpacked"),
        (a_round(0, timings="u2:AAAA"), "unknown"),
        (a_round(0, timings="u4:" + "A" * 1000), "cannot be unpacked"),
        (a_round(0, n=1), "unpacks to"),
        (a_round(0, nodes_us=(5.0, 7.0)), "times of nodes, which were not asked for"),
    ],
)
def test_a_report_that_cannot_be_true_is_refused_in_words(lease: Lease, node: Node, report: Report, words: str) -> None:
    before = (ReportRow.objects.count(), Block.objects.get(pk=lease.order.block).rounds)
    with pytest.raises(Unprocessable, match=words):
        post(node, lease, report)
    assert (ReportRow.objects.count(), Block.objects.get(pk=lease.order.block).rounds) == before
    assert Event.objects.filter(kind="report_refused").count() == 1
    assert node.events.filter(kind="refused").count() == 1


def test_more_inference_than_the_wall_clock_has_seconds_is_refused(lease: Lease, node: Node) -> None:
    sample = make_sample(1000.0, n=600)
    with pytest.raises(Unprocessable, match=r"600\.0 s of inference were reported"):
        post(node, lease, make_round(0, {0: sample}))


def test_the_wall_clock_is_that_of_the_whole_attempt(lease: Lease, node: Node) -> None:
    Attempt.objects.update(timed_s=3600.0)
    with pytest.raises(Unprocessable, match="of inference were reported"):
        post(node, lease, a_round(0))


def test_timings_that_unpack_to_gigabytes_are_refused_without_unpacking_them(lease: Lease, node: Node) -> None:
    import base64
    import zlib

    bomb = "u4:" + base64.b64encode(zlib.compress(b"\x01" * 50_000_000, 9)).decode()
    with pytest.raises(Unprocessable, match="unpacks to"):
        post(node, lease, a_round(0, timings=bomb))


@pytest.mark.django_db(transaction=True)
def test_the_same_report_from_many_threads_at_once_is_one_row(lease: Lease, node: Node) -> None:
    gate, replies, refusals = threading.Barrier(6), list[Reply](), list[Refusal]()

    def send() -> None:
        try:
            gate.wait()
            replies.append(post(node, lease, a_round(0)))
        except Refusal as refusal:
            refusals.append(refusal)
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refusals == []
    assert replies == [Reply()] * 6
    assert ReportRow.objects.count() == 1


def test_an_arm_that_does_not_load_ends_at_once(lease: Lease, node: Node, run: Run) -> None:
    from tests.unit.rules.making import make_reason

    post(node, lease, make_check(1, reason=make_reason()))
    cell = run.cells.get(name="c2")
    assert (cell.status, cell.reason_code) == ("crashed", "crashed")
    assert run.cells.get(name="c1").status == ""


def test_a_block_is_not_touched_by_whoever_lost_it(lease: Lease, node: Node, owner: User, run: Run) -> None:
    services.cancel_run(run=run, by=owner)
    with pytest.raises(Conflict):
        post(node, lease, EndReport())
    assert Block.objects.get(pk=lease.order.block).state == BlockState.CANCELLED
