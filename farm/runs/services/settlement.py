"""What an ended block comes to: its arms' documents, comparisons, and the node's A/A history."""

from math import log

from farm.contract import document as doc
from farm.fleet.services import keep_null_estimate
from farm.rules.judging.block_verdicts import BlockJudge, Judged
from farm.rules.planning.plans import PlannedBlock
from farm.rules.reporting.families import is_tested
from farm.runs.models import Arm, Block, Cell, CellDocument, Comparison
from farm.runs.selectors.documents import block_document


def settle_block(block: Block, judge: BlockJudge) -> None:
    """Writes what the block's reports come to, in place of what an earlier end of it had written."""
    document = block_document(block)
    arms = {arm.name: arm for arm in block.arms.select_related("cell")}
    if block.attempt > 1:
        _forget(block)
    CellDocument.objects.bulk_create(_cell_document(arms[cell.id], cell) for cell in document.cells)
    for cell in document.cells:
        _end_arm(arms[cell.id], cell)
    _write_comparisons(block, document, arms)
    for judged in judge.comparisons():
        _keep_null(block, judge, judged)


def _forget(block: Block) -> None:
    """Removes what an earlier end of the block had come to."""
    CellDocument.objects.filter(arm__block=block).delete()
    block.comparisons.all().delete()


def cell_class(block: PlannedBlock, arm: int) -> str:
    """Cells whose A/A noise is pooled: same provider and precision, same number of threads."""
    spec = block.arms[arm].spec
    return f"{spec.provider} {spec.recipe.precision} ×{spec.session.threads}"


def _cell_document(arm: Arm, cell: doc.Cell) -> CellDocument:
    return CellDocument(arm=arm, body=cell.model_dump_json(exclude={"operators"}), operators=operators_json(cell))


def operators_json(part: doc.Cell | doc.Comparison) -> str:
    """The operators of a part of a document, as JSON text."""
    return f"[{','.join(operator.model_dump_json() for operator in part.operators)}]"


def _end_arm(arm: Arm, cell: doc.Cell) -> None:
    code, text = (cell.reason.code, cell.reason.text) if cell.reason else ("", "")
    ending = {"status": cell.status, "reason_code": code, "reason_text": text}
    is_evaluated = cell.accuracy is not None and cell.accuracy.value is not None
    Arm.objects.filter(pk=arm.pk).update(is_evaluated=is_evaluated, **ending)
    if arm.name == arm.cell.name:
        Cell.objects.filter(pk=arm.cell_id).update(**ending)


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


def _keep_null(block: Block, judge: BlockJudge, judged: Judged) -> None:
    """An A/A pair is what the node's own noise is known by, whether it was added or asked for."""
    planned, figures = judged.planned, judged.figures
    arms = block.plan.arms
    is_twin = arms[planned.baseline].spec.digest == arms[planned.candidate].spec.digest
    # the margin of a node is that of its wall-clock time
    if figures is None or not is_twin or block.node is None or judged.verdict_from != "wall":
        return
    pairs = judge.evidence.pairs(planned.baseline, planned.candidate)
    keep_null_estimate(
        node=block.node,
        cell_class=cell_class(block.plan, planned.baseline),
        block=block.pk,
        arms=(planned.baseline, planned.candidate),
        rounds=judged.rounds,
        estimate=log(figures.ratio),
        verdict=judged.verdict,
        log_ratios=[log(new / old) for old, new in pairs],
    )
