"""Decides which figures of cells are shown: those that the verdicts beside them rest on. Pure, and without numpy.

The one place that decides between processor time and the clock: pages, charts, terminals and headlines read it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells.metrics import BY_NAME, JUDGED, items_per_cpu_second
from farm.rules.comparing.signed_ranks import median_interval
from farm.rules.planning.blocks import TWIN
from farm.rules.presenting.lines import PROCESSOR, is_busy, is_by_processor, items_of
from farm.rules.presenting.metric_changes import OF_PROCESSOR, is_of_launches, list_further
from farm.rules.wording import numbers

# of metrics in these a busy machine has other figures by the clock
TIMED_UNITS = ("ms", "tokens/s", "items/s")
ITEMS = "throughput"


@dataclass(frozen=True, slots=True)
class Launched:
    """The median of a cell's launches in a metric beside its latency, and whether it is of processor time."""

    value: float
    is_processor: bool


@dataclass(frozen=True, slots=True)
class Times:
    """`by_processor`: ids of the cells of which processor time is told, because a verdict rests on it or other programs
    lengthened the time of the clock. Of all others it is the p50 latency. `launched`: of each cell, by the metric's
    name, what is told in place of its own figure, since its verdicts are of that."""

    by_processor: frozenset[str]
    launched: Mapping[str, Mapping[str, Launched]] = field(default_factory=dict)

    @classmethod
    def of(cls, cells: Iterable[Cell], comparisons: Iterable[Comparison] = ()) -> "Times":
        """Decide for each cell which time is shown.

        `comparisons` are those whose verdicts stand beside the cells; a cell's A/A pair counts only if it has no other.
        A cell without comparisons is decided by its own launches.
        """
        beside: dict[str, list[Comparison]] = {}
        for pair in sorted(comparisons, key=lambda pair: pair.axis == TWIN):
            for side in (pair.baseline, pair.candidate) if pair.ratio is not None else ():
                pairs = beside.setdefault(side, [])
                if pair.axis != TWIN or all(earlier.axis == TWIN for earlier in pairs):
                    pairs.append(pair)
        known = [cell for cell in cells if cell.p50_ms and cell.cpu_p50_ms]
        by_processor = {
            cell.id
            for cell in known
            if (any(map(is_by_processor, beside[cell.id])) if cell.id in beside else is_busy(cell))
        }
        return cls(frozenset(by_processor), {side: _launched(side, pairs) for side, pairs in beside.items()})

    def alike(self, cells: Iterable[Cell]) -> "Times":
        """Return the decision for cells that are compared with each other: processor time for all, where it is shown of
        one."""
        known = [cell for cell in cells if cell.p50_ms and cell.cpu_p50_ms]
        if self.by_processor.isdisjoint(cell.id for cell in known):
            return self
        return replace(self, by_processor=self.by_processor | {cell.id for cell in known})

    def with_compared_time(self, cell: Cell) -> Cell:
        """Return the cell with the shown time in place of its p50, with its interval, launches and items per second."""
        if cell.id not in self.by_processor or not cell.cpu_p50_ms or not cell.p50_ms:
            return cell
        changed: dict[str, object] = {
            "p50_ms": cell.cpu_p50_ms,
            "p50_ci_ms": median_interval(cell.cpu_samples_ms),
            "samples_ms": cell.cpu_samples_ms,
        }
        if (items := items_per_cpu_second(cell)) is not None:
            changed["throughput"] = items
        return cell.model_copy(update=changed)

    def whole(self, cell: Cell) -> Cell:
        """Return the cell with the shown time, and with the medians that its verdicts are of in place of its other
        figures."""
        launched = self.launched.get(cell.id, {})
        own = launched.keys() & Cell.model_fields.keys()
        changed: dict[str, object] = {name: launched[name].value for name in own}
        changed["metrics"] = [
            each.model_copy(update={"value": launched[each.name].value, "ci_low": None, "ci_high": None})
            if each.name in launched
            else each
            for each in cell.metrics
        ]
        return self.with_compared_time(cell).model_copy(update=changed) if launched else self.with_compared_time(cell)

    def is_processor(self, name: str, cell: Cell) -> bool:
        """Whether what is shown of a metric is processor time."""
        if name == JUDGED.name:
            return cell.id in self.by_processor
        if name == ITEMS:
            return cell.id in self.by_processor and items_per_cpu_second(cell) is not None
        found = self.launched.get(cell.id, {}).get(name)
        return found is not None and found.is_processor

    def heading(self, text: str, name: str, cells: Sequence[Cell]) -> str:
        """Return the heading of a metric of these cells: `session, processor time`.

        Of both kinds it is `session by the clock or processor time`; of a busy machine without processor time, `session
        by the clock`.
        """
        metric = BY_NAME[name]
        known = [cell for cell in cells if metric.value(cell) is not None]
        if metric.unit not in TIMED_UNITS or not any(cell.id in self.by_processor for cell in known):
            return text
        return heading_of(text, [self.is_processor(name, cell) for cell in known], is_p50=name == JUDGED.name)

    def find_marked(self, name: str, cells: Sequence[Cell]) -> frozenset[str]:
        """Return the ids of the cells of which a metric is processor time while it is not of others."""
        known = [cell for cell in cells if BY_NAME[name].value(cell) is not None]
        found = frozenset(cell.id for cell in known if self.is_processor(name, cell))
        return found if len(found) < len(known) else frozenset()

    def title(self, cells: Sequence[Cell], clock: str = "p50") -> str:
        return title_of([cell.id in self.by_processor for cell in cells], clock)

    def words(self, cell: Cell) -> str:
        """Format the cell's shown latency: `0.228 ms ± 0.002`; `2.70 ms ± 0.05 of CPU time`."""
        told = self.with_compared_time(cell)
        latency = numbers.latency(told.p50_ms, told.p50_ci_ms)
        return f"{latency} of CPU time" if cell.id in self.by_processor else latency


BY_CLOCK = Times(frozenset())


def title_of(by_processor: Sequence[bool], clock: str = "p50") -> str:
    """Name times together, each of which is processor time or not."""
    count = sum(by_processor)
    return clock if not count else PROCESSOR if count == len(by_processor) else f"{clock} or {PROCESSOR}"


def heading_of(text: str, by_processor: Sequence[bool], *, is_p50: bool = False) -> str:
    """Return the heading of figures of a busy machine, each of processor time or not."""
    count = sum(by_processor)
    if count == len(by_processor):
        return f"{text}, {PROCESSOR}"
    clock = text if is_p50 else f"{text} by the clock"
    return f"{clock} or {PROCESSOR}" if count else clock


def items_words(cell: Cell, *, is_processor: bool) -> str:
    is_of_it = is_processor and items_per_cpu_second(cell) is not None
    return f"{items_of(cell)} items/s{' of CPU time' if is_of_it else ''}"


def items_text(cell: Cell, comparisons: Iterable[Comparison]) -> str:
    times = Times.of([cell], comparisons)
    return items_words(times.with_compared_time(cell), is_processor=cell.id in times.by_processor)


def latency_of(cell: Cell, comparisons: Iterable[Comparison] = ()) -> str:
    return Times.of([cell], comparisons).words(cell)


def _launched(side: str, pairs: Sequence[Comparison]) -> dict[str, Launched]:
    """Return the medians, on this side, that the verdicts of these pairs are of."""
    found: dict[str, Launched] = {}
    for pair in pairs:
        for change in list_further(pair):
            name = OF_PROCESSOR.get(change.name, change.name) if is_by_processor(pair) else change.name
            if name != change.name or is_of_launches(change):
                value = change.baseline if pair.baseline == side else change.candidate
                found.setdefault(name, Launched(value, change.is_processor or name != change.name))
    return found
