"""What was measured of a variant."""

from farm.accounts.selectors import Anyone
from farm.contract import document as doc
from farm.registry.models import Variant
from farm.runs.models import Cell, CellDocument, Run
from farm.runs.selectors.documents import cell_document


def measured_cell(user: Anyone, variant: Variant) -> tuple[Run, doc.Cell] | None:
    """The newest measured cell of the variant with its operators, one that was traced where there is one."""
    rows = CellDocument.objects.filter(arm__cell__variant=variant, arm__cell__run__in=Run.objects.visible_to(user))
    measured = rows.select_related("arm__cell__run__version__model").order_by("-pk")
    found = measured.exclude(operators="[]").first() or measured.first()
    return (found.arm.cell.run, cell_document(found.arm.cell.run, found.arm.name)) if found is not None else None


def processor_of(run: Run, node: str | None) -> tuple[str, tuple[str, ...]]:
    """Architecture and instruction sets of a node that measured for the run; empty where nobody said."""
    block = run.blocks.filter(node__name=node).select_related("node").first()
    facts = block.node.facts_json if block is not None and block.node else {}
    return str(facts.get("arch") or ""), tuple(facts.get("instruction_sets") or ())


def variant_of_cell(run: Run, name: str) -> Variant | None:
    """The variant that a cell of the run measures; None of one that was refused, or measures the upload itself."""
    cell = Cell.objects.filter(run=run, arms__name=name).select_related("variant").first()
    return cell.variant if cell is not None and cell.variant and not cell.variant.recipe.is_identity else None
