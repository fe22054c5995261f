"""The figures of what a run leads with, which are stored with the run and shown in lists of runs."""

from collections.abc import Mapping, Sequence
from typing import cast, get_args

from farm.contract.base import Message
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.verdicts import Word
from farm.rules.cells import label
from farm.rules.cells.axes import BY_NAME
from farm.rules.comparing.quantities import Change, Quantity
from farm.rules.presenting.cell_counts import list_own
from farm.rules.presenting.headlines import (
    RankedComparison,
    describe_unfinished,
    explain_wrong,
    find_opening,
    name_cells,
)
from farm.rules.presenting.times import Times
from farm.rules.wording.numbers import counted
from farm.rules.wording.vocabulary import ELSEWHERE, WRONG


class Lead(Message):
    """What a run leads with.

    It is one of four: the leading comparison, from `quantity` to `rounds`, with the `axis` and `step` that it compares
    (`1.29.0 → 1.31.1`) and `where` both sides were measured; cells with wrong outputs or lost providers, which are then
    the `verdict`, and `step` names them; the fastest cell of a run that compares nothing, with `p50_ms` and its
    interval, in processor time where `quantity` says so; or, where nothing was measured, the status of most cells.
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


def find_lead(document: Document) -> Lead:
    """Find what a run leads with, in the order that `headlines` has; an empty lead for a run without cells."""
    own = list_own(document.cells)
    measured = [cell for cell in own if cell.p50_ms is not None]
    lead = _choose_lead(document, own, measured)
    return lead.model_copy(update={"unfinished": describe_unfinished(own)}) if measured else lead


def _choose_lead(document: Document, own: Sequence[Cell], measured: Sequence[Cell]) -> Lead:
    cells = {cell.id: cell for cell in document.cells}
    opening = find_opening(document.comparisons, cells)
    if opening.wrong_cells:
        return _lead_with_cells(WRONG, opening.wrong_cells, measured, reason=explain_wrong(opening.wrong_cells))
    if opening.are_misplaced_first:
        ran = [cell for cell in own if cell.active_providers]
        return _lead_with_cells(ELSEWHERE, opening.misplaced_cells, ran)
    if opening.lead is not None:
        return _lead_with_comparison(opening.lead, cells)
    if measured:
        return _lead_with_fastest(measured, Times.of(measured, document.comparisons), planned=len(own))
    return _lead_with_status(own)


def _lead_with_cells(verdict: str, cells: Sequence[Cell], among: Sequence[Cell], *, reason: str = "") -> Lead:
    where = f"{len(cells)} of {counted(len(among), 'cell')}"
    return Lead(verdict=verdict, step=name_cells(cells, among), where=where, reason=reason)


def _lead_with_comparison(lead: RankedComparison, cells: Mapping[str, Cell]) -> Lead:
    comparison, change, growth = lead.comparison, lead.headline_change, lead.memory_growth
    baseline, candidate = cells[comparison.baseline], cells[comparison.candidate]
    return Lead(
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


def _lead_with_fastest(measured: Sequence[Cell], times: Times, *, planned: int) -> Lead:
    cell = min(map(times.with_compared_time, measured), key=lambda cell: cell.p50_ms or 0.0)
    others = ""
    if len(measured) > 1:
        others = f", the fastest of {len(measured)} measured cells"
    elif planned > 1:
        others = f", 1 of {planned} cells"
    return Lead(
        step=f"{BY_NAME['runtime'].label(cell)}{others}",
        where=label.workload_label(cell),
        node=cell.node or "",
        quantity="processor" if cell.id in times.by_processor else "",
        p50_ms=cell.p50_ms,
        p50_ci_ms=cell.p50_ci_ms,
    )


def _lead_with_status(cells: Sequence[Cell]) -> Lead:
    statuses = [cell.status.value for cell in cells]
    if not statuses:
        return Lead()
    status = max(statuses, key=statuses.count)
    reason = next((cell.reason.text for cell in cells if cell.reason and cell.status == status), "")
    return Lead(verdict=status, step=f"none of {counted(len(statuses), 'cell')} measured", reason=reason)
