"""What an ended block comes to: its arms' documents, comparisons, and the node's A/A history."""

from collections.abc import Sequence
from math import log
from typing import NamedTuple

from farm.contract import document as doc
from farm.contract import document_cells as doc_cells
from farm.contract import document_comparisons as doc_comparisons
from farm.contract.reports import Report
from farm.fleet.models import NullEstimate
from farm.fleet.services import keep_null_estimates
from farm.registry.models import Version
from farm.rules.judging.block_verdicts import BlockJudge, Judged
from farm.rules.planning.plans import PlannedBlock
from farm.rules.reporting.families import is_tested
from farm.runs.models import Arm, Block, Cell, CellDocument, Comparison
from farm.runs.selectors.documents import arms_of, block_document


def settle_block(block: Block, judge: BlockJudge, reports: Sequence[Report]) -> None:
    """Writes what the block's reports come to, in place of what an earlier end of it had written."""
    block.run.version = Version.objects.select_related("artifact__inputs", "model").get(pk=block.run.version_id)
    rows = arms_of(block)
    document = block_document(block, reports=reports, arms=rows)
    arms = {arm.name: arm for arm in rows}
    CellDocument.objects.filter(arm__block=block).delete()
    block.comparisons.all().delete()
    CellDocument.objects.bulk_create(_cell_document(arms[cell.id], cell) for cell in document.cells)
    _end_arms(document, arms)
    _write_comparisons(block, document, arms)
    _keep_nulls(block, judge)


def cell_class(block: PlannedBlock, arm: int) -> str:
    """Cells whose A/A noise is pooled: same provider and precision, same number of threads."""
    spec = block.arms[arm].spec
    return f"{spec.provider} {spec.recipe.precision} ×{spec.session.threads}"


def _cell_document(arm: Arm, cell: doc_cells.Cell) -> CellDocument:
    return CellDocument(arm=arm, body=cell.model_dump_json(exclude={"operators"}), operators=operators_json(cell))


def operators_json(part: doc_cells.Cell | doc_comparisons.Comparison) -> str:
    """The operators of a part of a document, as JSON text."""
    return f"[{','.join(operator.model_dump_json() for operator in part.operators)}]"


class _Ending(NamedTuple):
    """How an arm ended, and whether it was judged on labelled data. Most of a block ended alike."""

    status: str
    code: str
    text: str
    is_evaluated: bool

    @classmethod
    def of(cls, cell: doc_cells.Cell) -> "_Ending":
        code, text = (cell.reason.code, cell.reason.text) if cell.reason else ("", "")
        return cls(cell.status, code, text, cell.accuracy is not None and cell.accuracy.value is not None)


def _end_arms(document: doc.Document, arms: dict[str, Arm]) -> None:
    """Writes how arms and their cells ended: one statement for all that ended alike."""
    alike: dict[_Ending, list[Arm]] = {}
    for cell in document.cells:
        alike.setdefault(_Ending.of(cell), []).append(arms[cell.id])
    for ending, rows in alike.items():
        said = {"status": ending.status, "reason_code": ending.code, "reason_text": ending.text}
        Arm.objects.filter(pk__in=[arm.pk for arm in rows]).update(is_evaluated=ending.is_evaluated, **said)
        cells = [arm.cell_id for arm in rows if arm.name == arm.cell.name]
        if cells:
            Cell.objects.filter(pk__in=cells).update(**said)


def _write_comparisons(block: Block, document: doc.Document, arms: dict[str, Arm]) -> None:
    """The block's own verdicts: whether they hold among all of the run's is decided when it is read as a whole."""
    Comparison.objects.bulk_create(
        Comparison(
            run=block.run,
            block=block,
            baseline=arms[one.baseline],
            candidate=arms[one.candidate],
            axis=one.axis,
            is_tested=is_tested(one),
            verdict=one.verdict,
            body=one.model_dump_json(exclude={"operators"}),
            operators=operators_json(one),
        )
        for one in document.comparisons
    )


def _keep_nulls(block: Block, judge: BlockJudge) -> None:
    """A/A pairs are what the node's own noise is known by, whether they were added or asked for."""
    if block.node is not None:
        found = judge.judged(judge.twins)
        nulls = [null for judged in found if (null := _null_of(block, judge, judged)) is not None]
        keep_null_estimates(node=block.node, estimates=nulls)


def _null_of(block: Block, judge: BlockJudge, judged: Judged) -> NullEstimate | None:
    """What an A/A pair came to; None where it came to nothing."""
    planned, figures = judged.planned, judged.figures
    # the margin of a node is that of its wall-clock time
    if figures is None or judged.verdict_from != "wall":
        return None
    pairs = judge.evidence.pairs(planned.baseline, planned.candidate)
    return NullEstimate(
        node=block.node,
        cell_class=cell_class(block.plan, planned.baseline),
        block=block.pk,
        arm=planned.baseline,
        twin=planned.candidate,
        rounds=judged.rounds,
        estimate=log(figures.ratio),
        verdict=judged.verdict,
        log_ratios=[log(new / old) for old, new in pairs],
    )
