"""Task accuracy from a node's reports to the document, the table and the pages."""

from typing import Any

import numpy as np
import pytest
from django.test import Client

from farm.accounts.models import User
from farm.base.refusals import Unprocessable
from farm.contract.blocks import Lease
from farm.contract.evaluation import AccuracyReport, CustomJudge, EvaluationRecipe
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import EndReport, RoundReport
from farm.fleet.models import Node
from farm.registry.models import EvaluationData, Version
from farm.registry.states import MakingState
from farm.rules.quality import evaluation
from farm.rules.quality.accuracy_metrics import METRICS
from farm.runs import selectors, services
from farm.runs.models import Arm, Run
from farm.runs.states import BlockState
from tests.integration.runs.making import claim, first_block, make_blob, make_run, post, reports_of

VARIANTS = {"runtime": ["1.31.1"], "batch": [1], "precision": ["fp32", "int8-dynamic"]}
RIGHT = np.array([True] * 95 + [False] * 5)
WORSE = np.array([True] * 70 + [False] * 30)


@pytest.fixture
def labelled(version: Version) -> EvaluationData:
    team = version.model.team
    return EvaluationData.objects.create(
        version=version, given=make_blob(team, "given"), data=make_blob(team, "accepted"), state=MakingState.READY,
        recipe_json=EvaluationRecipe().model_dump(mode="json"), samples=100, classes=10, output="y",
    )  # fmt: skip


def judged(arm: int, right: Any) -> AccuracyReport:
    return AccuracyReport(arm=arm, measured_arm=arm, n=100, output="y", samples=evaluation.pack_samples(right))


def measured(node: Node, run: Run, *accuracies: AccuracyReport) -> Lease:
    """A whole attempt whose accuracy reports come before its rounds."""
    lease = claim(node, first_block(run))
    arms = {arm.arm: 1.0 + arm.arm for arm in lease.order.arms}
    for report in reports_of(lease, arms):
        if isinstance(report, RoundReport) and report.round == 0:
            for one in accuracies:
                post(node, lease, one)
        post(node, lease, report)
    post(node, lease, EndReport(wall_s=1.0))
    return lease


def test_a_nodes_order_names_the_labelled_data_and_it_may_fetch_them(
    node: Node, version: Version, member: User, labelled: EvaluationData
) -> None:
    run = make_run(version, member, matrix=VARIANTS)
    lease = claim(node, first_block(run))
    orders = {arm.evaluation for arm in lease.order.arms}
    assert orders == {labelled.order}
    assert labelled.order is not None
    # the file is one of the block's; its bytes are not stored in this test
    from farm.runs.selectors.files import _filter_needed

    block = first_block(run)
    assert type(labelled.data).objects.filter(_filter_needed(block), pk=labelled.data.pk).exists()


def test_a_block_waits_until_the_labelled_data_were_looked_at(
    node: Node, version: Version, member: User, labelled: EvaluationData
) -> None:
    EvaluationData.objects.update(state=MakingState.MAKING)
    run = make_run(version, member, matrix=VARIANTS)
    assert first_block(run).state == BlockState.WAITING
    EvaluationData.objects.update(state=MakingState.FAILED, reason_code="not_supported", reason_text="They do not fit.")
    services.release_ready_blocks()
    assert first_block(run).state == BlockState.QUEUED
    assert {arm.evaluation for arm in claim(node, first_block(run)).order.arms} == {None}


def test_accuracy_reaches_the_document_the_table_and_the_database(
    node: Node, version: Version, member: User, labelled: EvaluationData, member_api: Client
) -> None:
    run = make_run(version, member, matrix=VARIANTS)
    measured(node, run, judged(0, RIGHT), judged(1, WORSE))
    document = selectors.document(Run.objects.get(pk=run.pk))
    by_precision = {cell.precision: cell for cell in document.cells if cell.twin_of is None}
    plain, quantised = by_precision["fp32"].accuracy, by_precision["int8-dynamic"].accuracy
    assert (plain.value, plain.n, plain.baseline, plain.samples) == (0.95, 100, None, "")
    assert (quantised.value, quantised.baseline) == (0.70, by_precision["fp32"].id)
    assert quantised.difference == pytest.approx(-0.25)
    assert quantised.p is not None
    assert quantised.p < 0.001
    assert all(cell.model_bytes for cell in document.cells)
    assert Arm.objects.filter(is_evaluated=True).count() == 2
    text = member_api.get(f"/api/v1/runs/{run.pk}/results.csv").content.decode().splitlines()
    head, lines = text[0].split(","), [line.split(",") for line in text[1:]]
    assert {line[head.index("accuracy")] for line in lines if line[head.index("accuracy")]} == {"0.95", "0.7"}


def test_a_cell_that_could_not_be_judged_is_measured_all_the_same(
    node: Node, version: Version, member: User, labelled: EvaluationData
) -> None:
    run = make_run(version, member, matrix=VARIANTS)
    crashed = Reason(code=ReasonCode.CRASHED, text="The runner crashed on the labelled data.")
    measured(node, run, judged(0, RIGHT), AccuracyReport(arm=1, reason=crashed))
    cells = {cell.precision: cell for cell in selectors.document(Run.objects.get(pk=run.pk)).cells}
    found = cells["int8-dynamic"]
    assert (found.status, found.reason) == ("done", None)
    assert (found.accuracy.value, found.accuracy.text) == (None, "The runner crashed on the labelled data.")


@pytest.mark.parametrize(
    "report",
    [
        judged(9, RIGHT),
        judged(0, RIGHT).model_copy(update={"n": 99}),
        judged(0, RIGHT).model_copy(update={"n": 400}),
        judged(0, RIGHT).model_copy(update={"samples": "b1:zzz"}),
        judged(0, RIGHT).model_copy(update={"measured_arm": 12}),
        judged(0, RIGHT).model_copy(update={"judge": CustomJudge(file="mine.py:score", sha256="ab" * 32)}),
        judged(0, RIGHT).model_copy(update={"recipe": EvaluationRecipe(metric="top5")}),
    ],
)
def test_an_accuracy_that_cannot_be_is_refused(
    node: Node, version: Version, member: User, labelled: EvaluationData, report: AccuracyReport
) -> None:
    lease = claim(node, first_block(make_run(version, member, matrix=VARIANTS)))
    with pytest.raises(Unprocessable, match="cannot be true"):
        post(node, lease, report)


def test_an_accuracy_without_labelled_data_is_refused(node: Node, version: Version, member: User) -> None:
    lease = claim(node, first_block(make_run(version, member, matrix=VARIANTS)))
    with pytest.raises(Unprocessable, match="no labelled data"):
        post(node, lease, judged(0, RIGHT))


def test_the_pages_show_accuracy_size_and_the_pareto_chart(
    node: Node, version: Version, member: User, labelled: EvaluationData, client: Client
) -> None:
    run = make_run(version, member, matrix=VARIANTS)
    measured(node, run, judged(0, RIGHT), judged(1, WORSE))
    client.force_login(member)
    page = client.get(f"/runs/{run.pk}/?chart=pareto").content.decode()
    assert 'id="chart-pareto"' in page
    assert "on the front" in page
    assert "95.0 %" in page
    assert "\N{MINUS SIGN}25.00 points" in page
    cells = {cell.precision: cell for cell in selectors.document(Run.objects.get(pk=run.pk)).cells}
    cell = client.get(f"/runs/{run.pk}/cells/{cells['int8-dynamic'].id}/").content.decode()
    assert "On labelled data" in cell
    assert "70.0 % of 100 samples are right" in cell
    assert "it is lower" in cell
    model = client.get(f"/models/{version.model_id}/").content.decode()
    assert 'id="chart-pareto"' in model
    assert "100 samples of 10 classes, judged by top1" in model


def test_each_page_of_a_cell_that_lost_accuracy_leads_with_its_wrong_outputs(
    node: Node, version: Version, member: User, labelled: EvaluationData, client: Client
) -> None:
    run = make_run(version, member, matrix=VARIANTS)
    measured(node, run, judged(0, RIGHT), judged(1, WORSE))
    client.force_login(member)
    own = [cell for cell in selectors.document(Run.objects.get(pk=run.pk)).cells if cell.twin_of is None]
    names = {cell.precision: cell.id for cell in own}
    plain, lost = (names[precision] for precision in ("fp32", "int8-dynamic"))
    both = "&".join(f"cells={run.pk}:{name}" for name in (plain, lost))
    for page in (f"/runs/{run.pk}/", f"/runs/{run.pk}/cells/{lost}/", f"/compare/?{both}"):
        head = client.get(page).content.decode().partition("<h1")[2].partition("</h1>")[0]
        assert "wrong outputs" in head.casefold(), page
    assert "Outputs,,wrong outputs," in client.get(f"/compare/?{both}&as=csv").content.decode()
    assert "Wrong outputs" not in client.get(f"/runs/{run.pk}/cells/{plain}/").content.decode()


def test_a_metric_that_is_no_share_reaches_the_document_and_the_pages(
    node: Node, version: Version, member: User, labelled: EvaluationData, client: Client
) -> None:
    recipe = EvaluationRecipe(metric="cosine")
    EvaluationData.objects.update(recipe_json=recipe.model_dump(mode="json"))
    near, far = (judged(arm, np.linspace(low, 1.0, 100)) for arm, low in enumerate((0.8, -0.5)))
    run = make_run(version, member, matrix=VARIANTS)
    measured(node, run, *(report.model_copy(update={"recipe": recipe}) for report in (near, far)))
    document = selectors.document(Run.objects.get(pk=run.pk))
    cells = {cell.precision: cell for cell in document.cells if cell.twin_of is None}
    found = cells["int8-dynamic"].accuracy
    assert found is not None
    assert (found.metric, found.higher_is_better, found.baseline) == ("cosine", True, cells["fp32"].id)
    assert (found.value, found.difference) == (pytest.approx(0.25), pytest.approx(-0.65))
    client.force_login(member)
    page = client.get(f"/runs/{run.pk}/?chart=pareto").content.decode()
    assert "cosine similarity" in page
    assert "\N{MINUS SIGN}0.650" in page
    assert "it is lower" in client.get(f"/runs/{run.pk}/cells/{cells['int8-dynamic'].id}/").content.decode()


def test_an_upload_form_offers_each_metric(version: Version, member: User, client: Client) -> None:
    client.force_login(member)
    page = client.get("/models/upload/").content.decode()
    assert [name for name in METRICS if f'<option value="{name}">' not in page] == []
