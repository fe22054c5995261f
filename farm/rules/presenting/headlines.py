"""Ranks the results of a run, to choose the one that headlines, lists, terminals and shared pages begin with.

The order is: wrong outputs; a slower release; a provider that did not start; other losses; gains; undecided
comparisons. Of several comparisons with one priority the largest change leads, and the page is then about its axis. A
gain with wrong outputs never leads. For cells that generate, a change of the prompt's time or of tokens per second
counts like one of the time per token. Resident memory that grew is a loss where nothing else is decided.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from farm.contract.cells import NO_POLICY
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.rules.cells import label
from farm.rules.cells.axes import ASKED_ORDER
from farm.rules.comparing.quantities import Change, change_of
from farm.rules.planning.blocks import TWIN
from farm.rules.presenting import metric_changes
from farm.rules.presenting.cell_counts import list_planned_cells
from farm.rules.presenting.lines import is_other_model, is_wrong, order_by_wrongness, why_wrong
from farm.rules.presenting.prefills import is_generated, list_prompt_and_rate_changes
from farm.rules.wording import numbers, titles
from farm.rules.wording.numbers import counted
from farm.rules.wording.vocabulary import rank, sign_of

# Along these axes inferences do different amounts of work, and times are not divided by them: longer is not worse.
WORK_AXES = ("concurrency", "shapes", "hardware")


class Priority(IntEnum):
    """How early a comparison is mentioned: the lowest comes first."""

    SLOWER_RELEASE = 0
    LOST_PROVIDER = 1
    OTHER_LOSS = 2
    GAIN = 3
    UNDECIDED = 4


@dataclass(frozen=True, slots=True)
class RankedComparison:
    """A comparison with its gravest change: the largest loss, or without a loss the largest gain.

    Where no change is decided, `change` is the comparison's own.
    `is_won_by_wrong` says that the better side has wrong outputs, so that the change does not count. `memory_growth` is
    the change of resident memory that grew, where nothing else is decided; None otherwise.
    """

    comparison: Comparison
    change: Change
    is_won_by_wrong: bool
    memory_growth: MetricChange | None = None

    @property
    def axis(self) -> str:
        return self.comparison.axis

    @property
    def headline_change(self) -> Change:
        """The change that a headline states: that of memory where that is what grew, else the gravest one."""
        growth = self.memory_growth
        if growth is None:
            return self.change
        return Change("memory", "bigger", growth.ratio, growth.ci_low, growth.ci_high)

    @property
    def priority(self) -> Priority:
        """The priority of the comparison. Along WORK_AXES no change counts as decided; memory that grew is a loss."""
        if self.memory_growth is not None:
            return Priority.OTHER_LOSS
        if not self.change.is_decided or self.axis in WORK_AXES:
            return Priority.UNDECIDED
        if self.change.is_gain:
            return Priority.GAIN
        return Priority.SLOWER_RELEASE if self.axis == "runtime" else Priority.OTHER_LOSS


@dataclass(frozen=True, slots=True)
class RankedResults:
    """The results that a run's page, sentence or list entry can begin with.

    `wrong_cells` have wrong outputs; `misplaced_cells` lack a provider that was asked for. `leading` is the comparison
    of the highest priority among those that count; None where none does. `comparisons` are all of them, in the order of
    the document. `are_misplaced_first` says that there are lost providers, and that they have a higher priority than
    `leading`, or that this is None.
    """

    wrong_cells: Sequence[Cell]
    misplaced_cells: Sequence[Cell]
    leading: RankedComparison | None
    comparisons: Sequence[RankedComparison]

    @property
    def axis(self) -> str:
        """The axis of the leading comparison, or else of the first one; empty without comparisons."""
        first = self.leading or next(iter(self.comparisons), None)
        return "" if first is None else first.axis

    @property
    def valid_comparisons(self) -> list[RankedComparison]:
        """The comparisons that count: those whose better side does not have wrong outputs."""
        return [ranked for ranked in self.comparisons if not ranked.is_won_by_wrong]

    @property
    def are_misplaced_first(self) -> bool:
        return bool(self.misplaced_cells) and (self.leading is None or self.leading.priority > Priority.LOST_PROVIDER)


def rank_results(comparisons: Sequence[Comparison], cells: Mapping[str, Cell]) -> RankedResults:
    """Rank the comparisons of a run, or of one of its cells; `cells` are the cells of the run by id.

    A/A pairs, and comparisons whose verdict is `not comparable`, are left out.
    """
    ranked = [_rank_comparison(comparison, cells) for comparison in comparisons if comparison.axis != TWIN]
    ranked = [entry for entry in ranked if entry.change.word != "not comparable"]
    planned = list_planned_cells(cells.values())
    other_models = {
        comparison.candidate
        for comparison in comparisons
        if is_other_model(comparison, cells.get(comparison.candidate))
    }
    return RankedResults(
        wrong_cells=[cell for cell in planned if is_wrong(cell) or cell.id in other_models],
        misplaced_cells=[cell for cell in planned if lost_providers(cell)],
        leading=min((entry for entry in ranked if not entry.is_won_by_wrong), key=_leading_order, default=None),
        comparisons=ranked,
    )


def _rank_comparison(comparison: Comparison, cells: Mapping[str, Cell]) -> RankedComparison:
    """Find a comparison's gravest change, whether it counts, and memory that grew where nothing else is decided."""
    change = _find_gravest_change(comparison, cells)
    baseline, candidate = cells.get(comparison.baseline), cells.get(comparison.candidate)
    better, worse = (candidate, baseline) if change.is_gain else (baseline, candidate)
    is_better_wrong = is_wrong(better, [comparison])
    # Where both sides are wrong, a loss counts and a gain does not.
    is_won_by_wrong = change.is_decided and is_better_wrong and (change.is_gain or not is_wrong(worse))
    memory_growth = None
    if not change.is_decided and not is_better_wrong and comparison.axis not in (*WORK_AXES, "batch"):
        memory = metric_changes.find_memory_change(comparison)
        memory_growth = memory if memory is not None and memory.verdict == "bigger" else None
    return RankedComparison(comparison, change, is_won_by_wrong, memory_growth)


def _find_gravest_change(comparison: Comparison, cells: Mapping[str, Cell]) -> Change:
    """Return the largest loss, or else the largest gain; the comparison's own change where none is decided.

    Besides the comparison's own change, those of the prompt's time and of tokens per second count for cells that
    generate.
    """
    own = change_of(comparison, cells)
    old, new = cells.get(comparison.baseline), cells.get(comparison.candidate)
    are_alike = old is not None and new is not None and old.scenario == new.scenario and is_generated(new)
    if not are_alike or own.quantity != "latency" or own.word == "not comparable":
        return own
    decided = [change for change in (own, *list_prompt_and_rate_changes(comparison)) if change.is_decided]
    return min(decided, key=lambda change: (change.is_gain, -change.size), default=own)


def _leading_order(ranked: RankedComparison) -> tuple[int, tuple[int, str], int, float]:
    """Order by priority, then undecided ones by the axis that readers ask for first, then by the larger change."""
    is_undecided = ranked.priority == Priority.UNDECIDED
    axis = axis_sort_key(ranked.axis) if is_undecided else (0, "")
    word = rank(ranked.change.word) if is_undecided else int(ranked.memory_growth is not None)
    return ranked.priority, axis, word, -ranked.headline_change.size


def axis_sort_key(axis: str) -> tuple[int, str]:
    return (ASKED_ORDER.index(axis) if axis in ASKED_ORDER else len(ASKED_ORDER), axis)


def lost_providers(cell: Cell) -> list[str]:
    """Return the providers that were asked for and did not start.

    The list is empty under a policy, since ONNX Runtime then chooses, and where it is not known which started.
    """
    if not cell.active_providers or cell.policy != NO_POLICY:
        return []
    return [name for name in cell.requested_providers or [cell.provider] if name not in cell.active_providers]


def describe_unmeasured(document: Document, results: RankedResults) -> str:
    """Say how many cells were refused and which failed; empty where nothing is compared, or there are no such cells."""
    if not results.comparisons:
        return ""
    planned = list_planned_cells(document.cells)
    refused = sum(cell.status == "refused" for cell in planned)
    parts = (
        [f"{refused} of {counted(len(planned), 'cell')} {'was' if refused == 1 else 'were'} refused"] if refused else []
    )
    if unfinished := describe_unfinished(planned):
        parts.append(unfinished)
    return f"{'; '.join(parts)}." if parts else ""


def describe_unfinished(cells: Sequence[Cell]) -> str:
    """Say how many cells failed, crashed or took too long, and which; empty where none did."""
    failed = [cell for cell in cells if sign_of(cell.status).tone == "bad"]
    return (
        f"{len(failed)} of {counted(len(cells), 'cell')} did not finish ({name_cells(failed, cells)})" if failed else ""
    )


def name_cells(cells: Collection[Cell], among: Iterable[Cell]) -> str:
    """Name cells by the first axis that distinguishes them from the other cells of `among`, or else by all that vary.

    A/A copies among the others are ignored. Long lists are shortened: `a, b and 4 more`.
    """
    ids = {cell.id for cell in cells}
    others = [cell for cell in among if cell.id not in ids and cell.twin_of is None]
    varying = label.varying_axes([*cells, *others])
    for axis in sorted(varying, key=lambda axis: axis_sort_key(axis.name)) if others else ():
        labels = {axis.label(cell): cell for cell in cells}
        if not labels.keys() & {axis.label(cell) for cell in others}:
            if axis.name == "runtime":
                return numbers.listed([titles.runtime_in_words(cell.runtime) for cell in labels.values()])
            return numbers.listed(list(labels))
    return numbers.listed(list(dict.fromkeys(label.label_along(cell, varying) for cell in cells)))


def explain_wrong(wrong: Sequence[Cell]) -> str:
    """Say why the outputs of the worst of these cells are wrong, with its name where the others have other reasons.

    Raises ValueError without cells.
    """
    worst = max(wrong, key=order_by_wrongness)
    has_one_reason = len({why_wrong(cell) for cell in wrong}) == 1
    return why_wrong(worst) if has_one_reason else f"{name_cells([worst], wrong)}: {why_wrong(worst)}"
