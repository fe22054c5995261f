"""Which time pages and charts tell of cells: the one that the verdicts beside them rest on. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isclose

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.judging.summaries import median_interval
from farm.rules.presenting.lines import PROCESSOR, is_busy, is_by_processor
from farm.rules.wording import numbers


@dataclass(frozen=True, slots=True)
class Times:
    """`by_processor`: ids of the cells of which processor time is told, because a verdict rests on it or other programs
    lengthened the time of the clock. Of all others it is the p50 latency."""

    by_processor: frozenset[str]

    @classmethod
    def of(cls, cells: Iterable[Cell], comparisons: Iterable[Comparison] = ()) -> "Times":
        """`comparisons`: those whose verdicts stand beside the cells; a cell without one speaks for itself."""
        sides: dict[bool, set[str]] = {True: set(), False: set()}
        for pair in comparisons:
            if pair.ratio is not None:
                sides[is_by_processor(pair)] |= {pair.baseline, pair.candidate}
        known = [cell for cell in cells if cell.p50_ms and cell.cpu_p50_ms]
        alone = {cell.id for cell in known if cell.id not in sides[False] and is_busy(cell)}
        return cls(frozenset({cell.id for cell in known} & sides[True] | alone))

    def told(self, cell: Cell) -> Cell:
        """The cell with that time, its interval and its launches in place of p50, and with the items per second that
        are worked out from it."""
        if cell.id not in self.by_processor or not cell.cpu_p50_ms or not cell.p50_ms:
            return cell
        changed: dict[str, object] = {
            "p50_ms": cell.cpu_p50_ms,
            "p50_ci_ms": median_interval(cell.cpu_samples_ms),
            "samples_ms": cell.cpu_samples_ms,
        }
        # under a load, and of concurrent streams, they are measured
        if isclose((cell.throughput or 0.0) * cell.p50_ms, 1000.0 * (cell.batch or 1), rel_tol=1e-6):
            changed["throughput"] = 1000.0 * (cell.batch or 1) / cell.cpu_p50_ms
        return cell.model_copy(update=changed)

    def title(self, cells: Sequence[Cell], clock: str = "p50") -> str:
        """What the times of these cells are called together, where those by the clock are called `clock`."""
        count = sum(cell.id in self.by_processor for cell in cells)
        return clock if not count else PROCESSOR if count == len(cells) else f"{clock} or {PROCESSOR}"

    def words(self, cell: Cell) -> str:
        """`0.228 ms ± 0.002`; `2.70 ms ± 0.05 of CPU time`."""
        told = self.told(cell)
        latency = numbers.latency(told.p50_ms, told.p50_ci_ms)
        return f"{latency} of CPU time" if cell.id in self.by_processor else latency


BY_CLOCK = Times(frozenset())


def latency_of(cell: Cell, comparisons: Iterable[Comparison] = ()) -> str:
    """A cell's latency in words, by the verdicts that stand beside it."""
    return Times.of([cell], comparisons).words(cell)
