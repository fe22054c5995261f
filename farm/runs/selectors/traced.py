"""Cells whose trace can be laid over the model's graph."""

from dataclasses import dataclass

from farm.accounts.selectors import Anyone
from farm.registry.models import Version
from farm.runs.models import CellDocument, Run

MOST = 200


@dataclass(frozen=True)
class TracedCell:
    """A cell by its run and the name it has there, and what tells it from others."""

    run_id: int
    name: str
    runtime: str
    provider: str
    precision: str
    batch: int | None
    threads: int | None


def traced_cells(user: Anyone, version: Version) -> list[TracedCell]:
    """Traced cells of the version's runs that the user may see, A/A twins left out: newest run first, 200 at most."""
    rows = CellDocument.objects.filter(arm__cell__run__version=version, arm__twin_of=None).exclude(operators="[]")
    visible = rows.filter(arm__cell__run__in=Run.objects.visible_to(user))
    columns = ("run_id", "runtime", "provider", "precision", "batch", "threads")
    found = visible.order_by("-arm__cell__run_id", "arm__cell__number").values_list(
        "arm__name", *(f"arm__cell__{name}" for name in columns)
    )
    return [TracedCell(name=name, **dict(zip(columns, rest, strict=True))) for name, *rest in found[:MOST]]
