"""Cancelling, measuring on, fail-fast, max-parallel, and what may be asked for at all."""

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.base.refusals import Conflict, Invalid, NotAllowed, Refusal, Unprocessable
from farm.contract.reports import EndReport
from farm.fleet import services as fleet
from farm.fleet.models import Node
from farm.registry.models import Preparation, Variant, Version
from farm.registry.states import MakingState, VersionState
from farm.runs import selectors, services
from farm.runs.models import Attempt, Block, Run
from farm.runs.states import AttemptState, BlockState, RunOutcome, RunState
from tests.integration.runs.making import (
    claim,
    first_block,
    make_run,
    make_version,
    measure,
    post,
    prepare_all,
    reports_of,
)
from tests.unit.rules.making import make_check, make_reason

pytestmark = pytest.mark.django_db
MANY = {"runtime": ["1.31.1"], "batch": list(range(1, 40))}


def states(run: Run) -> list[str]:
    return list(run.blocks.order_by("number").values_list("state", flat=True))


def test_a_cancelled_run_stops_and_keeps_what_is_done(node: Node, version: Version, member: User) -> None:
    run = make_run(version, member, matrix=MANY)
    blocks = list(run.blocks.order_by("number"))
    arms = blocks[0].arms.count()
    measure(node, blocks[0], [1.0] * arms)
    lease = claim(node, blocks[1])
    services.cancel_run(run=run, by=member)
    run.refresh_from_db()
    assert (run.state, run.outcome, run.sentence) == (RunState.FINISHED, RunOutcome.CANCELLED, "Cancelled by member.")
    assert set(states(run)) == {"done", "cancelled"}
    assert Attempt.objects.filter(state=AttemptState.CANCELLED).count() == 1
    with pytest.raises(Conflict):
        services.heartbeat(node=node, block_id=lease.order.block, attempt=1, token=lease.token)
    statuses = [cell.status for cell in selectors.document(run).cells]
    assert statuses.count("done") == arms
    assert set(statuses) == {"done", "cancelled"}


def test_cancelling_again_changes_nothing(run: Run, node: Node, member: User) -> None:
    measure(node, first_block(run), [1.0, 1.0, 1.0])
    run.refresh_from_db()
    before = (run.sentence, run.finished_at, run.events.count())
    services.cancel_run(run=run, by=member)
    run.refresh_from_db()
    assert (run.sentence, run.finished_at, run.events.count()) == before
    assert run.outcome == RunOutcome.COMPLETE


def test_a_viewer_and_a_stranger_may_not_change_a_run(run: Run, viewer: User, stranger: User) -> None:
    for user in (viewer, stranger):
        with pytest.raises(NotAllowed):
            services.cancel_run(run=run, by=user)
        with pytest.raises(NotAllowed):
            services.measure_more_rounds(run=run, by=user, rounds=4)
    assert Run.objects.get(pk=run.pk).state == RunState.RUNNING


def test_a_done_block_goes_on_for_more_rounds_on_its_node(run: Run, node: Node, member: User, block: Block) -> None:
    measure(node, block, [1.0, 1.0, 1.0], noise=0.05)
    services.measure_more_rounds(run=run, by=member, rounds=8, blocks=[1])
    block.refresh_from_db()
    assert (block.state, block.attempt, block.first_round, block.max_rounds) == (BlockState.QUEUED, 2, 8, 16)
    assert block.only_node == node
    lease = claim(node, block)
    # 16 rounds, and as many more as may replace dropped pairs
    assert (lease.order.first_round, lease.order.max_rounds) == (8, 24)
    for report in reports_of(lease, {0: 1.0, 1: 1.0, 2: 1.0}, rounds=8, noise=0.05, seed=2):
        post(node, lease, report)
    post(node, lease, EndReport())
    run.refresh_from_db()
    assert (run.state, run.outcome) == (RunState.FINISHED, RunOutcome.COMPLETE)
    assert [len(cell.samples_ms) for cell in selectors.document(run).cells] == [16, 16, 16]
    assert node.null_estimates.get().rounds >= 8


def test_what_was_measured_stays_when_the_continuation_fails(run: Run, node: Node, member: User, block: Block) -> None:
    measure(node, block, [1.0, 1.0, 1.0], noise=0.05)
    services.measure_more_rounds(run=run, by=member, rounds=8, blocks=[1])
    for _ in range(3):
        post(node, claim(node, block), EndReport(reason=make_reason()))
    run.refresh_from_db()
    assert (states(run), run.outcome) == ([BlockState.DONE], RunOutcome.COMPLETE)
    assert [len(cell.samples_ms) for cell in selectors.document(run).cells] == [8, 8, 8]


def test_rounds_that_are_queued_already_are_not_advised(run: Run, node: Node, member: User) -> None:
    measure(node, first_block(run), {0: 1.0, 1: 1.02, 2: 1.0}, noise=0.05)
    advised = [pair for pair in selectors.document(run).comparisons if pair.rounds_needed and pair.axis == "runtime"]
    assert advised
    services.measure_more_rounds(run=run, by=member, rounds=8, blocks=[1])
    run.refresh_from_db()
    (pair,) = [pair for pair in selectors.document(run).comparisons if pair.axis == "runtime"]
    assert (pair.verdict, pair.rounds_needed) == ("undecided", None)
    assert (pair.reason or "").endswith("It is measured on, up to 16 rounds.")
    assert pair in selectors.comparisons_of(run, name="c2")
    page = Client()
    page.force_login(member)
    shown = page.get(f"/runs/{run.pk}/").content.decode()
    assert "would decide" not in shown
    services.cancel_run(run=run, by=member)
    run.refresh_from_db()
    assert [pair for pair in selectors.document(run).comparisons if pair.axis == "runtime"] == advised


def test_cancelling_a_continuation_keeps_what_was_measured(run: Run, node: Node, member: User) -> None:
    measure(node, first_block(run), [1.0, 1.0, 1.0], noise=0.05)
    services.measure_more_rounds(run=run, by=member, rounds=8, blocks=[1])
    services.cancel_run(run=run, by=member)
    run.refresh_from_db()
    assert [cell.status for cell in selectors.document(run).cells] == ["done", "done", "done"]
    assert {cell.status for cell in run.cells.all()} == {"done"}


@pytest.mark.parametrize(
    ("rounds", "blocks", "error"),
    [
        (0, None, Invalid),
        (97, None, Invalid),
        (8, [2], Invalid),
        (8, [-1], Invalid),
    ],
)
def test_more_rounds_that_make_no_sense_are_refused(
    run: Run, node: Node, member: User, rounds: int, blocks: list[int] | None, error: type[Refusal]
) -> None:
    measure(node, first_block(run), [1.0, 1.0, 1.0])
    with pytest.raises(error):
        services.measure_more_rounds(run=run, by=member, rounds=rounds, blocks=blocks)


def test_a_block_whose_node_is_gone_cannot_go_on(run: Run, node: Node, member: User, owner: User) -> None:
    measure(node, first_block(run), [1.0, 1.0, 1.0])
    fleet.revoke(node=node, by=owner)
    with pytest.raises(Conflict, match="No block of this run can continue"):
        services.measure_more_rounds(run=run, by=member, rounds=8, blocks=[1])


def test_fail_fast_ends_the_run_with_the_first_failure(node: Node, version: Version, member: User) -> None:
    run = make_run(version, member, matrix=MANY, **{"fail-fast": True})
    lease = claim(node, first_block(run))
    assert lease.order.fail_fast
    post(node, lease, make_check(0, reason=make_reason()))
    assert states(run) == ["leased", *["cancelled"] * (run.blocks.count() - 1)]
    post(node, lease, EndReport())
    run.refresh_from_db()
    assert run.outcome == RunOutcome.PARTIAL
    assert run.cells.filter(reason_code="fail_fast").exists()


def test_without_fail_fast_a_failure_harms_no_other(node: Node, version: Version, member: User) -> None:
    run = make_run(version, member, matrix=MANY)
    post(node, claim(node, first_block(run)), make_check(0, reason=make_reason()))
    assert "cancelled" not in states(run)


def test_max_parallel_queues_so_many_blocks_at_a_time(node: Node, version: Version, member: User) -> None:
    run = make_run(version, member, matrix=MANY, **{"max-parallel": 1})
    total = run.blocks.count()
    assert states(run).count("queued") == 1
    services.release_ready_blocks()
    assert states(run).count("queued") == 1
    block = run.blocks.get(state="queued")
    measure(node, block, [1.0] * block.arms.count())
    services.release_ready_blocks()
    assert (states(run).count("queued"), states(run).count("waiting")) == (1, total - 2)


def test_a_variant_that_cannot_be_made_refuses_its_cells_alone(node: Node, version: Version, member: User) -> None:
    matrix = {"runtime": ["1.31.1"], "precision": ["fp32", "int8-dynamic"]}
    run = make_run(version, member, matrix=matrix, is_prepared=False)
    prepare_all(version.model.team)
    Variant.objects.filter(recipe_json__precision="int8-dynamic").update(
        state=MakingState.FAILED, reason_code="variant_impossible", reason_text="Nothing in it can be quantised."
    )
    services.release_ready_blocks()
    refused = run.cells.get(precision="int8-dynamic")
    assert (refused.status, refused.reason_text) == ("refused", "Nothing in it can be quantised.")
    lease = claim(node, first_block(run))
    assert [arm.cell.recipe.precision for arm in lease.order.arms] == ["fp32", "fp32"]
    arms = {arm.arm: 1.0 for arm in lease.order.arms}
    for report in [*reports_of(lease, arms), EndReport()]:
        post(node, lease, report)
    run.refresh_from_db()
    assert (run.state, run.outcome) == (RunState.FINISHED, RunOutcome.COMPLETE)
    assert {cell.id: cell.status.value for cell in selectors.document(run).cells}[refused.name] == "refused"


def test_inputs_that_cannot_be_made_end_the_run_with_the_reason(node: Node, version: Version, member: User) -> None:
    run = make_run(version, member, is_prepared=False)
    prepare_all(version.model.team)
    Preparation.objects.update(state=MakingState.FAILED, reason_code="not_supported", reason_text="String inputs.")
    services.release_ready_blocks()
    run.refresh_from_db()
    assert (run.state, states(run)) == (RunState.FINISHED, ["failed"])
    assert {cell.reason_text for cell in run.cells.all()} == {"String inputs."}


def test_preparing_is_ordered_once_per_digest(node: Node, version: Version, member: User) -> None:
    for _ in range(2):
        make_run(version, member, matrix={"runtime": ["1.29.0", "1.31.1"], "batch": [1, 8]}, is_prepared=False)
    assert (Variant.objects.count(), Preparation.objects.count()) == (1, 2)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ({"runtme": ["1.31.1"]}, "runtime"),
        ({"runtime": ["1.31.1"], "provider": ["cudaa"]}, "cuda"),
        ({"batch": list(range(1, 900)), "threads": list(range(1, 100))}, "cells"),
        ("runtime: [", "line"),
        ("", "mapping"),
    ],
)
def test_a_matrix_that_cannot_be_read_is_refused_in_one_sentence(
    version: Version, node: Node, member: User, matrix: object, words: str
) -> None:
    with pytest.raises(Invalid, match=words):
        services.start_run(version=version, matrix=matrix, requested_by=member)
    assert Run.objects.count() == 0


def test_a_runtime_that_does_not_exist_is_refused_with_the_nearest(version: Version, node: Node, member: User) -> None:
    with pytest.raises(Unprocessable, match=r"1\.31"):
        make_run(version, member, matrix={"runtime": ["1.31.99"]})


def test_a_run_that_no_node_can_take_is_refused(version: Version, member: User) -> None:
    with pytest.raises(Unprocessable, match="No node"):
        make_run(version, member)


@pytest.mark.parametrize("state", [VersionState.PENDING, VersionState.INSPECTING, VersionState.REJECTED])
def test_a_version_that_is_not_ready_is_not_measured(node: Node, version: Version, member: User, state: str) -> None:
    Version.objects.filter(pk=version.pk).update(state=state)
    version.refresh_from_db()
    with pytest.raises(Conflict):
        make_run(version, member)


def test_a_viewer_and_a_stranger_may_not_start_runs(node: Node, version: Version, viewer: User, stranger: User) -> None:
    for user in (viewer, stranger):
        with pytest.raises(NotAllowed):
            make_run(version, user)


def test_every_eighth_block_carries_an_a_a_pair(node: Node, version: Version, member: User) -> None:
    run = make_run(version, member, matrix={"runtime": ["1.29.0", "1.31.1"], "batch": [1, 2, 3]})
    assert run.blocks.filter(arms__twin_of__isnull=False).distinct().count() == 1


def test_two_teams_do_not_share_what_is_prepared(node: Node, version: Version, member: User, stranger: User) -> None:
    from tests.integration.runs.making import make_node

    theirs = make_version(stranger.memberships.get().team)
    make_node(theirs.model.team, name="theirs")
    make_run(version, member)
    make_run(theirs, stranger)
    assert Preparation.objects.count() == 2
