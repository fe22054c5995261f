"""What was measured of a version, for choosing settings: the newest measurement of each cell on each machine."""

import json

from farm.accounts.selectors import Anyone
from farm.contract import document_cells as doc_cells
from farm.fleet.selectors.nodes import name_of
from farm.registry.models import Model
from farm.rules.cells.axes import AXES
from farm.rules.presenting.hardware import Measured
from farm.runs.models import Cell, CellDocument, Run
from farm.runs.states import FARM_MADE

# of the newest runs
MOST = 500
# wide columns that no setting needs
UNUSED = ("operators", "arm__cell__spec_json", "arm__block__plan_json", "arm__block__node__facts_json")
# what of a cell's document tells settings apart and says how good one is: the rest of it is not read
READ = {field for axis in AXES for field in axis.fields} | {
    *("id", "digest", "model_sha256", "status", "p50_ms", "p50_ci_ms", "throughput", "parity", "simulated"),
    *("active_providers", "providers"),
}


def measured_settings(user: Anyone, model: Model) -> tuple[int | None, list[Measured]]:
    """The number of the model's newest version that was measured, and its cells: no A/A twins, and nothing that the
    farm made for its own searches."""
    number, runs = _newest_runs(user, model)
    if number is None:
        return None, []
    rows = CellDocument.objects.filter(arm__twin_of=None, arm__status="done", arm__cell__run__in=runs)
    ordered = rows.order_by("-arm__cell__run_id", "arm__number")
    found: dict[tuple[str, str], Measured] = {}
    for row in ordered.select_related("arm__cell", "arm__block__node").defer(*UNUSED)[:MOST]:
        cell, name = row.arm.cell, name_of(row.arm.block.node)
        if (cell.digest, name) not in found:
            known = {key: value for key, value in json.loads(row.body).items() if key in READ}
            body = doc_cells.Cell.model_validate({**known, "id": row.arm.name})
            at = row.arm.block.ended_at
            found[cell.digest, name] = Measured(cell.run_id, number, name, machine="", at=at, cell=body)
    return number, list(found.values())


def _newest_runs(user: Anyone, model: Model) -> tuple[int | None, list[int]]:
    """The newest version that a cell was measured of, and its newest runs with about as many cells as are shown."""
    visible = Run.objects.visible_to(user).filter(version__model=model).exclude(reason__in=FARM_MADE)
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
