"""A run that is cancelled keeps the rounds that were reported, and says everywhere after how many it was stopped."""

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.alerts.models import Watch
from farm.alerts.services.measurements import measure_to_last_look
from farm.base.refusals import Conflict
from farm.contract.reports import EndReport
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.presenting.spreadsheets import make_csv
from farm.runs import selectors, services
from farm.runs.models import Attempt, Block, Run
from farm.runs.selectors.forecasts import Forecast
from farm.runs.selectors.runs import shown_states
from farm.runs.states import AttemptState, RunOutcome, RunState
from tests.conftest import ApiOf
from tests.integration.runs.making import claim, first_block, make_node, make_run, measure, post, reports_of
from tests.unit.rules.making import make_check, make_reason

pytestmark = pytest.mark.django_db
ONE = {0: 1.0, 1: 1.0, 2: 1.0}
NO_DEFAULT = "Cancelled by member. 3 rounds were measured before."


def stopped(run: Run, node: Node, by: User, *, rounds: int) -> Block:
    """The run's first block, cancelled after so many rounds of its attempt, and settled."""
    block = first_block(run)
    lease = claim(node, block)
    for report in reports_of(lease, ONE, rounds=rounds, noise=0.05):
        post(node, lease, report)
    services.cancel_run(run=run, by=by)
    with pytest.raises(Conflict):
        services.heartbeat(node=node, block_id=lease.order.block, attempt=lease.order.attempt, token=lease.token)
    with pytest.raises(Conflict):
        post(node, lease, EndReport(wall_s=1.0))
    services.settle(block_id=block.pk, attempt=lease.order.attempt)
    run.refresh_from_db()
    return first_block(run)


def test_rounds_that_were_reported_stay_with_no_verdict_of_too_few(run: Run, node: Node, member: User) -> None:
    block = stopped(run, node, member, rounds=3)
    assert (block.rounds, run.outcome, run.sentence) == (3, RunOutcome.CANCELLED, "Cancelled by member.")
    document = selectors.document(run)
    assert {(cell.status.value, len(cell.samples_ms)) for cell in document.cells} == {("done", 3)}
    assert {cell.reason.text for cell in document.cells if cell.reason} == {NO_DEFAULT}
    assert {pair.verdict for pair in document.comparisons} == {"undecided"}
    assert set(run.cells.values_list("status", "reason_text")) == {("done", NO_DEFAULT)}
    assert make_csv(document).count(NO_DEFAULT) == 3


def test_enough_rounds_have_their_verdict_and_say_that_they_were_stopped(run: Run, node: Node, member: User) -> None:
    lease = claim(node, first_block(run))
    for report in reports_of(lease, {0: 1.0, 1: 1.4, 2: 1.0}, rounds=8):
        post(node, lease, report)
    services.cancel_run(run=run, by=member)
    services.settle(block_id=first_block(run).pk, attempt=1)
    run.refresh_from_db()
    document = selectors.document(run)
    assert "slower" in {pair.verdict for pair in document.comparisons}
    assert all(cell.reason is not None for cell in document.cells)
    assert run.outcome == RunOutcome.CANCELLED


def test_pages_and_the_api_say_one_word_while_it_is_settled_and_afterwards(
    run: Run, node: Node, member: User, api_of: ApiOf
) -> None:
    lease = claim(node, first_block(run))
    for report in reports_of(lease, ONE, rounds=3):
        post(node, lease, report)
    page = Client()
    page.force_login(member)
    words = []
    for act in (
        lambda: services.cancel_run(run=run, by=member),
        lambda: services.settle(block_id=first_block(run).pk, attempt=1),
    ):
        act()
        run.refresh_from_db()
        told = api_of(member).get(f"/api/v1/runs/{run.pk}").json()["status"]
        shown = page.get(f"/runs/{run.pk}/").content.decode()
        listed = page.get("/runs/").content.decode()
        assert {told} == set(shown_states([run]).values())
        assert all(f"{told}</span>" in text for text in (shown.partition("<h1")[0], listed))
        assert f"/runs/{run.pk}/cancel/" not in shown
        words.append(told)
    assert words == ["settling", "cancelled"]
    assert NO_DEFAULT in shown


def test_a_cancelled_run_measures_more_rounds_where_a_person_asks_for_them_alone(
    run: Run, node: Node, member: User
) -> None:
    stopped(run, node, member, rounds=3)
    # a search or watch does not take up again what a person has stopped
    assert measure_to_last_look(Watch(team=run.team, created_by=member), run) is False
    services.measure_more_rounds(run=run, by=member, rounds=5)
    measure(node, first_block(run), ONE, rounds=5, noise=0.05)
    run.refresh_from_db()
    document = selectors.document(run)
    assert {(cell.status.value, len(cell.samples_ms), cell.reason) for cell in document.cells} == {("done", 8, None)}
    assert run.outcome == RunOutcome.COMPLETE


def test_a_cancelled_run_that_goes_on_and_is_cancelled_again_is_cancelled(run: Run, node: Node, member: User) -> None:
    """It was "complete" above cells that said that they were cancelled."""
    stopped(run, node, member, rounds=3)
    services.measure_more_rounds(run=run, by=member, rounds=5, blocks=[1])
    services.cancel_run(run=run, by=member)
    run.refresh_from_db()
    assert run.outcome == RunOutcome.CANCELLED
    assert {cell.reason.text for cell in selectors.document(run).cells if cell.reason} == {NO_DEFAULT}
    services.measure_more_rounds(run=run, by=member, rounds=5, blocks=[1])
    block = stopped(run, node, member, rounds=2)
    said = {cell.reason.text for cell in selectors.document(run).cells if cell.reason}
    assert (block.rounds, run.outcome) == (5, RunOutcome.CANCELLED)
    assert said == {"Cancelled by member. 5 rounds were measured before."}


def test_before_its_first_round_nothing_is_kept(run: Run, node: Node, member: User) -> None:
    lease = claim(node, first_block(run))
    post(node, lease, make_check(0))
    services.cancel_run(run=run, by=member)
    run.refresh_from_db()
    assert (run.state, run.outcome) == (RunState.FINISHED, RunOutcome.CANCELLED)
    assert {(cell.status.value, cell.p50_ms) for cell in selectors.document(run).cells} == {("cancelled", None)}
    assert Attempt.objects.get().state == AttemptState.CANCELLED


def test_rounds_of_a_block_that_goes_on_stay_too_and_its_run_ends_as_before(run: Run, node: Node, member: User) -> None:
    measure(node, first_block(run), ONE, noise=0.05)
    services.measure_more_rounds(run=run, by=member, rounds=8, blocks=[1])
    block = stopped(run, node, member, rounds=3)
    assert (block.rounds, block.reason, run.outcome) == (11, None, RunOutcome.COMPLETE)
    document = selectors.document(run)
    assert {(len(cell.samples_ms), cell.reason) for cell in document.cells} == {(11, None)}


def test_fail_fast_keeps_the_rounds_of_the_blocks_that_it_stops(version: Version, node: Node, member: User) -> None:
    matrix = {"runtime": ["1.31.1"], "batch": list(range(1, 40))}
    run = make_run(version, member, matrix=matrix, **{"fail-fast": True})
    first, second = run.blocks.order_by("number")[:2]
    lease = claim(make_node(node.team, name="bench-2"), second)
    other = Node.objects.get(name="bench-2")
    for report in reports_of(lease, {arm: 1.0 for arm in range(second.arms.count())}, rounds=2):
        post(other, lease, report)
    post(node, claim(node, first), make_check(0, reason=make_reason()))
    services.settle(block_id=second.pk, attempt=1)
    kept = [cell for cell in selectors.document(run).cells if cell.block == f"b{second.number}"]
    assert {(cell.status.value, len(cell.samples_ms)) for cell in kept} == {("done", 2)}
    assert {cell.reason.code for cell in kept if cell.reason} == {"fail_fast"}


def test_a_block_that_was_stopped_tells_no_pace(run: Run, node: Node, member: User) -> None:
    stopped(run, node, member, rounds=3)
    Attempt.objects.update(state=AttemptState.DONE)
    assert Attempt.objects.exclude(reason_code="").count() == 1
    assert Forecast()._paces == {}
