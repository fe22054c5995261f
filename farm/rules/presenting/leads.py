"""What a run leads with, as figures for lists: the comparison that its headline is about."""

from farm.contract.base import Message
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.cells import label
from farm.rules.cells.axes import BY_NAME
from farm.rules.presenting.headlines import Standing, opening_of
from farm.rules.wording.numbers import counted


class Lead(Message):
    """What the leading comparison comes to (farm.rules.comparing.quantities.Change), and how sure that is.

    `step`: what is compared, `1.29.0 → 1.31.1`; `where`: with what both were measured. A run that compares nothing
    has no verdict: its `step` says what it measured, and the `p50_ms` and interval of its fastest cell stand beside
    it. A run that measured nothing has the fate of its cells as its verdict.
    """

    verdict: str = ""
    quantity: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    rounds: int = 0
    reason: str = ""
    step: str = ""
    where: str = ""
    node: str = ""
    p50_ms: float | None = None
    p50_ci_ms: tuple[float, float] | None = None


def lead_of(document: Document) -> Lead:
    """What the headline of this document is about."""
    cells = {cell.id: cell for cell in document.cells}
    leading = opening_of(document.comparisons, cells).lead
    if leading is not None:
        return _compared(leading, cells)
    own = [cell for cell in document.cells if cell.twin_of is None]
    measured = [(cell.p50_ms, cell) for cell in own if cell.p50_ms is not None]
    if not measured:
        return _nothing(own)
    # a cell whose outputs are wrong is not the fastest
    right = [one for one in measured if one[1].parity.verdict != "fail"] or measured
    return _single(min(right, key=lambda one: one[0])[1], measured=len(measured), of=len(own))


def _compared(leading: Standing, cells: dict[str, Cell]) -> Lead:
    comparison, change = leading.comparison, leading.change
    baseline, candidate = cells[comparison.baseline], cells[comparison.candidate]
    return Lead(
        verdict=change.word,
        quantity=change.quantity,
        ratio=change.ratio,
        low=change.low,
        high=change.high,
        level=comparison.ci_level,
        rounds=comparison.rounds,
        reason=comparison.reason or "",
        step=f"{_side(comparison.axis, baseline)} → {_side(comparison.axis, candidate)}",
        where=label.workload(candidate, without=comparison.axis),
        node=candidate.node or "",
    )


def _nothing(cells: list[Cell]) -> Lead:
    fates = [cell.status.value for cell in cells]
    if not fates:
        return Lead()
    fate = max(fates, key=fates.count)
    reason = next((cell.reason.text for cell in cells if cell.reason and cell.status == fate), "")
    return Lead(verdict=fate, step=f"none of {counted(len(fates), 'cell')} measured", reason=reason)


def _single(cell: Cell, *, measured: int, of: int) -> Lead:
    others = f", the fastest of {measured} measured cells" if measured > 1 else f", 1 of {of} cells" if of > 1 else ""
    return Lead(
        step=f"{BY_NAME['runtime'].label(cell)}{others}",
        where=label.workload(cell),
        node=cell.node or "",
        p50_ms=cell.p50_ms,
        p50_ci_ms=cell.p50_ci_ms,
    )


def _side(axis: str, cell: Cell) -> str:
    known = BY_NAME.get(axis)
    return known.label(cell) if known is not None else cell.id
