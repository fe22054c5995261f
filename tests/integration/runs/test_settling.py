"""A reported block is settled once, whoever asks how often; before that nobody can claim it or ask more of it."""

import threading

import pytest
from django.db import connection

from farm.accounts.models import User
from farm.base.refusals import Conflict, Invalid
from farm.contract.blocks import Lease
from farm.contract.reports import EndReport
from farm.fleet.models import Node, NullEstimate
from farm.registry.models import Version
from farm.runs import selectors, services
from farm.runs.models import Attempt, Block, CellDocument, Run
from farm.runs.selectors.runs import shown_states
from farm.runs.states import AttemptState, BlockState, RunOutcome, RunState
from tests.integration.runs.making import claim, first_block, make_run, measure, post, reports_of, say
from tests.unit.rules.making import make_operator, make_trace

pytestmark = pytest.mark.django_db
MANY = {"runtime": ["1.31.1"], "batch": list(range(1, 40))}


def reported(node: Node, run: Run) -> Block:
    """The first block of the run, with its node's last word and nothing settled."""
    lease = claim(node, first_block(run))
    for report in reports_of(lease, {arm.arm: 1.2 if arm.arm == 1 else 1.0 for arm in lease.order.arms}):
        post(node, lease, report)
    say(node, lease, EndReport(wall_s=1.0))
    return Block.objects.select_related("run", "node").get(pk=lease.order.block)


def put_back(block: Block) -> Block:
    """A settled block, reported again with all that was settled."""
    Block.objects.filter(pk=block.pk).update(state=BlockState.REPORTED)
    Attempt.objects.filter(block=block).update(state=AttemptState.REPORTED)
    Run.objects.filter(pk=block.run_id).update(state=RunState.RUNNING, outcome="", sentence="")
    return Block.objects.select_related("run", "node").get(pk=block.pk)


def settle(block: Block) -> bool:
    return services.settle(block_id=block.pk, attempt=block.attempt)


def settled_rows(block: Block) -> list[object]:
    """All that settling writes, without the rows' numbers."""
    block.refresh_from_db()
    documents = CellDocument.objects.filter(arm__block=block).order_by("arm__number")
    comparisons = block.comparisons.order_by("baseline__number", "candidate__number")
    return [
        (block.state, block.rounds, *block.attempts.values_list("state", flat=True)),
        *Run.objects.filter(pk=block.run_id).values_list("state", "outcome", "sentence"),
        *documents.values_list("arm__name", "body", "operators"),
        *comparisons.values_list("baseline__name", "candidate__name", "verdict", "body", "operators"),
        *block.arms.values_list("name", "status", "is_evaluated", "cell__status"),
        *NullEstimate.objects.filter(block=block.pk).values_list("arm", "twin", "estimate", "verdict"),
    ]


def test_the_last_report_is_answered_before_anything_is_settled(run: Run, node: Node) -> None:
    block = reported(node, run)
    attempt = block.attempts.get()
    run.refresh_from_db()
    assert (block.state, attempt.state, run.state) == (BlockState.REPORTED, AttemptState.REPORTED, RunState.RUNNING)
    assert not CellDocument.objects.exists()
    assert not block.comparisons.exists()
    assert not NullEstimate.objects.exists()
    assert set(block.arms.values_list("status", "cell__status")) == {("", "")}
    assert settle(block)
    block.refresh_from_db()
    assert (block.state, block.rounds, block.attempts.get().state) == (BlockState.DONE, 8, AttemptState.DONE)


def test_a_reported_block_takes_its_last_report_again_and_no_other_word(lease: Lease, node: Node) -> None:
    for report in reports_of(lease, {0: 1.0, 1: 1.2, 2: 1.0}):
        post(node, lease, report)
    end = EndReport(wall_s=1.0)
    assert say(node, lease, end) == say(node, lease, end)
    with pytest.raises(Conflict, match="is over"):
        say(node, lease, make_trace(0, [make_operator("a", 1.0)]))
    with pytest.raises(Conflict):
        services.heartbeat(node=node, block_id=lease.order.block, attempt=1, token=lease.token)
    assert Attempt.objects.get().reports.filter(kind="end").count() == 1


def test_settling_again_writes_the_same_rows_once(run: Run, node: Node) -> None:
    block = reported(node, run)
    assert settle(block)
    once = settled_rows(block)
    assert len(once) == 2 + 3 + 2 + 3 + 1
    assert not settle(block)
    assert settled_rows(block) == once
    assert settle(put_back(block))
    assert settled_rows(block) == once


@pytest.mark.django_db(transaction=True)
def test_two_processes_that_settle_at_once_settle_once(run: Run, node: Node) -> None:
    block = reported(node, run)
    ready, settled = threading.Barrier(2), []

    def process() -> None:
        ready.wait(20)
        settled.append(settle(block))
        connection.close()

    threads = [threading.Thread(target=process) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(settled) == [False, True]
    assert (CellDocument.objects.count(), block.comparisons.count()) == (3, 2)
    assert run.events.filter(kind="block_done").count() == 1


def test_a_message_of_an_earlier_attempt_settles_nothing(run: Run, node: Node) -> None:
    block = reported(node, run)
    assert not services.settle(block_id=block.pk, attempt=block.attempt - 1)
    assert not services.settle(block_id=block.pk + 1, attempt=block.attempt)
    assert Block.objects.get(pk=block.pk).state == BlockState.REPORTED


def test_a_reported_block_is_neither_claimed_nor_given_more_rounds_nor_asked(run: Run, node: Node, member: User):
    block = reported(node, run)
    with pytest.raises(Conflict, match="is reported"):
        services.claim_block(node=node, block_id=str(block.pk), attempt=block.attempt)
    for blocks in (None, [block.number]):
        with pytest.raises((Conflict, Invalid)):
            services.measure_more_rounds(run=run, by=member, rounds=8, blocks=blocks)
    with pytest.raises(Conflict, match="not measured yet"):
        services.ask_divergence(run=run, cell="c1", by=member)
    assert settle(block)
    assert services.measure_more_rounds(run=run, by=member, rounds=8, blocks=[block.number]) == [block]


def test_its_node_measures_the_next_block_meanwhile(run: Run, node: Node, version: Version, member: User) -> None:
    reported(node, run)
    claim(node, first_block(make_run(version, member)))
    assert sorted(Block.objects.values_list("state", flat=True)) == ["leased", "reported"]


def test_neither_sweep_nor_another_block_ends_a_run_before_its_last_block_is_settled(
    node: Node, version: Version, member: User
) -> None:
    run = make_run(version, member, matrix=MANY)
    first = reported(node, run)
    for block in run.blocks.exclude(pk=first.pk).order_by("number"):
        measure(node, block, [1.0] * block.arms.count())
    services.sweep()
    run.refresh_from_db()
    assert (run.state, shown_states([run])) == (RunState.RUNNING, {run.pk: "settling"})
    assert selectors.progress(run).blocks["reported"] == 1
    assert settle(first)
    run.refresh_from_db()
    assert (run.state, run.outcome) == (RunState.FINISHED, RunOutcome.COMPLETE)


def test_what_was_reported_when_a_run_is_cancelled_stays(node: Node, version: Version, member: User) -> None:
    run = make_run(version, member, matrix=MANY)
    block = reported(node, run)
    services.cancel_run(run=run, by=member)
    run.refresh_from_db()
    assert (run.state, set(run.blocks.values_list("state", flat=True))) == (RunState.RUNNING, {"reported", "cancelled"})
    assert settle(block)
    run.refresh_from_db()
    assert (run.state, run.outcome, run.sentence) == (RunState.FINISHED, RunOutcome.CANCELLED, "Cancelled by member.")
    assert {cell.status for cell in selectors.document(run).cells} == {"done", "cancelled"}


def test_a_run_with_nothing_left_to_stop_ends_as_it_was_measured(run: Run, node: Node, member: User) -> None:
    block = reported(node, run)
    services.cancel_run(run=run, by=member)
    assert Run.objects.get(pk=run.pk).state == RunState.RUNNING
    assert settle(block)
    assert Run.objects.get(pk=run.pk).outcome == RunOutcome.COMPLETE


def test_a_run_that_a_release_without_reported_blocks_took_for_over_ends_anew(run: Run, node: Node) -> None:
    block = reported(node, run)
    Run.objects.get(pk=run.pk).finish(RunOutcome.PARTIAL, "0 of 2 cells done, 2 open.")
    services.conclude_runs()
    assert settle(block)
    run.refresh_from_db()
    assert (run.state, run.outcome, run.is_concluded) == (RunState.FINISHED, RunOutcome.COMPLETE, False)


@pytest.mark.usefixtures("empty_broker")
def test_a_block_whose_message_was_lost_is_rung_again(run: Run, node: Node) -> None:
    block = reported(node, run)
    Block.objects.filter(pk=block.pk).update(rung_at=None)
    assert (services.send_due_hints(), services.send_due_hints()) == (1, 0)
    assert settle(block)
    Block.objects.filter(pk=block.pk).update(rung_at=None)
    assert services.send_due_hints() == 0
