"""The main road: a matrix becomes blocks, a node measures them, cells and comparisons come out."""

import json
import re

import pytest
from django.core.cache import caches
from django.test import Client

from farm.accounts.models import User
from farm.contract.blocks import Lease
from farm.contract.reports import EndReport
from farm.fleet.models import Node, NullEstimate
from farm.registry.models import Version
from farm.runs import selectors, services
from farm.runs.models import Arm, Attempt, Block, CellDocument, Comparison, FinishedDocument, Run
from farm.runs.states import AttemptState, BlockState, RunOutcome, RunState
from tests.conftest import ApiOf
from tests.integration.runs.making import claim, first_block, make_run, measure, post, reports_of

pytestmark = pytest.mark.django_db


def test_a_started_run_has_its_cells_blocks_and_arms(node: Node, version: Version, member: User) -> None:
    run = make_run(version, member, is_prepared=False)
    assert run.state == RunState.RUNNING
    assert [cell.runtime for cell in run.cells.all()] == ["onnxruntime==1.29.0", "onnxruntime==1.31.1"]
    block = first_block(run)
    assert block.state == BlockState.WAITING
    # the two cells and an A/A twin of the baseline
    assert [(arm.number, arm.cell.name, arm.twin_of) for arm in block.arms.all()] == [
        (0, "c1", None),
        (1, "c2", None),
        (2, "c1", 0),
    ]


def test_a_block_is_queued_once_its_inputs_are_ready(block: Block) -> None:
    assert (block.state, block.attempt) == (BlockState.QUEUED, 1)


def test_a_lease_carries_everything_the_node_needs(lease: Lease) -> None:
    assert [str(arm.cell.runtime) for arm in lease.order.arms] == [
        "onnxruntime==1.29.0",
        "onnxruntime==1.31.1",
        "onnxruntime==1.29.0",
    ]
    assert all(arm.inputs.name == "inputs.npz" for arm in lease.order.arms)
    # 8 rounds of the quick budget, and as many more as may replace dropped pairs
    assert lease.order.max_rounds == 12
    assert lease.token.startswith("ofa_")


def test_a_measured_run_is_complete_and_names_the_slower_runtime(run: Run, node: Node) -> None:
    replies = measure(node, first_block(run), [1.0, 1.2, 1.0])
    assert replies[-2].go_on is False
    assert set(replies[-2].trace_arms) >= {0, 1}
    run.refresh_from_db()
    assert (run.state, run.outcome) == (RunState.FINISHED, RunOutcome.COMPLETE)
    # of verdicts the headline alone speaks: by batch, what takes longer has more items per second
    assert run.sentence == "2 of 2 cells done."
    verdicts = {(c.baseline.name, c.candidate.name): c.verdict for c in Comparison.objects.all()}
    assert verdicts["c1", "c2"] == "slower"


def test_a_run_whose_points_were_all_refused_is_refused_at_once_and_everywhere(
    version: Version, member: User, node: Node, api_of: ApiOf
) -> None:
    """It was *running* until a tick looked; then *partial* in one place and *refused* beside it."""
    run = services.start_run(
        version=version, matrix={"runtime": ["1.31.1"], "shapes": [{"none": 8}]}, requested_by=member
    )
    assert [cell.status for cell in run.cells.all()] == ["refused"]
    assert (run.state, run.outcome) == (RunState.FINISHED, RunOutcome.REFUSED)
    assert "0 of 1 cell done, 1 refused" in run.sentence
    assert run.events.filter(kind="run_started").get().text == "Nothing to measure, 1 point refused."
    told = api_of(member).get(f"/api/v1/runs/{run.pk}").json()
    assert told["status"] == "refused"
    # "0/0 cells" stood beside "None of 2 cells was measured"
    assert (told["progress"]["cells_done"], told["progress"]["cells_planned"]) == (0, 1)
    page = Client()
    page.force_login(member)
    shown = [page.get(address).content.decode() for address in (f"/runs/{run.pk}/", "/runs/", "/models/")]
    for text in shown:
        assert "refused</span>" in text
        assert not re.search(r"(partial|queued|running|finished|measuring)</span>", text)
    assert f"run {run.pk}" in page.get("/runs/?state=refused").content.decode()


def test_every_finding_is_written_down(run: Run, node: Node) -> None:
    measure(node, first_block(run), [1.0, 1.2, 1.0])
    assert [arm.status for arm in Arm.objects.all()] == ["done", "done", "done"]
    found = {row.arm.name: selectors.parse_cell(row) for row in CellDocument.objects.select_related("arm")}
    assert found["c1"].p50_ms == pytest.approx(1.0, rel=0.02)
    assert (len(found["c2"].samples_ms), found["c1"].parity.verdict) == (8, "pass")
    null = NullEstimate.objects.get()
    assert (null.node, null.rounds, len(null.log_ratios)) == (node, 8, 8)
    assert Attempt.objects.get().state == AttemptState.DONE


def test_the_document_is_that_of_the_rules(run: Run, node: Node) -> None:
    measure(node, first_block(run), [1.0, 1.2, 1.0])
    document = selectors.document(Run.objects.get(pk=run.pk))
    assert [cell.status for cell in document.cells] == ["done"] * 3
    assert document.cells[2].twin_of == "c1"
    assert document.run == str(run.pk)
    assert document.machine["cpu_model"] == "Example CPU"
    assert document.sentence
    assert {c.verdict for c in document.comparisons} >= {"slower"}
    assert selectors.cell_document(run, "c2").p50_ms == document.cells[1].p50_ms


def test_a_run_is_concluded_after_its_end(run: Run, node: Node) -> None:
    measure(node, first_block(run), [1.0, 1.2, 1.0])
    assert (services.conclude_runs(), services.conclude_runs()) == (1, 0)
    run.refresh_from_db()
    assert run.headline == selectors.document(run).sentence
    assert "slower" in run.headline
    assert selectors.progress(run).headline == run.headline


def test_a_run_that_cannot_be_concluded_keeps_no_other_from_it(run: Run, node: Node, version: Version, member: User):
    measure(node, first_block(run), [1.0, 1.2, 1.0])
    CellDocument.objects.filter(arm__block__run=run).update(body="{")
    whole = make_run(version, member)
    measure(node, first_block(whole), [1.0, 1.2, 1.0])
    assert [services.conclude_runs(at_once=1) for _ in range(3)] == [0, 1, 0]
    whole.refresh_from_db()
    assert whole.is_concluded
    # the same of what an older release concluded: the newest comes first there
    Run.objects.update(is_concluded=True, lead=None)
    FinishedDocument.objects.all().delete()
    CellDocument.objects.filter(arm__block__run=whole).update(body="{")
    caches["default"].clear()
    CellDocument.objects.filter(arm__block__run=run).delete()
    assert [services.backfill_leads(at_once=1) for _ in range(3)] == [0, 1, 0]
    run.refresh_from_db()
    assert run.lead is not None


def test_a_run_that_could_not_be_concluded_is_tried_again(run: Run, node: Node) -> None:
    measure(node, first_block(run), [1.0, 1.2, 1.0])
    whole = list(CellDocument.objects.filter(arm__block__run=run))
    CellDocument.objects.update(body="{")
    assert services.conclude_runs() == 0
    CellDocument.objects.bulk_update(whole, ["body"])
    # it is left alone for a while
    assert services.conclude_runs() == 0
    caches["default"].clear()
    assert services.conclude_runs() == 1


def test_verdicts_that_do_not_hold_across_the_run_are_taken_back(run: Run, node: Node) -> None:
    measure(node, first_block(run), [1.0, 1.2, 1.0])
    slower = Comparison.objects.get(verdict="slower")
    body = json.loads(slower.body)
    Comparison.objects.filter(pk=slower.pk).update(body=json.dumps({**body, "p": 0.9}))
    services.conclude_runs()
    slower.refresh_from_db()
    assert slower.verdict == "undecided"


def test_a_concluded_document_is_read_from_one_row(run: Run, node: Node, django_assert_max_num_queries: object) -> None:
    measure(node, first_block(run), [1.0, 1.2, 1.0])
    services.conclude_runs()
    first = selectors.document_json(run)
    with django_assert_max_num_queries(2):
        assert selectors.document_json(run) == first


def test_a_run_that_goes_on_says_so_before_anything_is_measured_and_after(
    node: Node, version: Version, member: User
) -> None:
    run = make_run(version, member, matrix={"runtime": ["1.31.1"], "batch": list(range(1, 40))})
    assert run.blocks.count() > 1
    assert selectors.document(run).sentence.startswith("This run is not over, and no cell")
    measure(node, first_block(run), [1.0] * 16)
    assert re.match("This run is not over: [0-9]+ cells measured so far. ", selectors.document(run).sentence)


def test_a_live_run_shows_what_it_has_so_far(run: Run, node: Node, lease: Lease) -> None:
    for report in reports_of(lease, {0: 1.0, 1: 1.0, 2: 1.0}, rounds=3):
        post(node, lease, report)
    progress = selectors.progress(run)
    assert (progress.rounds, progress.rounds_most, progress.blocks) == (3, 8, {"leased": 1})
    assert progress.share == pytest.approx(3 / 8)
    # rounds that replace dropped pairs come on top of those of the budget, here and beside the block
    run.blocks.update(rounds=9)
    later, (block,) = selectors.progress(run), selectors.runs.busy_blocks(run)
    assert (later.rounds, later.rounds_most) == (block.rounds, block.rounds_most) == (9, 9)
    run.blocks.update(rounds=3)
    assert selectors.document(run).cells == []
    assert selectors.make_etag(run) != selectors.make_etag(
        Run.objects.create(team=run.team, version=run.version, matrix={})
    )


def test_a_cell_that_the_plan_refused_has_its_reason(node: Node, version: Version, member: User) -> None:
    matrix = {"runtime": ["1.31.1"], "batch": [1], "provider": ["cpu", "openvino"]}
    run = make_run(version, member, matrix=matrix)
    assert run.cells.get(status="refused").reason.code == "provider_not_in_build"
    measure(node, first_block(run), [1.0, 1.0])
    run.refresh_from_db()
    assert run.outcome == RunOutcome.COMPLETE
    document = selectors.document(run)
    assert [cell.status for cell in document.cells].count("refused") == 1


def test_the_end_may_be_sent_again(block: Block, node: Node) -> None:
    lease = claim(node, block)
    for report in reports_of(lease, {0: 1.0, 1: 1.0, 2: 1.0}):
        post(node, lease, report)
    end = EndReport(wall_s=3.0)
    assert post(node, lease, end) == post(node, lease, end)
    assert Block.objects.get(pk=block.pk).state == BlockState.DONE
