"""Settles reported blocks: writes the documents of their arms, their comparisons and the node's A/A history.

A tick then concludes finished runs: it writes their headline, and which verdicts hold among all their comparisons.
Settling does not do this, since it takes reading every cell of the run.
"""

import gzip
import logging
from collections.abc import Callable
from itertools import islice
from math import log
from typing import NamedTuple

from django.core.cache import cache
from django.db import transaction
from django.db.models import F, QuerySet

from farm.contract import document as doc
from farm.contract import document_cells as doc_cells
from farm.contract import document_comparisons as doc_comparisons
from farm.fleet.models import NullEstimate
from farm.fleet.services import store_null_estimates
from farm.rules.judging import metric_verdicts
from farm.rules.judging.block_verdicts import BlockJudge, Judged
from farm.rules.presenting.key_results import find_key_result
from farm.rules.reporting.multiple_tests import is_tested
from farm.runs.models import Arm, Block, Cell, CellDocument, Comparison, FinishedDocument, Run
from farm.runs.selectors.documents import block_document, load_arms, make_document
from farm.runs.selectors.evidence import reports_to_judge
from farm.runs.services.endings import fail_open_questions, finish_run_if_over
from farm.runs.services.locks import lock_run
from farm.runs.states import AttemptState, BlockState, RunState

logger = logging.getLogger(__name__)
# how many runs are concluded in a tick, and how many due runs are examined to choose them
MAX_AT_ONCE = 4
MAX_CANDIDATES = 1000
# a run whose conclusion failed is tried again after this time
RETRY_AFTER_S = 60.0


def settle(*, block_id: int, attempt: int) -> bool:
    """Settle a reported block: judge its reports, replace its documents and comparisons, and mark it done.

    The run is finished if this was its last open block. Several processes may try at once; one of them succeeds. Open
    questions of a continued block are failed, and a run that was finished too early is reopened first. Return False if
    the block is not reported under this attempt.
    """
    reported = Block.objects.filter(pk=block_id, attempt=attempt, state=BlockState.REPORTED)
    block = reported.select_related("node", "run__version__model", "run__version__artifact__inputs").first()
    if block is None:
        return False

    # judge before anything is locked, since the reports of a reported block do not change
    reports = reports_to_judge(block)
    judge = BlockJudge(block.plan, max_rounds=block.max_rounds, reports=reports)
    arms = load_arms(block)
    document = block_document(block, reports=reports, arms=arms)
    twins = judge.judge(judge.twins)
    nulls = [null for judged in twins if (null := _make_null_estimate(block, judge, judged)) is not None]

    with transaction.atomic():
        run = lock_run(block.run_id)
        if not block.finish(attempt=attempt, rounds=judge.round_count):
            return False
        block.attempts.filter(number=attempt, state=AttemptState.REPORTED).update(state=AttemptState.DONE)
        _replace_documents(block, document, {arm.name: arm for arm in arms})
        if block.node is not None:
            store_null_estimates(node=block.node, estimates=nulls)
        if block.first_round:
            fail_open_questions(block, "The node ended the block without an answer.")
        # a process of an older release does not know reported blocks, and may have finished the run already
        if run.state == RunState.FINISHED:
            run.resume()
        finish_run_if_over(run)
    return True


def _replace_documents(block: Block, document: doc.Document, arms: dict[str, Arm]) -> None:
    CellDocument.objects.filter(arm__block=block).delete()
    block.comparisons.all().delete()
    CellDocument.objects.bulk_create(
        CellDocument(
            arm=arms[cell.id], body=cell.model_dump_json(exclude={"operators"}), operators=_dump_operators(cell)
        )
        for cell in document.cells
    )
    _end_arms(document, arms)
    _write_comparisons(block, document, arms)


def _dump_operators(part: doc_cells.Cell | doc_comparisons.Comparison) -> str:
    return f"[{','.join(operator.model_dump_json() for operator in part.operators)}]"


class _Ending(NamedTuple):
    """The status and reason with which an arm ended, and whether it was judged on labelled data."""

    status: str
    code: str
    text: str
    is_evaluated: bool

    @classmethod
    def of(cls, cell: doc_cells.Cell) -> "_Ending":
        code, text = (cell.reason.code, cell.reason.text) if cell.reason else ("", "")
        return cls(cell.status, code, text, cell.accuracy is not None and cell.accuracy.value is not None)


def _end_arms(document: doc.Document, arms: dict[str, Arm]) -> None:
    """Write how arms and their cells ended, with one statement for all arms that ended in the same way."""
    arms_by_ending: dict[_Ending, list[Arm]] = {}
    for cell in document.cells:
        arms_by_ending.setdefault(_Ending.of(cell), []).append(arms[cell.id])
    for ending, ended_arms in arms_by_ending.items():
        columns = {"status": ending.status, "reason_code": ending.code, "reason_text": ending.text}
        Arm.objects.filter(pk__in=[arm.pk for arm in ended_arms]).update(is_evaluated=ending.is_evaluated, **columns)
        cells = [arm.cell_id for arm in ended_arms if arm.name == arm.cell.name]
        if cells:
            Cell.objects.filter(pk__in=cells).update(**columns)


def _write_comparisons(block: Block, document: doc.Document, arms: dict[str, Arm]) -> None:
    """Write the verdicts of the block alone; concluding the run decides which hold among all its comparisons."""
    Comparison.objects.bulk_create(
        Comparison(
            run=block.run,
            block=block,
            baseline=arms[comparison.baseline],
            candidate=arms[comparison.candidate],
            axis=comparison.axis,
            is_tested=is_tested(comparison),
            verdict=comparison.verdict,
            body=comparison.model_dump_json(exclude={"operators"}),
            operators=_dump_operators(comparison),
        )
        for comparison in document.comparisons
    )


def _make_null_estimate(block: Block, judge: BlockJudge, judged: Judged) -> NullEstimate | None:
    """Make the estimate of an A/A pair; None if it has no wall-clock figures."""
    planned, figures = judged.planned, judged.figures
    # a node's margin is estimated from wall-clock time only
    if figures is None or judged.verdict_from != "wall":
        return None
    pairs = judge.evidence.pairs(planned.baseline, planned.candidate)
    spec = block.plan.arms[planned.baseline].spec
    return NullEstimate(
        node=block.node,
        # the noise of cells of one class is pooled
        cell_class=f"{spec.provider} {spec.recipe.precision} ×{spec.session.threads}",
        block=block.pk,
        arm=planned.baseline,
        twin=planned.candidate,
        rounds=judged.rounds,
        estimate=log(figures.ratio),
        verdict=judged.verdict,
        log_ratios=[log(new / old) for old, new in pairs],
        metrics={
            change.name: log(change.ratio)
            for change in metric_verdicts.judge_metrics(judge, [judged])[0]
            if change.ratio
        },
    )


def conclude_runs(*, at_once: int = MAX_AT_ONCE) -> int:
    """Conclude finished runs, at most `at_once`: write headline, verdicts and document; return how many.

    Those that finished first come first. A run that changes meanwhile is not counted and stays due. A run whose
    conclusion fails is logged, and skipped for RETRY_AFTER_S.
    """
    runs = Run.objects.filter(state=RunState.FINISHED, is_concluded=False)
    return sum(_call_or_log(_conclude_run, run) for run in _list_due(runs.order_by("finished_at"), at_once))


def backfill_leads(*, at_once: int = MAX_AT_ONCE) -> int:
    """Write `lead`, the figures of the headline, for runs that an older release concluded; return for how many.

    At most `at_once` runs are read. A run for which that fails is logged, and skipped for RETRY_AFTER_S.
    """
    runs = Run.objects.filter(is_concluded=True, lead__isnull=True)
    return sum(_call_or_log(_backfill_lead, run) for run in _list_due(runs.order_by("-pk"), at_once))


def _list_due(runs: QuerySet[Run], at_once: int) -> list[Run]:
    """List the first runs, without those that failed within RETRY_AFTER_S, which would keep the others waiting."""
    run_ids = runs.values_list("pk", flat=True)[:MAX_CANDIDATES]
    due = list(islice((pk for pk in run_ids if cache.get(_failure_key(pk)) is None), at_once))
    return list(runs.filter(pk__in=due).select_related("version__model", "team"))


def _call_or_log(function: Callable[[Run], bool], run: Run) -> bool:
    """Call the function with the run. If it raises, log that, return False, and skip the run for RETRY_AFTER_S."""
    try:
        return function(run)
    except Exception:
        cache.set(_failure_key(run.pk), True, timeout=RETRY_AFTER_S)
        logger.exception("run %s could not be concluded; it is tried again in %.0f s", run.pk, RETRY_AFTER_S)
        return False


def _failure_key(run_id: int) -> str:
    return f"runs.concluding.broke.{run_id}"


def _backfill_lead(run: Run) -> bool:
    lead = find_key_result(make_document(run)).model_dump(mode="json")
    return bool(Run.objects.filter(pk=run.pk, is_concluded=True).update(lead=lead))


def _conclude_run(run: Run) -> bool:
    """Write headline, verdicts and the finished document; return False if the run has changed meanwhile."""
    document = make_document(run)
    body = gzip.compress(document.to_json().encode(), compresslevel=5, mtime=0)
    with transaction.atomic():
        same = Run.objects.filter(pk=run.pk, state=RunState.FINISHED, revision=run.revision)
        columns = {"headline": document.sentence, "lead": find_key_result(document).model_dump(mode="json")}
        if not same.update(**columns, is_concluded=True, revision=F("revision") + 1):
            return False
        _write_verdicts(run, document.comparisons)
        stored = FinishedDocument(run=run, revision=run.revision + 1, body=body)
        FinishedDocument.objects.bulk_create(
            [stored], update_conflicts=True, unique_fields=["run"], update_fields=["revision", "body"]
        )
    return True


def _write_verdicts(run: Run, comparisons: list[doc_comparisons.Comparison]) -> None:
    """Write the verdicts that changed because the run has many comparisons (Benjamini-Hochberg)."""
    verdicts = {(comparison.baseline, comparison.candidate): comparison.verdict for comparison in comparisons}
    rows = Comparison.objects.filter(run=run).select_related("baseline", "candidate")
    changed = []
    for row in rows.only("verdict", "baseline__name", "candidate__name"):
        verdict = verdicts.get((row.baseline.name, row.candidate.name), row.verdict)
        if verdict != row.verdict:
            row.verdict = verdict
            changed.append(row)
    Comparison.objects.bulk_update(changed, ["verdict"], batch_size=500)
