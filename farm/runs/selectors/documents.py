"""Makes the bench documents of runs from the stored parts of settled blocks, and by judging those still measured.

Measured cells are the done ones of settled blocks, in the order of blocks and arms. `measured_cells` includes A/A twins
and does not load operators; `measured_cell_names` leaves out the twins, and `parse_cell` leaves out the operators.
"""

import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.db.models import Prefetch, Q, QuerySet, prefetch_related_objects
from pydantic import TypeAdapter

from farm.base.refusals import Missing
from farm.contract import document as doc
from farm.contract import document_cells as doc_cells
from farm.contract import document_comparisons as doc_comparisons
from farm.contract.cells import Budget
from farm.contract.reasons import CellStatus, Reason, WayOut
from farm.contract.reports import FactsReport
from farm.contract.reports import Report as NodeReport
from farm.fleet.models import Node
from farm.registry.models import ArtifactFile
from farm.rules.planning.plans import RefusedPoint
from farm.rules.presenting import metric_changes
from farm.rules.presenting.cell_counts import list_planned_cells
from farm.rules.presenting.stability import mark_continued
from farm.rules.reporting import accuracies
from farm.rules.reporting.document_cells import make_refused_cell
from farm.rules.reporting.documents import BlockRecord, RunRecord, add_sentence, assemble, make_facts
from farm.rules.reporting.multiple_tests import correct_verdicts, make_undecided
from farm.rules.wording import numbers
from farm.runs.models import (
    Arm,
    Attempt,
    Block,
    Cell,
    CellDocument,
    Comparison,
    FinishedDocument,
    Report,
    Run,
    match_arms,
)
from farm.runs.selectors.compared_versions import collect_model_facts
from farm.runs.selectors.evidence import COUNTED, reports_to_judge
from farm.runs.selectors.runs import address_of
from farm.runs.states import ENDED_BLOCKS, UNSETTLED_BLOCKS, BlockState, RunState

# long columns that no cell of a document needs
UNREAD = ("cell__variant__inspection", "cell__variant__history", "cell__variant__coverage")
_CELLS = TypeAdapter(list[doc_cells.Cell])
_COMPARISONS = TypeAdapter(list[doc_comparisons.Comparison])


@dataclass(frozen=True, slots=True)
class Before:
    """The state of a node before a block: the block's run, when the state was reported, and the facts."""

    run: int
    at: datetime
    facts: doc.BlockFacts


def recent_node_states(node: Node, *, limit: int) -> list[Before]:
    """List the state of a node before its newest blocks, the newest first.

    It looks at the newest `limit` attempts of the node; those that reported no state are left out.
    """
    attempts = list(Attempt.objects.filter(node=node).order_by("-pk").values_list("pk", flat=True)[:limit])
    rows = Report.objects.filter(attempt__in=attempts, kind="facts").order_by("-pk").select_related("attempt__block")
    return [Before(row.attempt.block.run_id, row.received_at, _read_facts(row, node.name)) for row in rows]


def facts_of_blocks(run: Run) -> list[doc.BlockFacts]:
    """List the state of the nodes before each block of a run, in the order of the blocks.

    Blocks whose node reported none are left out; of a continued block, the newest state counts.
    """
    rows = Report.objects.filter(attempt__block__run=run, attempt__state__in=COUNTED, kind="facts")
    # plans are long and not needed here
    light = rows.select_related("attempt__block", "attempt__node").defer("attempt__block__plan_json")
    # for a continued block, the facts of the newest attempt replace earlier ones
    newest = {row.attempt.block_id: row for row in light.order_by("pk")}
    facts = [_read_facts(row, row.attempt.node.name if row.attempt.node else None) for row in newest.values()]
    return sorted(facts, key=lambda before: (len(before.block), before.block))


def _read_facts(row: Report, node: str | None) -> doc.BlockFacts:
    facts = FactsReport.model_validate_json(row.body).facts
    return make_facts(facts, block=f"b{row.attempt.block.number}", node=node)


def document(run: Run, *, with_operators: bool = True) -> doc.Document:
    """Return the bench document of a run, which is partial while the run is open.

    Without operators it has about a tenth of the size. Do not change the document: that of a concluded run without
    operators is cached in this process.
    """
    if not with_operators and run.is_concluded:
        return _cached_document(run.pk, run.revision, run.finished_at)
    if with_operators and run.state == RunState.FINISHED:
        return doc.Document.model_validate_json(document_json(run))
    return make_document(run, with_operators=with_operators)


@lru_cache(maxsize=4)
def _cached_document(run_id: int, revision: int, finished_at: datetime) -> doc.Document:
    # revision and time only tell cache entries apart
    run = Run.objects.select_related("version__model").get(pk=run_id)
    return make_document(run, with_operators=False)


def document_json(run: Run) -> str:
    """Return the document as JSON text: the one stored for the run's present revision, else one that is made anew."""
    run = Run.objects.select_related("version__model").get(pk=run.pk)
    stored = FinishedDocument.objects.filter(run=run, revision=run.revision).first()
    return make_document(run).to_json() if stored is None else gzip.decompress(bytes(stored.body)).decode()


def cell_document(run: Run, name: str) -> doc_cells.Cell:
    """Return a cell of the document by its id, with its operators. Raises Missing if no such cell has ended.

    Refused cells are found too, and those of a block in progress that have ended, as they are judged now.
    """
    cell = _make_cell_document(run, name)
    if cell.accuracy is None:
        return cell
    # the lost accuracy depends on the cells of all blocks
    accuracies_by_id = {part.id: part.accuracy for part in document(run, with_operators=False).cells}
    return cell.model_copy(update={"accuracy": accuracies_by_id.get(name, cell.accuracy)})


def _make_cell_document(run: Run, name: str) -> doc_cells.Cell:
    # not in the order of an index of the documents, which PostgreSQL would scan until it meets the cell
    row = CellDocument.objects.filter(match_arms(run, name, of="arm__")).order_by("arm__number").first()
    if row is not None:
        return doc_cells.Cell.model_validate_json(_join_parts(row.body, row.operators))
    measured = (cell for block in _list_live_blocks(run) for cell in block_document(block, is_over=False).cells)
    live = {cell.id: cell for cell in (*measured, *_list_unsettled(run), *_list_refused(run))}
    if name not in live:
        raise Missing(f"Run {run.pk} has no cell {name!r} that has ended.")
    return live[name]


def comparisons_of(
    run: Run, *, name: str | None = None, with_operators: bool = True
) -> list[doc_comparisons.Comparison]:
    """List the settled comparisons of a run, or those with the cell `name`, in the order of blocks.

    Their verdicts are those that hold among all comparisons of the run.
    """
    if name is not None and run.is_concluded:
        return _list_concluded_comparisons(run, name, with_operators=with_operators)
    corrected = correct_verdicts(_list_block_comparisons(run, with_operators=with_operators))
    return [
        comparison for comparison in corrected if name is None or name in (comparison.baseline, comparison.candidate)
    ]


def measured_cells(run: Run) -> QuerySet[CellDocument]:
    rows = CellDocument.objects.filter(arm__block__run=run, arm__status=CellStatus.DONE)
    return rows.defer("operators").order_by("arm__block__number", "arm__number")


def measured_cell_names(run: Run) -> list[str]:
    return list(measured_cells(run).filter(arm__twin_of=None).values_list("arm__name", flat=True))


def parse_cell(row: CellDocument) -> doc_cells.Cell:
    return doc_cells.Cell.model_validate_json(row.body)


def make_document(run: Run, *, with_operators: bool = True) -> doc.Document:
    """Make the document from the rows, without the cache.

    Its cells are settled ones, those of blocks in progress as judged now, those of blocks that ended without being
    settled, and refused ones, in this order.
    """
    # what is stored, and what live blocks have so far
    rows = CellDocument.objects.filter(arm__block__run=run).order_by("arm__block__number", "arm__number")
    settled = _CELLS.validate_json(_make_json_list(rows, with_operators=with_operators))
    is_over = run.state == RunState.FINISHED
    live = [] if is_over else [block_document(block, is_over=False) for block in _list_live_blocks(run)]

    cells = [*settled, *(cell for part in live for cell in part.cells), *_list_unsettled(run), *_list_refused(run)]
    comparisons = _list_block_comparisons(run, with_operators=with_operators)
    comparisons += [comparison for part in live for comparison in part.comparisons]

    document = doc.Document(
        machine=_collect_machine_facts(run),
        seed=run.seed,
        budget=run.budget,
        created_at=run.created_at.isoformat(),
        run=str(run.pk),
        url=address_of(run),
        cells=accuracies.compare_with_fp32(cells),
        comparisons=correct_verdicts(comparisons),
        blocks=facts_of_blocks(run),
    )
    return add_sentence(document) if is_over else document.model_copy(update={"sentence": _describe_open(document)})


def _describe_open(document: doc.Document) -> str:
    """Write the first sentence of an open run's document: that it is not over, and the result so far."""
    measured = sum(cell.status == CellStatus.DONE for cell in list_planned_cells(document.cells))
    if not measured:
        return "This run is not over, and no cell has ended with a latency yet."
    sentence = add_sentence(document).sentence
    return f"This run is not over: {numbers.counted(measured, 'cell')} measured so far. {sentence}"


def _collect_machine_facts(run: Run) -> dict[str, object]:
    """Collect the facts of the node that measured; of several nodes, their facts by name."""
    measured = Node.objects.filter(pk__in=run.blocks.order_by().values("node"))
    nodes = {node.name: node.facts_json for node in measured.order_by("pk")}
    if len(nodes) == 1:
        [facts] = nodes.values()
        return dict(facts)
    return {"nodes": nodes}


def _make_json_list(rows: "QuerySet[CellDocument] | QuerySet[Comparison]", *, with_operators: bool) -> str:
    columns = ("body", "operators") if with_operators else ("body",)
    return f"[{','.join(_join_parts(*values) for values in rows.values_list(*columns))}]"


def _join_parts(body: str, operators: str = "[]") -> str:
    return f'{body[:-1]},"operators":{operators}}}'


def _list_block_comparisons(run: Run, *, with_operators: bool) -> list[doc_comparisons.Comparison]:
    rows = Comparison.objects.filter(run=run).order_by("block__number", "pk")
    comparisons = _COMPARISONS.validate_json(_make_json_list(rows, with_operators=with_operators))
    if run.state == RunState.FINISHED:
        return comparisons
    continued = run.blocks.filter(state__in=UNSETTLED_BLOCKS, first_round__gt=0)
    max_rounds = dict(continued.values_list("pk", "max_rounds"))
    if not max_rounds:
        return comparisons
    blocks = rows.values_list("block", flat=True)
    return [
        mark_continued(comparison, max_rounds=max_rounds[block]) if block in max_rounds else comparison
        for comparison, block in zip(comparisons, blocks, strict=True)
    ]


def _list_concluded_comparisons(run: Run, name: str, *, with_operators: bool) -> list[doc_comparisons.Comparison]:
    """List the comparisons of a cell, with the verdicts that were written when the run was concluded."""
    arms = list(Arm.objects.filter(match_arms(run, name)).order_by().values_list("pk", flat=True))
    rows = Comparison.objects.filter(Q(baseline__in=arms) | Q(candidate__in=arms)).order_by("block__number", "pk")
    stored = list(rows if with_operators else rows.defer("operators"))
    bodies = (_join_parts(row.body, row.operators) if with_operators else _join_parts(row.body) for row in stored)
    comparisons = [doc_comparisons.Comparison.model_validate_json(body) for body in bodies]
    if any(
        change.p is not None for comparison in comparisons for change in metric_changes.list_decided_changes(comparison)
    ):
        # whether changes of metrics hold depends on all comparisons of the run
        corrected = correct_verdicts(_list_block_comparisons(run, with_operators=with_operators))
        return [comparison for comparison in corrected if name in (comparison.baseline, comparison.candidate)]
    if all(comparison.verdict == row.verdict for comparison, row in zip(comparisons, stored, strict=True)):
        return comparisons
    count = Comparison.objects.filter(run=run, is_tested=True).count()
    return [
        comparison if comparison.verdict == row.verdict else make_undecided(comparison, among=count)
        for comparison, row in zip(comparisons, stored, strict=True)
    ]


def _list_live_blocks(run: Run) -> Iterable[Block]:
    """List the blocks that are measured for the first time and not settled; continued ones show their settled cells."""
    measured = run.blocks.filter(state__in=(BlockState.LEASED, BlockState.REPORTED), first_round=0)
    live = measured.select_related("node", "run__version__model")
    return live.prefetch_related(Prefetch("arms", Arm.objects.select_related("cell__preparation")))


def block_document(
    block: Block,
    *,
    is_over: bool = True,
    reports: Sequence[NodeReport] | None = None,
    arms: Sequence[Arm] | None = None,
) -> doc.Document:
    """Make the document of one block alone, by judging its reports.

    `is_over` is False while the block is still measured. `reports` and `arms` are read from the database unless the
    caller passes them.
    """
    cells = [arm.cell for arm in (load_arms(block) if arms is None else arms)]
    references = {cell.digest: cell.preparation.reference_of for cell in cells if cell.preparation}
    bundles = {cell.digest: cell.variant.bundle for cell in cells if cell.variant}
    sizes = {digest: bundle.measured_bytes for digest, bundle in bundles.items() if bundle is not None}
    record = BlockRecord(
        block=block.plan,
        reports=reports_to_judge(block) if reports is None else reports,
        node=block.node.name if block.node else None,
        reason=block.reason,
        is_over=is_over,
    )
    facts, *others = collect_model_facts(block.versions)
    budget = Budget(block.run.budget)
    run_record = RunRecord(
        model=facts, other_models=others, blocks=[record], references=references, sizes=sizes, budget=budget
    )
    return assemble(run_record, is_part=True)


def load_arms(block: Block) -> list[Arm]:
    """Read the block's arms with all rows that a document needs of their cells, in few queries.

    They come in the order of their numbers.
    """
    rows = block.arms.select_related("cell__preparation", "cell__variant__derived").defer(*UNREAD)
    arms = list(rows.order_by("number"))
    derived = [arm.cell.variant.derived for arm in arms if arm.cell.variant is not None]
    uploads = [version.artifact for version in block.versions]
    artifacts = [artifact for artifact in (*uploads, *derived) if artifact is not None]
    prefetch_related_objects(artifacts, Prefetch("files", ArtifactFile.objects.select_related("blob")))
    return arms


def _list_unsettled(run: Run) -> list[doc_cells.Cell]:
    """List the cells of blocks that failed or were cancelled without ever being settled."""
    blocks = run.blocks.filter(state__in=ENDED_BLOCKS).exclude(arms__document__isnull=False)
    ended = [block_document(block) for block in blocks.select_related("node", "run__version__model").distinct()]
    return [_mark_ended(cell, run) for document in ended for cell in document.cells]


def _mark_ended(cell: doc_cells.Cell, run: Run) -> doc_cells.Cell:
    """Give the cell the status and reason that its arm got when the block ended, as pages and counts show them."""
    arm = Arm.objects.filter(block__run=run, name=cell.id).first()
    if arm is None or not arm.status:
        return cell
    return cell.model_copy(update={"status": CellStatus(arm.status), "reason": arm.reason})


def _list_refused(run: Run) -> list[doc_cells.Cell]:
    """List the cells that the plan refused."""
    rows = list(run.cells.filter(arms=None).order_by("number"))
    if not rows:
        return []
    facts, *others = collect_model_facts(run.versions)
    record = RunRecord(model=facts, other_models=others)
    return [make_refused_cell(_make_refused_point(row, row.reason), record) for row in rows if row.reason is not None]


def _make_refused_point(row: Cell, reason: Reason) -> RefusedPoint:
    return RefusedPoint(
        id=row.name,
        positions=row.positions,
        labels=row.labels,
        spec=row.spec,
        reason=reason,
        way_out=None if row.way_out is None else WayOut.model_validate(row.way_out),
    )
