"""What an ended block comes to: cells, measurements, parity reports, comparisons, and the node's A/A history."""

from math import log

from farm.contract import document as doc
from farm.fleet.services import keep_null_estimate
from farm.rules.judging.judging import BlockJudge, Judged
from farm.rules.planning.plans import PlannedBlock
from farm.runs.models import Arm, Block, Cell, CellDocument, Comparison, Measurement, ParityReport
from farm.runs.selectors.documents import block_document

# metric, its place in the document's cell, unit, whether lower is better
METRICS = (
    ("p50", "p50_ms", "ms", True),
    ("mean", "mean_ms", "ms", True),
    ("p90", "p90_ms", "ms", True),
    ("p99", "p99_ms", "ms", True),
    ("throughput", "throughput", "items/s", False),
    ("session", "session_ms", "ms", True),
    ("first", "first_ms", "ms", True),
    ("peak_memory", "peak_memory_bytes", "bytes", True),
)


def settle_block(block: Block, judge: BlockJudge) -> None:
    """Writes what the block's reports come to, in place of what an earlier end of it had written."""
    document = block_document(block)
    arms = {arm.name: arm for arm in block.arms.select_related("cell")}
    if block.attempt > 1:
        _forget(block)
    CellDocument.objects.bulk_create(_cell_document(arms[cell.id], cell) for cell in document.cells)
    ParityReport.objects.bulk_create(_parity_report(arms[cell.id], cell.parity) for cell in document.cells)
    Measurement.objects.bulk_create(row for cell in document.cells for row in _measurements(arms[cell.id], cell))
    for cell in document.cells:
        _end_arm(arms[cell.id], cell)
    _write_comparisons(block, document, judge, arms)
    for judged in judge.comparisons():
        _keep_null(block, judge, judged)


def _forget(block: Block) -> None:
    """Removes what an earlier end of the block had come to."""
    for table in (CellDocument, ParityReport, Measurement):
        table.objects.filter(arm__block=block).delete()
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


def _parity_report(arm: Arm, parity: doc.Parity) -> ParityReport:
    return ParityReport(
        arm=arm,
        verdict=parity.verdict,
        reference=parity.reference or "",
        text=parity.text,
        atol=parity.atol,
        rtol=parity.rtol,
        outputs=[output.model_dump(mode="json") for output in parity.outputs],
    )


def _measurements(arm: Arm, cell: doc.Cell) -> list[Measurement]:
    rows = []
    for metric, place, unit, lower in METRICS:
        value = getattr(cell, place)
        if value is not None:
            rows.append(Measurement(arm=arm, metric=metric, unit=unit, lower_is_better=lower, value=value))
    if cell.accuracy is not None and cell.accuracy.value is not None:
        rows.append(_accuracy(arm, cell.accuracy))
    for row in rows:
        if row.metric == "p50":
            row.low, row.high = cell.p50_ci_ms or (None, None)
            row.samples = cell.samples_ms
    return rows


def _accuracy(arm: Arm, found: doc.Accuracy) -> Measurement:
    assert found.value is not None
    unit = "share" if found.higher_is_better else "squared error"
    return Measurement(
        arm=arm,
        metric=found.metric,
        unit=unit,
        lower_is_better=not found.higher_is_better,
        value=found.value,
        low=found.ci_low,
        high=found.ci_high,
    )


def _end_arm(arm: Arm, cell: doc.Cell) -> None:
    code, text = (cell.reason.code, cell.reason.text) if cell.reason else ("", "")
    ending = {"status": cell.status, "reason_code": code, "reason_text": text}
    Arm.objects.filter(pk=arm.pk).update(**ending)
    if arm.name == arm.cell.name:
        Cell.objects.filter(pk=arm.cell_id).update(p50_ms=cell.p50_ms, parity=cell.parity.verdict, **ending)


def _write_comparisons(block: Block, document: doc.Document, judge: BlockJudge, arms: dict[str, Arm]) -> None:
    """The block's own verdicts: whether they hold among all of the run's is decided when it is read as a whole."""
    places = block.plan.arms
    own = {(places[j.planned.baseline].id, places[j.planned.candidate].id): j for j in judge.comparisons()}
    rows = []
    for one in document.comparisons:
        judged = own[one.baseline, one.candidate]
        said = one.model_copy(update={"verdict": judged.verdict, "reason": judged.reason or None})
        rows.append(
            Comparison(
                run=block.run,
                block=block,
                baseline=arms[one.baseline],
                candidate=arms[one.candidate],
                axis=one.axis,
                ratio=one.ratio,
                ci_low=one.ci_low,
                ci_high=one.ci_high,
                verdict=one.verdict,
                body=said.model_dump_json(exclude={"operators"}),
                operators=operators_json(one),
            )
        )
    Comparison.objects.bulk_create(rows)


def _keep_null(block: Block, judge: BlockJudge, judged: Judged) -> None:
    """An A/A pair is what the node's own noise is known by, whether it was added or asked for."""
    planned, figures = judged.planned, judged.figures
    arms = block.plan.arms
    is_twin = arms[planned.baseline].spec.digest == arms[planned.candidate].spec.digest
    if figures is None or not is_twin or block.node is None:
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
