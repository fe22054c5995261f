"""Reads the measurements of a variant."""

from collections.abc import Iterable
from dataclasses import dataclass

from farm.accounts.selectors import Anyone
from farm.contract import document_cells as doc_cells
from farm.contract import document_comparisons as doc_comparisons
from farm.contract.reasons import CellStatus
from farm.registry.models import Variant
from farm.runs.models import Arm, CellDocument, Comparison, Run, match_arms
from farm.runs.selectors.documents import cell_document, parse_cell

# limits of the newest cells that are read, and of the different cells among them that are shown
MAX_READ, MAX_VARIANTS = 60, 8
# the axes along which a variant is compared with the upload
AXES = ("precision", "opset")


@dataclass(frozen=True)
class VariantCell:
    """A measured cell of a variant."""

    run: Run
    cell: doc_cells.Cell
    # the comparison with the same cell of the upload as it is; None if no block measured both
    against: doc_comparisons.Comparison | None
    # that cell's precision; empty without a comparison
    upload: str


def measured_cells_of(user: Anyone, variant: Variant) -> list[VariantCell]:
    """List the newest measurement of each different cell on each node, MAX_VARIANTS at most.

    Those that were compared with the upload come first, and in both groups the newest. At most MAX_READ comparisons,
    and as many other cells, are read.
    """
    against = _compare_with_upload(user, variant)
    ended = {"arm__twin_of": None, "arm__status": CellStatus.DONE, "arm__cell__run__in": Run.objects.visible_to(user)}
    rows = CellDocument.objects.filter(arm__cell__variant=variant, **ended).defer("operators")
    rows = rows.select_related("arm__cell__run", "arm__block").order_by("-pk")
    beside, others = rows.filter(arm__in=list(against)), rows.exclude(arm__in=list(against))
    newest = _choose_newest(beside)
    if len(newest) < MAX_VARIANTS:
        newest = _choose_newest([*newest, *others[:MAX_READ]])
    return [VariantCell(row.arm.cell.run, parse_cell(row), *against.get(row.arm_id, (None, ""))) for row in newest]


def _choose_newest(rows: Iterable[CellDocument]) -> list[CellDocument]:
    """Choose the first row of each cell on each node, told apart by columns, as reading documents takes long."""
    newest: dict[tuple[object, ...], CellDocument] = {}
    for row in rows:
        cell = row.arm.cell
        shapes = tuple(sorted((cell.spec_json.get("workload") or {}).get("shapes", {}).items()))
        place = (cell.runtime, cell.provider, cell.batch, cell.threads, shapes, row.arm.block.node_id)
        newest.setdefault(place, row)
    return list(newest.values())[:MAX_VARIANTS]


def _compare_with_upload(user: Anyone, variant: Variant) -> dict[int, tuple[doc_comparisons.Comparison, str]]:
    """Map arm ids to their comparison with the upload as it is, and the precision of the upload's cell."""
    columns = {"candidate__cell__variant": variant, "axis__in": AXES, "run__in": Run.objects.visible_to(user)}
    rows = Comparison.objects.filter(**columns, candidate__twin_of=None).defer("operators")
    return {
        row.candidate_id: (
            doc_comparisons.Comparison.model_validate_json(row.body).model_copy(update={"verdict": row.verdict}),
            row.baseline.cell.precision,
        )
        for row in rows.select_related("baseline__cell__variant").order_by("-pk")[:MAX_READ]
        if row.baseline.cell.variant is not None and row.baseline.cell.variant.recipe.is_identity
    }


def measured_cell(user: Anyone, variant: Variant) -> tuple[Run, doc_cells.Cell] | None:
    """Find the newest settled cell of the variant, preferably a traced one, with its run; None if there is none.

    The cell comes with its operators. It need not have a result.
    """
    rows = CellDocument.objects.filter(
        arm__cell__variant=variant, arm__twin_of=None, arm__cell__run__in=Run.objects.visible_to(user)
    )
    measured = rows.select_related("arm__cell__run__version__model").order_by("-pk")
    row = measured.exclude(operators="[]").first() or measured.first()
    return (row.arm.cell.run, cell_document(row.arm.cell.run, row.arm.name)) if row is not None else None


def processor_of(run: Run, node: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the architecture and instruction sets of the run's node of this name; both are empty if not known."""
    block = run.blocks.filter(node__name=node).select_related("node").first()
    facts = block.node.facts_json if block is not None and block.node else {}
    return str(facts.get("arch") or ""), tuple(facts.get("instruction_sets") or ())


def variant_of_cell(run: Run, name: str) -> Variant | None:
    """Find the variant that a cell of the run measures; None for the upload itself, or a cell that was in no block."""
    arm = Arm.objects.filter(match_arms(run, name)).select_related("cell__variant").first()
    cell = arm.cell if arm is not None else None
    return cell.variant if cell is not None and cell.variant and not cell.variant.recipe.is_identity else None
