"""Lost nodes, poison cells and clocks that jump."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.contract.blocks import Lease
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import EndReport
from farm.fleet import services as fleet
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth
from farm.runs import clocks, selectors, services
from farm.runs.models import Attempt, Block, Run
from farm.runs.states import AttemptState, BlockState, RunOutcome, RunState
from tests.integration.runs.making import claim, first_block, make_node, measure, post, reports_of
from tests.unit.rules.making import make_check

pytestmark = pytest.mark.django_db
LEASE_S = 30.0
START = clocks.MonotonicTime(1000.0, "boot")


def later(seconds: float) -> clocks.MonotonicTime:
    return clocks.MonotonicTime(START.seconds + seconds, START.boot)


def expire(block: Block, *, by: timedelta = timedelta(seconds=1)) -> None:
    Block.objects.filter(pk=block.pk).update(lease_expires_at=timezone.now() - by)


def lose(node: Node, block: Block) -> None:
    """The node claims and is never heard of again; two sweeps see it."""
    claim(node, block)
    expire(block)
    services.sweep(moment=START)
    assert services.sweep(moment=later(LEASE_S)) == 1


def test_the_lease_is_as_long_as_these_tests_think() -> None:
    assert settings.LEASE_S == LEASE_S


def test_a_lease_that_lasts_is_left_alone(block: Block, node: Node) -> None:
    claim(node, block)
    assert services.sweep(moment=START) == services.sweep(moment=later(1000)) == 0
    assert Block.objects.get(pk=block.pk).state == BlockState.LEASED


def test_a_lost_node_s_block_is_queued_under_the_next_attempt(run: Run, node: Node, block: Block) -> None:
    lose(node, block)
    block.refresh_from_db()
    assert (block.state, block.attempt, block.failures) == (BlockState.QUEUED, 2, 1)
    lost = Attempt.objects.get()
    assert (lost.state, lost.reason_code) == (AttemptState.LOST, ReasonCode.NODE_LOST)
    assert run.events.filter(kind="block_requeued").exists()


def test_one_sweep_alone_takes_nothing(block: Block, node: Node) -> None:
    claim(node, block)
    expire(block)
    assert services.sweep(moment=START) == 0
    # soon after by the monotonic clock, however the other clock was moved
    assert services.sweep(moment=later(1)) == 0
    assert Block.objects.get(pk=block.pk).state == BlockState.LEASED


def test_a_clock_that_jumps_ahead_takes_nothing_from_a_living_node(block: Block, node: Node) -> None:
    lease = claim(node, block)
    expire(block, by=timedelta(hours=1))
    assert services.sweep(moment=START) == 0
    services.heartbeat(node=node, block_id=str(block.pk), attempt=1, token=lease.token)
    assert services.sweep(moment=later(LEASE_S)) == 0
    assert Block.objects.get(pk=block.pk).state == BlockState.LEASED


def test_a_clock_that_went_back_does_not_keep_a_dead_node_s_block(block: Block, node: Node) -> None:
    claim(node, block)
    expire(block, by=-timedelta(hours=1))
    assert services.sweep(moment=START) == 0
    assert services.sweep(moment=later(LEASE_S)) == 1


def test_a_reboot_between_two_sweeps_starts_the_suspicion_anew(block: Block, node: Node) -> None:
    claim(node, block)
    expire(block)
    services.sweep(moment=START)
    assert services.sweep(moment=clocks.MonotonicTime(5.0, "next boot")) == 0
    assert services.sweep(moment=clocks.MonotonicTime(5.0 + LEASE_S, "next boot")) == 1


def test_the_third_failure_ends_a_poison_block_with_its_reason(run: Run, node: Node, team: Team, block: Block) -> None:
    for number in range(3):
        lose(make_node(team, name=f"victim-{number}"), block)
    block.refresh_from_db()
    assert (block.state, block.attempt) == (BlockState.FAILED, 3)
    assert "Tried 3 times" in block.reason.text
    run.refresh_from_db()
    assert (run.state, run.outcome) == (RunState.FINISHED, RunOutcome.PARTIAL)
    assert {cell.status for cell in run.cells.all()} == {"failed"}


def test_a_block_that_was_lost_runs_elsewhere_and_ends_once(run: Run, node: Node, team: Team, block: Block) -> None:
    lease = claim(node, block)
    for report in reports_of(lease, {0: 1.0, 1: 1.0, 2: 1.0}, rounds=5):
        post(node, lease, report)
    expire(block)
    services.sweep(moment=START)
    services.sweep(moment=later(LEASE_S))
    other = make_node(team, name="bench-2")
    measure(other, block, [2.0, 2.0, 2.0])
    run.refresh_from_db()
    assert run.outcome == RunOutcome.COMPLETE
    # what the lost attempt had measured does not count
    assert selectors.cell_document(run, "c1").p50_ms == pytest.approx(2.0, rel=0.05)


def test_a_node_s_own_failure_puts_the_block_back(block: Block, node: Node) -> None:
    lease = claim(node, block)
    reason = Reason(code=ReasonCode.INTERNAL, text="The disk is full.")
    assert post(node, lease, EndReport(reason=reason)).go_on is False
    block.refresh_from_db()
    assert (block.state, block.attempt, block.failures) == (BlockState.QUEUED, 2, 1)


def test_a_node_that_leaves_on_purpose_costs_no_failure(block: Block, node: Node) -> None:
    lease = claim(node, block)
    reason = Reason(code=ReasonCode.CANCELLED, text="The agent was stopped.")
    post(node, lease, EndReport(reason=reason))
    block.refresh_from_db()
    assert (block.state, block.failures) == (BlockState.QUEUED, 0)


def test_a_block_that_is_always_given_back_fails_in_the_end(block: Block, node: Node) -> None:
    reason = Reason(code=ReasonCode.CANCELLED, text="The agent was stopped.")
    for _ in range(12):
        post(node, claim(node, block), EndReport(reason=reason))
    block.refresh_from_db()
    assert block.state == BlockState.FAILED


def test_a_node_that_fails_three_blocks_in_a_row_is_put_aside(block: Block, node: Node) -> None:
    for _ in range(3):
        post(node, claim(node, block), EndReport(reason=Reason(code=ReasonCode.INTERNAL, text="No.")))
    node.refresh_from_db()
    assert node.health == NodeHealth.QUARANTINED
    assert "3 blocks in a row" in node.health_reason


def test_a_crash_of_the_model_is_not_the_node_s_fault(run: Run, node: Node, lease: Lease) -> None:
    crashed = Reason(code=ReasonCode.CRASHED, text="SIGSEGV.")
    for arm in range(3):
        post(node, lease, make_check(arm, reason=crashed))
    post(node, lease, EndReport())
    node.refresh_from_db()
    run.refresh_from_db()
    assert (node.failures, run.outcome) == (0, RunOutcome.PARTIAL)
    assert {cell.status for cell in run.cells.all()} == {"crashed"}


def test_a_revoked_node_s_block_goes_elsewhere_at_once(block: Block, node: Node, owner: User) -> None:
    claim(node, block)
    fleet.revoke(node=node, by=owner)
    assert services.sweep() == 1
    assert Block.objects.get(pk=block.pk).state == BlockState.QUEUED


def test_a_run_whose_end_was_forgotten_is_finished_by_the_sweep(run: Run, node: Node) -> None:
    measure(node, first_block(run), [1.0, 1.0, 1.0])
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING, outcome="")
    services.sweep()
    run.refresh_from_db()
    assert run.state == RunState.FINISHED


def test_a_sweep_with_nothing_to_do_writes_nothing(run: Run, django_assert_num_queries: object) -> None:
    with django_assert_num_queries(4):
        services.sweep()


@pytest.mark.usefixtures("empty_broker")
def test_a_block_rung_in_the_future_is_rung_again_because_the_clock_went_back(block: Block, node: Node) -> None:
    Block.objects.filter(pk=block.pk).update(rung_at=timezone.now() + timedelta(hours=1))
    assert services.send_due_hints() == 1
    Block.objects.filter(pk=block.pk).update(rung_at=timezone.now())
    assert services.send_due_hints() == 0
