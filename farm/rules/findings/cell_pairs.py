"""Pairs of cells that differ only in their runtime or model, which gates and kinds of change compare."""

from dataclasses import dataclass

from farm.contract.base import digest_json
from farm.contract.cells import SINGLE, LaterAxes, Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.reasons import CellStatus
from farm.rules.cells import label, scenarios
from farm.rules.comparing.sides import comparison_between, index_by_sides


@dataclass(frozen=True, slots=True)
class Pair:
    """The same settings measured with two runtimes or two models, in one block where possible.

    `series` is the digest of the old cell's series. `is_of_models` says that both cells have the same runtime, and
    `is_finished` that both are done.
    """

    old: Cell
    new: Cell
    # its ratio is new / old; None where the two were not compared
    comparison: Comparison | None = None

    @property
    def series(self) -> str:
        return series_digest(self.old)

    @property
    def is_of_models(self) -> bool:
        return self.old.runtime == self.new.runtime

    @property
    def names(self) -> tuple[str, str]:
        """The names of old and new: of their runtimes, or of their models where the runtime is the same."""
        if self.is_of_models:
            return str(self.old.model), str(self.new.model)
        return str(self.old.runtime), str(self.new.runtime)

    @property
    def is_finished(self) -> bool:
        return self.old.status is CellStatus.DONE and self.new.status is CellStatus.DONE


def series_digest(cell: Cell) -> str:
    """Compute the digest of a cell's series, without node and versions: model, recipe, provider, workload, session."""
    session = {key: value for key, value in cell.session.items() if key != "name"}
    recipe = [cell.precision, cell.recipe]
    workload = [cell.batch, cell.shapes, cell.concurrency]
    provider = [cell.provider, cell.provider_options]
    setting = [cell.threads, session, cell.optimization]
    parts = [cell.model, cell.runtime.distribution, recipe, provider, workload, setting]
    # Axes that were added later count only where they differ from their defaults, so that older series keep their
    # digests.
    later_axes = cell.model_dump(mode="json", include=set(LaterAxes.model_fields))
    scenario = scenarios.parse_recorded(cell.scenario).axis_text
    later_axes |= {"scenario": scenario} if scenario != SINGLE else {}
    return digest_json([*parts, later_axes] if later_axes else parts)[:32]


def series_and_hardware(cell: Cell) -> tuple[str, str]:
    return series_digest(cell), cell.hardware


def series_label(cell: Cell) -> str:
    return ", ".join(part for part in (cell.model, label.series_label(cell)) if part)


def pair_cells(document: Document, *, old: Runtime | str, new: Runtime | str, of_models: bool = False) -> list[Pair]:
    """Pair the cells of `old` and `new` that differ in nothing else: one pair for each series and hardware.

    Cells of the same block are preferred; A/A copies are left out. There are no pairs where `old` and `new` are equal.
    `old` is the baseline, and may be the later release. With `of_models`, `old` and `new` are names of models, and both
    cells of a pair have the same runtime.
    """
    points: dict[tuple[str, ...], dict[Runtime | str, list[Cell]]] = {}
    for cell in document.cells:
        side: Runtime | str = (cell.model or "") if of_models else cell.runtime
        if side not in (old, new) or cell.twin_of is not None:
            continue
        key: tuple[str, ...] = series_and_hardware(cell)
        if of_models:
            key = (*series_and_hardware(cell.model_copy(update={"model": None})), str(cell.runtime))
        points.setdefault(key, {}).setdefault(side, []).append(cell)
    comparisons = index_by_sides(document.comparisons)
    pairs = []
    for sides in points.values():
        if old != new and old in sides and new in sides:
            candidates = [(old_cell, new_cell) for old_cell in sides[old] for new_cell in sides[new]]
            of_one_block = (cells for cells in candidates if cells[0].block and cells[0].block == cells[1].block)
            old_cell, new_cell = next(of_one_block, candidates[0])
            pairs.append(Pair(old_cell, new_cell, comparison_between(comparisons, old_cell.id, new_cell.id)))
    return pairs


def pair_models(document: Document, *, old: str, new: str) -> list[Pair]:
    """Pair the cells of two models that were compared although their batches differ, and only those."""
    cells = {cell.id: cell for cell in document.cells}
    return [
        Pair(cells[comparison.baseline], cells[comparison.candidate], comparison)
        for comparison in document.comparisons
        if comparison.axis == "model"
        and {comparison.baseline, comparison.candidate} <= cells.keys()
        and (cells[comparison.baseline].model, cells[comparison.candidate].model) == (old, new)
        and cells[comparison.baseline].batch != cells[comparison.candidate].batch
    ]
