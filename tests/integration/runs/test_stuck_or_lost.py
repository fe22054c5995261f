"""What used to wait for ever, or to take away what was measured before."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from farm.accounts.models import User
from farm.base.refusals import Conflict, Unprocessable
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import AccuracyReport, EndReport
from farm.contract.sustained import CurveReport
from farm.fleet import services as fleet
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs import clocks, selectors, services
from farm.runs.models import Attempt, Block, Divergence, Run
from farm.runs.services import recovery
from farm.runs.services.leases import max_lease_s
from farm.runs.states import AttemptState, BlockState, DivergenceState, RunOutcome, RunState
from tests.integration.runs.making import claim, first_block, make_node, make_run, measure, post
from tests.unit.rules.making import make_check, make_round

pytestmark = pytest.mark.django_db
ONE = {0: 1.0, 1: 1.0, 2: 1.0}
RUNTIME = {"runtime": ["1.31.1"]}


@pytest.fixture
def going_on(run: Run, node: Node, member: User) -> Block:
    """A block of eight rounds whose run was complete, queued for eight more."""
    block = first_block(run)
    measure(node, block, [1.0, 1.0, 1.0], noise=0.05)
    services.measure_more_rounds(run=run, by=member, rounds=8, blocks=[1])
    return first_block(run)


def is_as_before(run: Run) -> bool:
    """Whether the run is complete with its first eight rounds."""
    run.refresh_from_db()
    block = first_block(run)
    samples = [len(cell.samples_ms) for cell in selectors.document(run).cells]
    assert (block.state, block.rounds, block.reason) == (BlockState.DONE, 8, None)
    assert (run.state, run.outcome, samples) == (RunState.FINISHED, RunOutcome.COMPLETE, [8, 8, 8])
    return True


def test_more_rounds_on_a_node_that_is_retired_meanwhile_end_and_say_so(
    run: Run, node: Node, owner: User, going_on: Block
) -> None:
    fleet.revoke(node=node, by=owner)
    services.sweep()
    assert is_as_before(run)
    said = run.events.filter(block=going_on, text__contains="bench-1 was removed from the farm").get()
    assert "keeps its 8 rounds" in said.text


def test_more_rounds_that_a_node_measured_when_it_was_retired_end_too(
    run: Run, node: Node, owner: User, going_on: Block
) -> None:
    lease = claim(node, going_on)
    post(node, lease, make_round(8, ONE))
    fleet.revoke(node=node, by=owner)
    services.sweep()
    services.sweep()
    assert is_as_before(run)


def test_more_rounds_whose_node_was_deleted_are_not_measured_by_another(
    run: Run, node: Node, owner: User, going_on: Block
) -> None:
    other = make_node(node.team, owner=owner, name="bench-2")
    node.delete()
    with pytest.raises(Conflict, match="continues on the node that started it"):
        claim(other, going_on)
    services.sweep()
    assert is_as_before(run)


def test_a_block_for_a_named_node_that_is_retired_fails_with_the_way_out(
    version: Version, node: Node, member: User, owner: User
) -> None:
    run = make_run(version, member, matrix={"runtime": ["1.31.1"], "hardware": ["node:bench-1"]})
    fleet.revoke(node=node, by=owner)
    services.sweep()
    run.refresh_from_db()
    reason = first_block(run).reason
    assert (run.state, run.outcome) == (RunState.FINISHED, RunOutcome.PARTIAL)
    assert reason.code == ReasonCode.NODE_LOST
    assert "bench-1 was removed from the farm" in reason.text
    assert "start a new run" in reason.text


def test_blocks_that_wait_for_a_node_that_is_switched_off_hide_none_that_wait_in_vain(
    version: Version, node: Node, member: User, owner: User
) -> None:
    gone = make_node(node.team, owner=owner, name="bench-2")
    patient = [make_run(version, member, matrix={**RUNTIME, "hardware": ["node:bench-1"]}) for _ in range(3)]
    stranded = [make_run(version, member, matrix={**RUNTIME, "hardware": ["node:bench-2"]}) for _ in range(3)]
    fleet.revoke(node=gone, by=owner)
    assert [recovery.end_stranded_blocks(at_once=2) for _ in range(3)] == [2, 1, 0]
    assert {first_block(run).state for run in stranded} == {BlockState.FAILED}
    assert {first_block(run).state for run in patient} == {BlockState.QUEUED}


def test_a_long_queue_of_a_busy_node_costs_no_questions_a_block(
    version: Version, node: Node, member: User, django_assert_max_num_queries: Any
) -> None:
    for _ in range(5):
        make_run(version, member, matrix={**RUNTIME, "hardware": ["node:bench-1"]})
    with django_assert_max_num_queries(3):
        assert recovery.end_stranded_blocks() == 0


def test_a_block_for_any_cpu_waits_for_another_node(run: Run, node: Node, owner: User) -> None:
    fleet.revoke(node=node, by=owner)
    services.sweep()
    assert first_block(run).state == BlockState.QUEUED


def test_cancelling_more_rounds_leaves_a_complete_run_complete(run: Run, member: User, going_on: Block) -> None:
    services.cancel_run(run=run, by=member)
    assert is_as_before(run)
    assert run.events.filter(kind="run_cancelled", text="Cancelled by member.").exists()


def test_cancelling_more_rounds_that_are_measured_lets_the_node_go(run: Run, node: Node, member: User, going_on: Block):
    lease = claim(node, going_on)
    services.cancel_run(run=run, by=member)
    assert is_as_before(run)
    with pytest.raises(Conflict):
        services.heartbeat(node=node, block_id=lease.order.block, attempt=2, token=lease.token)
    assert Attempt.objects.get(number=2).state == AttemptState.CANCELLED


def test_fail_fast_ends_the_attempts_of_the_blocks_that_it_cancels(version: Version, node: Node, member: User) -> None:
    matrix = {"runtime": ["1.31.1"], "batch": list(range(1, 40))}
    run = make_run(version, member, matrix=matrix, **{"fail-fast": True})
    other = make_node(node.team, name="bench-2")
    first, second = run.blocks.order_by("number")[:2]
    claim(other, second)
    from tests.unit.rules.making import make_reason

    post(node, claim(node, first), make_check(0, reason=make_reason()))
    assert Attempt.objects.get(block=second).state == AttemptState.CANCELLED


def test_fail_fast_keeps_what_a_block_that_goes_on_had(version: Version, node: Node, member: User) -> None:
    from tests.unit.rules.making import make_reason

    matrix = {"runtime": ["1.31.1"], "batch": list(range(1, 40))}
    run = make_run(version, member, matrix=matrix, **{"fail-fast": True})
    first, second = run.blocks.order_by("number")[:2]
    measure(node, first, [1.0] * first.arms.count(), noise=0.05)
    services.measure_more_rounds(run=run, by=member, rounds=8, blocks=[1])
    post(node, claim(node, second), make_check(0, reason=make_reason()))
    first.refresh_from_db()
    assert (first.state, first.rounds) == (BlockState.DONE, 8)


def test_a_node_that_beats_for_ever_loses_its_block_at_the_block_s_limit(block: Block, node: Node) -> None:
    lease = claim(node, block)
    limit_s = max_lease_s(block)
    # patient with a slow machine, and not without end
    assert block.plan.block_timeout_s < limit_s < block.plan.block_timeout_s + 3600

    def beat_after(seconds: float) -> None:
        Attempt.objects.update(began_at_s=clocks.now().seconds - seconds)
        services.heartbeat(node=node, block_id=str(block.pk), attempt=1, token=lease.token)

    beat_after(limit_s - 5)
    with pytest.raises(Conflict, match="limit"):
        beat_after(limit_s + 5)
    block.refresh_from_db()
    attempt = Attempt.objects.get()
    assert (block.state, block.attempt, block.failures) == (BlockState.QUEUED, 2, 1)
    assert (attempt.state, attempt.reason_code) == (AttemptState.LOST, ReasonCode.TIMEOUT)


def test_a_node_that_beats_for_ever_loses_its_block_also_after_the_farm_was_restarted(block: Block, node: Node) -> None:
    """The monotonic clock began anew: the wall clock has to do."""
    lease = claim(node, block)
    Attempt.objects.update(began_boot="another", claimed_at=timezone.now() - timedelta(days=1))
    with pytest.raises(Conflict, match="limit"):
        services.heartbeat(node=node, block_id=str(block.pk), attempt=1, token=lease.token)


def test_a_round_below_the_first_one_asked_for_cannot_replace_what_was_measured(run: Run, node: Node, going_on: Block):
    lease = claim(node, going_on)
    with pytest.raises(Unprocessable, match="round 3 came and the order begins with round 8"):
        post(node, lease, make_round(3, {0: 99.0, 1: 1.0, 2: 1.0}))
    post(node, lease, EndReport())
    assert max(max(cell.samples_ms) for cell in selectors.document(run).cells) < 50.0


@pytest.mark.parametrize("kind", [AccuracyReport, CurveReport])
def test_what_more_rounds_did_not_ask_for_cannot_replace_what_was_measured(
    run: Run, node: Node, going_on: Block, kind: type[AccuracyReport | CurveReport]
) -> None:
    lease = claim(node, going_on)
    with pytest.raises(Unprocessable, match="was not asked for"):
        post(node, lease, kind.model_construct(kind=kind.model_fields["kind"].default, arm=0))


def test_a_question_takes_no_rounds_for_an_answer(run: Run, node: Node, member: User) -> None:
    measure(node, first_block(run), [1.0, 1.0, 1.0], noise=0.05)
    services.ask_divergence(run=run, cell="c1", by=member)
    lease = claim(node, first_block(run))
    for report in (make_round(8, ONE), make_check(0)):
        with pytest.raises(Unprocessable):
            post(node, lease, report)
    post(node, lease, EndReport())
    assert is_as_before(run)


def test_a_question_that_was_cancelled_is_not_asked_instead_of_more_rounds(run: Run, node: Node, member: User) -> None:
    measure(node, first_block(run), [1.0, 1.0, 1.0], noise=0.05)
    services.ask_divergence(run=run, cell="c1", by=member)
    services.cancel_run(run=run, by=member)
    assert is_as_before(run)
    asked = Divergence.objects.get()
    assert (asked.state, asked.problem) == (DivergenceState.FAILED, "Cancelled by member.")
    services.measure_more_rounds(run=run, by=member, rounds=8, blocks=[1])
    assert claim(node, first_block(run)).order.divergences == ()


def test_a_question_that_ends_without_an_answer_is_closed(run: Run, node: Node, member: User) -> None:
    measure(node, first_block(run), [1.0, 1.0, 1.0], noise=0.05)
    services.ask_divergence(run=run, cell="c1", by=member)
    post(node, claim(node, first_block(run)), EndReport())
    assert Divergence.objects.get().state == DivergenceState.FAILED


def test_a_block_that_took_too_long_is_not_queued_again_unchanged(run: Run, node: Node, block: Block) -> None:
    lease = claim(node, block)
    why = Reason(code=ReasonCode.TIMEOUT, text="The block took longer than its limit of 900 s; give it fewer cells.")
    post(node, lease, EndReport(reason=why))
    block.refresh_from_db()
    run.refresh_from_db()
    assert (block.state, block.reason) == (BlockState.FAILED, why)
    assert run.state == RunState.FINISHED
