"""What was measured of a version, for choosing settings: the newest measurement of each cell on each machine."""

from farm.accounts.selectors import Anyone
from farm.registry.models import Model
from farm.rules.reporting.best import Setting
from farm.runs.models import Cell, Measurement, Run

# of the newest runs
MOST = 500
# wide columns that no setting needs
UNUSED = ("samples", "arm__cell__spec_json", "arm__block__plan_json", "arm__block__node__facts_json")


def measured_settings(user: Anyone, model: Model) -> tuple[int | None, list[Setting]]:
    """The number of the model's newest version that was measured, and its cells; A/A twins left out."""
    number, runs = _newest_runs(user, model)
    if number is None:
        return None, []
    rows = Measurement.objects.filter(metric="p50", arm__twin_of=None, arm__status="done", arm__cell__run__in=runs)
    ordered = rows.order_by("-arm__cell__run_id", "arm__number")
    shown = list(ordered.select_related("arm__cell", "arm__block__node").defer(*UNUSED)[:MOST])
    together = Measurement.objects.filter(metric="throughput", arm__in=[row.arm_id for row in shown])
    items = dict(together.values_list("arm_id", "value"))
    found: dict[tuple[str, str], Setting] = {}
    for row in shown:
        node = row.arm.block.node
        name = node.name if node else "a node that left"
        found.setdefault((row.arm.cell.digest, name), _setting(row, name, items.get(row.arm_id)))
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


def _setting(row: Measurement, node: str, items_s: float | None) -> Setting:
    cell = row.arm.cell
    return Setting(
        run_id=cell.run_id,
        cell=row.arm.name,
        node=node,
        runtime=cell.runtime,
        provider=cell.provider,
        precision=cell.precision,
        batch=cell.batch,
        threads=cell.threads,
        p50_ms=row.value,
        interval_ms=(row.low, row.high) if row.low is not None and row.high is not None else None,
        items_s=items_s,
        is_right={"pass": True, "fail": False}.get(cell.parity),
    )
