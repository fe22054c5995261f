"""What was measured of a version, for choosing settings: the newest measurement of each cell on each machine."""

from farm.accounts.selectors import Anyone
from farm.contract.document_cells import Parity, Part
from farm.fleet.selectors.nodes import name_of
from farm.registry.models import Model
from farm.rules.presenting.best import Setting
from farm.runs.models import Cell, CellDocument, Run

# of the newest runs
MOST = 500
# wide columns that no setting needs
UNUSED = ("operators", "arm__cell__spec_json", "arm__block__plan_json", "arm__block__node__facts_json")


class _Figures(Part):
    """What of a measured cell's document a setting needs: the rest of it is not read."""

    p50_ms: float
    p50_ci_ms: tuple[float, float] | None = None
    throughput: float | None = None
    parity: Parity


def measured_settings(user: Anyone, model: Model) -> tuple[int | None, list[Setting]]:
    """The number of the model's newest version that was measured, and its cells; A/A twins left out."""
    number, runs = _newest_runs(user, model)
    if number is None:
        return None, []
    rows = CellDocument.objects.filter(arm__twin_of=None, arm__status="done", arm__cell__run__in=runs)
    ordered = rows.order_by("-arm__cell__run_id", "arm__number")
    found: dict[tuple[str, str], Setting] = {}
    for row in ordered.select_related("arm__cell", "arm__block__node").defer(*UNUSED)[:MOST]:
        name = name_of(row.arm.block.node)
        if (row.arm.cell.digest, name) not in found:
            found[row.arm.cell.digest, name] = _setting(row, name)
    return number, list(found.values())


def _newest_runs(user: Anyone, model: Model) -> tuple[int | None, list[int]]:
    """The newest version that a cell was measured of, and its newest runs with about as many cells as are shown."""
    visible = Run.objects.visible_to(user).filter(version__model=model)
    measured = Cell.objects.filter(run__in=visible, status="done").order_by("-run__version__number")
    number = measured.values_list("run__version__number", flat=True).first()
    if number is None:
        return None, []
    runs: list[int] = []
    cells = 0
    for run, count in visible.filter(version__number=number).order_by("-pk").values_list("pk", "cell_count"):
        if cells >= MOST:
            break
        runs.append(run)
        cells += count
    return number, runs


def _setting(row: CellDocument, node: str) -> Setting:
    cell, figures = row.arm.cell, _Figures.model_validate_json(row.body)
    return Setting(
        run_id=cell.run_id,
        cell=row.arm.name,
        node=node,
        runtime=cell.runtime,
        provider=cell.provider,
        precision=cell.precision,
        batch=cell.batch,
        threads=cell.threads,
        p50_ms=figures.p50_ms,
        interval_ms=figures.p50_ci_ms,
        items_s=figures.throughput,
        is_right={"pass": True, "fail": False}.get(figures.parity.verdict),
    )
