"""What a run leads with, as figures for lists: what its headline is about (farm.rules.presenting.headlines)."""

from collections.abc import Sequence
from typing import cast, get_args

from farm.contract.base import Message
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.verdicts import Word
from farm.rules.cells import label
from farm.rules.cells.axes import BY_NAME
from farm.rules.comparing.quantities import Change, Quantity
from farm.rules.presenting.headlines import Standing, named, opening_of
from farm.rules.presenting.lines import is_busy
from farm.rules.wording.numbers import counted
from farm.rules.wording.vocabulary import ELSEWHERE, WRONG


class Lead(Message):
    """What the leading comparison comes to (farm.rules.comparing.quantities.Change), and how sure that is.

    `step`: what is compared, `1.29.0 → 1.31.1`; `where`: with what both were measured. A run that compares nothing
    has no verdict: its `step` says what it measured, and the `p50_ms` and interval of its fastest cell stand beside
    it, of processor time where `quantity` says so. A run that measured nothing has the fate of its cells as its
    verdict, one with wrong outputs or providers that did not start has those, and its `step` names the settings.
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

    @property
    def change(self) -> Change:
        """The same as a change; of one without a verdict, of latency."""
        quantity = self.quantity if self.quantity in get_args(Quantity) else "latency"
        return Change(cast(Quantity, quantity), cast(Word, self.verdict), self.ratio, self.low, self.high)


def lead_of(document: Document) -> Lead:
    """What the headline of this document is about."""
    cells = {cell.id: cell for cell in document.cells}
    own = [cell for cell in document.cells if cell.twin_of is None]
    opening = opening_of(document.comparisons, cells)
    measured = [cell for cell in own if cell.p50_ms is not None]
    if opening.wrong:
        return _marked(WRONG, opening.wrong, measured, reason=opening.wrong[0].parity.text)
    if opening.is_elsewhere_first:
        return _marked(ELSEWHERE, opening.elsewhere, [cell for cell in own if cell.active_providers])
    if opening.lead is not None:
        return _compared(opening.lead, cells)
    if not measured:
        return _nothing(own)
    return _single(min(measured, key=lambda cell: cell.p50_ms or 0.0), measured=len(measured), of=len(own))


def _marked(verdict: str, some: Sequence[Cell], own: Sequence[Cell], *, reason: str = "") -> Lead:
    """A run of which some cells have to be known of before any figure."""
    where = f"{len(some)} of {counted(len(own), 'cell')}"
    return Lead(verdict=verdict, step=named(some, own), where=where, reason=reason)


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
        quantity="processor" if is_busy(cell) else "",
        p50_ms=cell.cpu_p50_ms if is_busy(cell) else cell.p50_ms,
        p50_ci_ms=None if is_busy(cell) else cell.p50_ci_ms,
    )


def _side(axis: str, cell: Cell) -> str:
    known = BY_NAME.get(axis)
    return known.label(cell) if known is not None else cell.id
