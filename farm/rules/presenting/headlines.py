"""What leads: the one rule by which runs, lists, terminals and shared pages choose what they open with. Pure.

Wrong outputs; slower by release; a provider that did not start; other losses; gains; then what is open. Of comparisons
the largest of its kind leads, and the page is about its axis alone. A gain of wrong outputs is praised nowhere. Where
cells generate, the prompt and all tokens per second count as the time per token does. Resident memory that grew is a
loss where nothing else is decided.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from farm.contract.base import Message
from farm.contract.cells import NO_POLICY
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.contract.verdicts import Word
from farm.rules.cells import label
from farm.rules.cells.axes import ASKED_ORDER, BY_NAME
from farm.rules.comparing.quantities import Change, Quantity, change_of
from farm.rules.planning.blocks import TWIN
from farm.rules.presenting import metric_changes
from farm.rules.presenting.cell_counts import list_own
from farm.rules.presenting.lines import how_far_off, is_other_model, is_wrong, why_wrong
from farm.rules.presenting.prefills import is_generated, list_changes
from farm.rules.presenting.times import Times
from farm.rules.wording import numbers, titles
from farm.rules.wording.numbers import counted
from farm.rules.wording.vocabulary import ELSEWHERE, WRONG, rank, sign_of

# Along these another amount of work is done at a time, with nothing to divide it by: more time for it is no news.
WORK_AXES = ("concurrency", "shapes", "hardware")
# of what leads, in this order
SLOWER_RELEASE, LOST_PLACEMENT, OTHER_LOSS, GAIN, OPEN = range(5)


@dataclass(frozen=True, slots=True)
class Standing:
    """A comparison with the gravest change that it shows. `is_right`: no side wins by wrong outputs."""

    comparison: Comparison
    change: Change
    is_right: bool
    grown: MetricChange | None = None

    @property
    def axis(self) -> str:
        return self.comparison.axis

    @property
    def heading(self) -> Change:
        """What it leads with."""
        if self.grown is None:
            return self.change
        return Change("memory", "bigger", self.grown.ratio, self.grown.ci_low, self.grown.ci_high)

    @property
    def kind(self) -> int:
        """Its place in the order of what leads: SLOWER_RELEASE, OTHER_LOSS, GAIN or OPEN."""
        if self.grown is not None:
            return OTHER_LOSS
        if not self.change.is_decided or self.axis in WORK_AXES:
            return OPEN
        if self.change.is_gain:
            return GAIN
        return SLOWER_RELEASE if self.axis == "runtime" else OTHER_LOSS


@dataclass(frozen=True, slots=True)
class Opening:
    """What a run is told by. `wrong`: cells whose outputs are; `elsewhere`: cells that ran on another provider than was
    asked for; `lead`: the comparison that leads, of `standings`; `left_out`: those that wrong outputs won."""

    wrong: Sequence[Cell]
    elsewhere: Sequence[Cell]
    lead: Standing | None
    standings: Sequence[Standing]
    left_out: Sequence[Standing]

    @property
    def axis(self) -> str:
        found = self.lead or next(iter(self.left_out), None)
        return "" if found is None else found.axis

    @property
    def is_elsewhere_first(self) -> bool:
        return bool(self.elsewhere) and (self.lead is None or self.lead.kind > LOST_PLACEMENT)


def find_opening(comparisons: Sequence[Comparison], cells: Mapping[str, Cell]) -> Opening:
    """Find what leads among the comparisons of a run, or of one cell.

    `cells` are the cells by id.
    """
    known = [_standing(comparison, cells) for comparison in comparisons if comparison.axis != TWIN]
    known = [standing for standing in known if standing.change.word != "not comparable"]
    own = list_own(cells.values())
    others = {
        comparison.candidate
        for comparison in comparisons
        if is_other_model(comparison, cells.get(comparison.candidate))
    }
    return Opening(
        wrong=[cell for cell in own if is_wrong(cell) or cell.id in others],
        elsewhere=[cell for cell in own if lost_providers(cell)],
        lead=min((standing for standing in known if standing.is_right), key=_order, default=None),
        standings=known,
        left_out=[standing for standing in known if not standing.is_right],
    )


def lost_providers(cell: Cell) -> list[str]:
    """Return the providers that were asked for and did not start; none under a policy, where ONNX Runtime chooses."""
    if not cell.active_providers or cell.policy != NO_POLICY:
        return []
    return [name for name in cell.requested_providers or [cell.provider] if name not in cell.active_providers]


def count_unmeasured(document: Document, found: Opening) -> str:
    """Say how many cells were refused and which failed, beside comparisons; empty without comparisons."""
    if found.lead is None and not found.left_out:
        return ""
    own = list_own(document.cells)
    refused, unfinished = sum(cell.status == "refused" for cell in own), _unfinished(own)
    said = [f"{refused} of {counted(len(own), 'cell')} {'was' if refused == 1 else 'were'} refused"] if refused else []
    said += [unfinished] if unfinished else []
    return f"{'; '.join(said)}." if said else ""


def _unfinished(own: Sequence[Cell]) -> str:
    failed = [cell for cell in own if sign_of(cell.status).tone == "bad"]
    return f"{len(failed)} of {counted(len(own), 'cell')} did not finish ({named(failed, own)})" if failed else ""


def named(some: Collection[Cell], among: Collection[Cell]) -> str:
    """Name cells by their settings: by the one axis that sets them apart from the others, or else by all that
    differ."""
    ids = {cell.id for cell in some}
    others = [cell for cell in among if cell.id not in ids and cell.twin_of is None]
    along = label.varying_axes([*some, *others])
    for axis in sorted(along, key=lambda axis: axis_rank(axis.name)) if others else ():
        texts = {axis.label(cell): cell for cell in some}
        if not texts.keys() & {axis.label(cell) for cell in others}:
            by_release = axis.name == "runtime"
            return numbers.listed(
                [titles.runtime_in_words(texts[text].runtime) if by_release else text for text in texts]
            )
    return numbers.listed(list(dict.fromkeys(label.label_along(cell, along) for cell in some)))


def explain_wrong(wrong: Sequence[Cell]) -> str:
    """Say what shows that outputs are wrong, of the cell that is furthest off: by its name where others are less so."""
    worst = max(wrong, key=how_far_off)
    is_like_all = len({why_wrong(cell) for cell in wrong}) == 1
    return why_wrong(worst) if is_like_all else f"{named([worst], wrong)}: {why_wrong(worst)}"


def axis_rank(axis: str) -> tuple[int, str]:
    return (ASKED_ORDER.index(axis) if axis in ASKED_ORDER else len(ASKED_ORDER), axis)


def _standing(comparison: Comparison, cells: Mapping[str, Cell]) -> Standing:
    change = _gravest(comparison, cells)
    better, other = (
        (comparison.candidate, comparison.baseline) if change.is_gain else (comparison.baseline, comparison.candidate)
    )
    # of two sides that are wrong alike, a loss stands
    is_bad = is_wrong(cells.get(better), [comparison])
    is_won = change.is_decided and is_bad and (change.is_gain or not is_wrong(cells.get(other)))
    is_told = not (change.is_decided or is_bad or comparison.axis in (*WORK_AXES, "batch"))
    memory = metric_changes.find_memory_change(comparison) if is_told else None
    grown = memory if memory is not None and memory.verdict == "bigger" else None
    return Standing(comparison, change, is_right=not is_won, grown=grown)


def _gravest(comparison: Comparison, cells: Mapping[str, Cell]) -> Change:
    """Return the largest loss, or else the largest gain, of a token, the prompt and both; or else its own verdict."""
    own = change_of(comparison, cells)
    old, new = cells.get(comparison.baseline), cells.get(comparison.candidate)
    are_alike = old is not None and new is not None and old.scenario == new.scenario and is_generated(new)
    if not are_alike or own.quantity != "latency" or own.word == "not comparable":
        return own
    decided = [change for change in (own, *list_changes(comparison)) if change.is_decided]
    return min(decided, key=lambda change: (change.is_gain, -change.size), default=own)


def _order(standing: Standing) -> tuple[int, tuple[int, str], int, float]:
    """Sort by kind; what is open by the axis that readers ask for first; then by the larger change."""
    is_open = standing.kind == OPEN
    asked = axis_rank(standing.axis) if is_open else (0, "")
    place = rank(standing.change.word) if is_open else int(standing.grown is not None)
    return standing.kind, asked, place, -standing.heading.size


class Lead(Message):
    """What the leading comparison comes to (farm.rules.comparing.quantities.Change), and how sure that is.

    `step`: what is compared, `1.29.0 → 1.31.1`, along `axis`; `where`: with what both were measured. A run that
    compares nothing has no verdict: its `step` says what it measured, and the `p50_ms` and interval of its fastest cell
    stand beside it, of processor time where `quantity` says so. A run that measured nothing has the fate of its cells
    as its verdict, one with wrong outputs or providers that did not start has those, and its `step` names the settings.
    `unfinished`: which settings of a run that measured something failed.
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
    unfinished: str = ""
    p50_ms: float | None = None
    p50_ci_ms: tuple[float, float] | None = None

    @property
    def change(self) -> Change:
        quantity = self.quantity if self.quantity in get_args(Quantity) else "latency"
        return Change(cast(Quantity, quantity), cast(Word, self.verdict), self.ratio, self.low, self.high)


def find_lead(document: Document) -> Lead:
    """Return what the headline of this document is about."""
    own = list_own(document.cells)
    measured = [cell for cell in own if cell.p50_ms is not None]
    lead = _leading(document, own, measured)
    return lead.model_copy(update={"unfinished": _unfinished(own)}) if measured else lead


def _leading(document: Document, own: list[Cell], measured: Sequence[Cell]) -> Lead:
    cells = {cell.id: cell for cell in document.cells}
    opening = find_opening(document.comparisons, cells)
    if opening.wrong:
        return _marked(WRONG, opening.wrong, measured, reason=explain_wrong(opening.wrong))
    if opening.is_elsewhere_first:
        return _marked(ELSEWHERE, opening.elsewhere, [cell for cell in own if cell.active_providers])
    if opening.lead is not None:
        return _compared(opening.lead, cells)
    if not measured:
        return _nothing(own)
    times = Times.of(measured, document.comparisons)
    fastest = min(map(times.with_compared_time, measured), key=lambda cell: cell.p50_ms or 0.0)
    return _single(fastest, times, measured=len(measured), of=len(own))


def _marked(verdict: str, some: Sequence[Cell], own: Sequence[Cell], *, reason: str = "") -> Lead:
    where = f"{len(some)} of {counted(len(own), 'cell')}"
    return Lead(verdict=verdict, step=named(some, own), where=where, reason=reason)


def _compared(leading: Standing, cells: dict[str, Cell]) -> Lead:
    comparison, change, grown = leading.comparison, leading.heading, leading.grown
    baseline, candidate = cells[comparison.baseline], cells[comparison.candidate]
    return Lead(
        verdict=change.word,
        quantity=change.quantity,
        ratio=change.ratio,
        low=change.low,
        high=change.high,
        # of memory the least and the largest of a round
        level=comparison.ci_level if grown is None else None,
        rounds=(grown or comparison).rounds,
        reason=comparison.reason or "",
        axis=comparison.axis,
        step=f"{_side(comparison.axis, baseline)} → {_side(comparison.axis, candidate)}",
        where=label.workload_label(candidate, without=comparison.axis),
        node=candidate.node or "",
    )


def _nothing(cells: list[Cell]) -> Lead:
    fates = [cell.status.value for cell in cells]
    if not fates:
        return Lead()
    fate = max(fates, key=fates.count)
    reason = next((cell.reason.text for cell in cells if cell.reason and cell.status == fate), "")
    return Lead(verdict=fate, step=f"none of {counted(len(fates), 'cell')} measured", reason=reason)


def _single(cell: Cell, times: Times, *, measured: int, of: int) -> Lead:
    """Return the lead of a run that compares nothing: a cell with its time."""
    others = f", the fastest of {measured} measured cells" if measured > 1 else f", 1 of {of} cells" if of > 1 else ""
    return Lead(
        step=f"{BY_NAME['runtime'].label(cell)}{others}",
        where=label.workload_label(cell),
        node=cell.node or "",
        quantity="processor" if cell.id in times.by_processor else "",
        p50_ms=cell.p50_ms,
        p50_ci_ms=cell.p50_ci_ms,
    )


def _side(axis: str, cell: Cell) -> str:
    known = BY_NAME.get(axis)
    return known.label(cell) if known is not None else cell.id
