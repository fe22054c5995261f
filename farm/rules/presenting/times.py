"""Decides which figures of cells are shown: those that the verdicts beside them rest on.

This is the one place that decides between processor time and the clock: pages, charts, terminals and headlines read it.
The module needs no numpy.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells.metrics import BY_NAME, JUDGED, items_per_cpu_second
from farm.rules.comparing.signed_ranks import median_interval
from farm.rules.planning.blocks import TWIN
from farm.rules.presenting.lines import PROCESSOR, format_items_per_s, is_busy, is_by_processor
from farm.rules.presenting.metric_changes import OF_PROCESSOR, list_secondary_changes, replaces_cell_figures
from farm.rules.wording import numbers

# Metrics in these units differ between the clock and processor time when other programs keep the machine busy.
TIMED_UNITS = ("ms", "tokens/s", "items/s")
ITEMS = "throughput"


@dataclass(frozen=True, slots=True)
class LaunchMedian:
    """The median of a cell's launches in a metric other than its latency, and whether it is processor time."""

    value: float
    is_processor: bool


@dataclass(frozen=True, slots=True)
class Times:
    """Which figures of cells to show.

    `by_processor` has the ids of the cells that are shown by processor time, because a verdict rests on it or because
    other programs lengthened their time by the clock. `medians` replace figures of a cell that its verdicts do not rest
    on, by the cell's id and then by the name of the metric.
    """

    by_processor: frozenset[str]
    medians: Mapping[str, Mapping[str, LaunchMedian]] = field(default_factory=dict)

    @classmethod
    def of(cls, cells: Iterable[Cell], comparisons: Iterable[Comparison] = ()) -> "Times":
        """Decide which figures of each cell are shown.

        `comparisons` are those whose verdicts stand beside the cells; a cell's A/A pair counts only if it has no other,
        and one without a ratio never. A cell without comparisons is decided by its own launches. A cell without a
        processor time is shown by the clock.
        """
        compared: dict[str, list[Comparison]] = {}
        # A/A pairs come last, so that they count only for cells without other pairs
        for pair in sorted(comparisons, key=lambda pair: pair.axis == TWIN):
            for side in (pair.baseline, pair.candidate) if pair.ratio is not None else ():
                pairs = compared.setdefault(side, [])
                if pair.axis != TWIN or all(earlier.axis == TWIN for earlier in pairs):
                    pairs.append(pair)
        by_processor = {
            cell.id
            for cell in cells
            if cell.p50_ms and cell.cpu_p50_ms
            if (any(map(is_by_processor, compared[cell.id])) if cell.id in compared else is_busy(cell))
        }
        return cls(frozenset(by_processor), {side: _find_medians(side, pairs) for side, pairs in compared.items()})

    def with_same_clock(self, cells: Iterable[Cell]) -> "Times":
        """Return the decision for cells that are compared with each other.

        Where one of them is shown by processor time, all that have a processor time are; otherwise nothing changes.
        """
        ids = {cell.id for cell in cells if cell.p50_ms and cell.cpu_p50_ms}
        return self if self.by_processor.isdisjoint(ids) else replace(self, by_processor=self.by_processor | ids)

    def with_compared_time(self, cell: Cell) -> Cell:
        """Return the cell with the shown time in place of its p50, with its interval, launches and items per second.

        A cell that is shown by the clock is unchanged.
        """
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

    def with_compared_figures(self, cell: Cell) -> Cell:
        """Return the cell with the shown time, and with `medians` in place of the same metrics of the cell.

        A replaced metric has no interval.
        """
        cell, medians = self.with_compared_time(cell), self.medians.get(cell.id, {})
        changed: dict[str, object] = {name: medians[name].value for name in medians.keys() & Cell.model_fields.keys()}
        changed["metrics"] = [
            metric.model_copy(update={"value": medians[metric.name].value, "ci_low": None, "ci_high": None})
            if metric.name in medians
            else metric
            for metric in cell.metrics
        ]
        return cell.model_copy(update=changed) if medians else cell

    def is_processor(self, name: str, cell: Cell) -> bool:
        """Whether the value that is shown for the metric `name` is processor time."""
        if name == JUDGED.name:
            return cell.id in self.by_processor
        if name == ITEMS:
            return cell.id in self.by_processor and items_per_cpu_second(cell) is not None
        median = self.medians.get(cell.id, {}).get(name)
        return median is not None and median.is_processor

    def heading(self, text: str, name: str, cells: Sequence[Cell]) -> str:
        """Return the heading of a metric of these cells, whose title is `text`: `session, processor time`.

        Where only some of the values are processor time, it is `session by the clock or processor time`; where a busy
        machine has no processor time for the metric, `session by the clock`. It is `text` alone where no cell is shown
        by processor time, and for metrics that a busy machine does not change.
        """
        metric = BY_NAME[name]
        measured = [cell for cell in cells if metric.value(cell) is not None]
        if metric.unit not in TIMED_UNITS or not any(cell.id in self.by_processor for cell in measured):
            return text
        return metric_heading(text, [self.is_processor(name, cell) for cell in measured], is_p50=name == JUDGED.name)

    def find_processor_exceptions(self, name: str, cells: Sequence[Cell]) -> frozenset[str]:
        """Return the ids of the cells whose value is processor time while that of others is not, else an empty set."""
        measured = [cell for cell in cells if BY_NAME[name].value(cell) is not None]
        ids = frozenset(cell.id for cell in measured if self.is_processor(name, cell))
        return ids if len(ids) < len(measured) else frozenset()

    def title(self, cells: Sequence[Cell], clock: str = "p50") -> str:
        return clock_title([cell.id in self.by_processor for cell in cells], clock)

    def format_latency(self, cell: Cell) -> str:
        """Format the cell's shown latency: `0.228 ms ± 0.002`; `2.70 ms ± 0.05 of CPU time`."""
        compared = self.with_compared_time(cell)
        latency = numbers.latency(compared.p50_ms, compared.p50_ci_ms)
        return f"{latency} of CPU time" if cell.id in self.by_processor else latency


# shows every cell by the clock
BY_CLOCK = Times(frozenset())


def clock_title(by_processor: Sequence[bool], clock: str = "p50") -> str:
    """Return the title of several times, each of which is processor time or by the clock: `p50 or processor time`."""
    if not any(by_processor):
        return clock
    return PROCESSOR if all(by_processor) else f"{clock} or {PROCESSOR}"


def metric_heading(text: str, by_processor: Sequence[bool], *, is_p50: bool = False) -> str:
    """Return the heading of figures of a busy machine, each of which is processor time or by the clock.

    `is_p50` means that `text` names the clock already, so that `by the clock` is left out.
    """
    if all(by_processor):
        return f"{text}, {PROCESSOR}"
    clock = text if is_p50 else f"{text} by the clock"
    return f"{clock} or {PROCESSOR}" if any(by_processor) else clock


def format_items(cell: Cell, *, is_processor: bool) -> str:
    clock = " of CPU time" if is_processor and items_per_cpu_second(cell) is not None else ""
    return f"{format_items_per_s(cell)} items/s{clock}"


def format_compared_items(cell: Cell, comparisons: Iterable[Comparison]) -> str:
    times = Times.of([cell], comparisons)
    return format_items(times.with_compared_time(cell), is_processor=cell.id in times.by_processor)


def format_latency(cell: Cell, comparisons: Iterable[Comparison] = ()) -> str:
    return Times.of([cell], comparisons).format_latency(cell)


def _find_medians(side: str, pairs: Sequence[Comparison]) -> dict[str, LaunchMedian]:
    """Return this side's medians that the verdicts of these pairs rest on, by the name of the metric they replace.

    Where several pairs have a median for a metric, the first counts.
    """
    medians: dict[str, LaunchMedian] = {}
    for pair in pairs:
        for change in list_secondary_changes(pair):
            name = OF_PROCESSOR.get(change.name, change.name) if is_by_processor(pair) else change.name
            if name != change.name or replaces_cell_figures(change):
                value = change.baseline if pair.baseline == side else change.candidate
                medians.setdefault(name, LaunchMedian(value, change.is_processor or name != change.name))
    return medians
