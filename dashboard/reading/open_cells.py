"""Cells that have not ended, as they were planned: a run's map shows them from its first second on."""

from collections.abc import Collection, Iterable, Mapping
from statistics import median

from farm.contract.document_cells import Cell
from farm.contract.reasons import CellStatus
from farm.rules.cells.identity import told
from farm.rules.planning.plans import Arm, PlannedBlock
from farm.runs.states import activity_of


def open_cells(
    blocks: Iterable[tuple[str, PlannedBlock]],
    *,
    known: Collection[str],
    model: str,
    model_sha256: str,
    so_far: Mapping[str, list[float]] | None = None,
) -> tuple[list[Cell], dict[str, str]]:
    """Cells without a result, and what goes on in the block of each, by its id: measuring, queued or preparing.

    `known`: ids that have ended. `model_sha256`: the model file's digest, as documents have it.
    `so_far`: p50 in ms of the launches there are already, by id.
    """
    cells: list[Cell] = []
    states: dict[str, str] = {}
    for state, block in blocks:
        for arm in block.arms:
            if arm.id not in known:
                cells.append(_cell(arm, block, (model, model_sha256), (so_far or {}).get(arm.id, [])))
                states[arm.id] = activity_of([state])
    return cells, states


def _cell(arm: Arm, block: PlannedBlock, model: tuple[str, str], launches: list[float]) -> Cell:
    """The planned cell in the document's words; its status says nothing and is never shown."""
    spec = arm.spec
    known = {
        "id": arm.id,
        "block": block.id,
        "model": model[0],
        "model_sha256": model[1],
        "twin_of": None if arm.twin_of is None else block.arms[arm.twin_of].id,
        "status": CellStatus.CANCELLED,
        "p50_ms": median(launches) if launches else None,
        "samples_ms": launches,
    }
    return Cell.model_validate(known | told(spec, opset=None, session=arm.labels.get("session", "default")))
