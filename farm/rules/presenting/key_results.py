"""Makes the key result of a run: the figures that are stored with the run and shown in lists of runs."""

from collections.abc import Mapping, Sequence
from typing import cast, get_args

from farm.contract.base import Message
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.verdicts import Word
from farm.rules.cells import label
from farm.rules.cells.axes import BY_NAME
from farm.rules.comparing.quantities import Change, Quantity
from farm.rules.presenting.cell_counts import list_planned_cells
from farm.rules.presenting.headlines import (
    RankedComparison,
    describe_unfinished,
    explain_wrong,
    name_cells,
    rank_results,
)
from farm.rules.presenting.times import Times
from farm.rules.wording.numbers import counted
from farm.rules.wording.vocabulary import ELSEWHERE, WRONG


class KeyResult(Message):
    """The result that a list shows of a run. It has one of four forms:

    - The leading comparison: its figures (`quantity` to `rounds`), its `axis`, its sides in `step` (`1.29.0 → 1.31.1`),
      and in `where` the settings that both sides share.
    - Cells with wrong outputs or lost providers: that is the `verdict`, and `step` names the cells.
    - The fastest cell of a run without comparisons: `p50_ms` with its interval, which is processor time where
      `quantity` is `processor`.
    - Where nothing was measured: the most frequent status of its cells as the `verdict`.
    `change` has its figures; a quantity that is none of a change, such as `processor`, counts as latency there.
    """

    verdict: str = ""
    quantity: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    rounds: int = 0
    reason: str = ""
    axis: str = ""
    step: str = ""
    where: str = ""
    node: str = ""
    unfinished: str = ""  # which cells failed, where others were measured
    p50_ms: float | None = None
    p50_ci_ms: tuple[float, float] | None = None

    @property
    def change(self) -> Change:
        quantity = self.quantity if self.quantity in get_args(Quantity) else "latency"
        return Change(cast(Quantity, quantity), cast(Word, self.verdict), self.ratio, self.low, self.high)


def find_key_result(document: Document) -> KeyResult:
    """Choose the key result of a run, in the order that `headlines` describes; an empty one for a run without cells."""
    planned = list_planned_cells(document.cells)
    measured = [cell for cell in planned if cell.p50_ms is not None]
    result = _choose_result(document, planned, measured)
    return result.model_copy(update={"unfinished": describe_unfinished(planned)}) if measured else result


def _choose_result(document: Document, planned: Sequence[Cell], measured: Sequence[Cell]) -> KeyResult:
    cells = {cell.id: cell for cell in document.cells}
    results = rank_results(document.comparisons, cells)
    if results.wrong_cells:
        return _report_cells(WRONG, results.wrong_cells, measured, reason=explain_wrong(results.wrong_cells))
    if results.are_misplaced_first:
        ran = [cell for cell in planned if cell.active_providers]
        return _report_cells(ELSEWHERE, results.misplaced_cells, ran)
    if results.leading is not None:
        return _report_comparison(results.leading, cells)
    if measured:
        return _report_fastest(measured, Times.of(measured, document.comparisons), n_planned=len(planned))
    return _report_status(planned)


def _report_cells(verdict: str, cells: Sequence[Cell], among: Sequence[Cell], *, reason: str = "") -> KeyResult:
    where = f"{len(cells)} of {counted(len(among), 'cell')}"
    return KeyResult(verdict=verdict, step=name_cells(cells, among), where=where, reason=reason)


def _report_comparison(leading: RankedComparison, cells: Mapping[str, Cell]) -> KeyResult:
    comparison, change, growth = leading.comparison, leading.headline_change, leading.memory_growth
    baseline, candidate = cells[comparison.baseline], cells[comparison.candidate]
    return KeyResult(
        verdict=change.word,
        quantity=change.quantity,
        ratio=change.ratio,
        low=change.low,
        high=change.high,
        # The bounds of memory are the least and the largest of a round, which have no level.
        level=comparison.ci_level if growth is None else None,
        rounds=(growth or comparison).rounds,
        reason=comparison.reason or "",
        axis=comparison.axis,
        step=f"{_name_side(comparison.axis, baseline)} → {_name_side(comparison.axis, candidate)}",
        where=label.workload_label(candidate, without=comparison.axis),
        node=candidate.node or "",
    )


def _name_side(axis: str, cell: Cell) -> str:
    return BY_NAME[axis].label(cell) if axis in BY_NAME else cell.id


def _report_fastest(measured: Sequence[Cell], times: Times, *, n_planned: int) -> KeyResult:
    cell = min(map(times.with_compared_time, measured), key=lambda cell: cell.p50_ms or 0.0)
    others = ""
    if len(measured) > 1:
        others = f", the fastest of {len(measured)} measured cells"
    elif n_planned > 1:
        others = f", 1 of {n_planned} cells"
    return KeyResult(
        step=f"{BY_NAME['runtime'].label(cell)}{others}",
        where=label.workload_label(cell),
        node=cell.node or "",
        quantity="processor" if cell.id in times.by_processor else "",
        p50_ms=cell.p50_ms,
        p50_ci_ms=cell.p50_ci_ms,
    )


def _report_status(cells: Sequence[Cell]) -> KeyResult:
    statuses = [cell.status.value for cell in cells]
    if not statuses:
        return KeyResult()
    status = max(statuses, key=statuses.count)
    reason = next((cell.reason.text for cell in cells if cell.reason and cell.status == status), "")
    return KeyResult(verdict=status, step=f"none of {counted(len(statuses), 'cell')} measured", reason=reason)
