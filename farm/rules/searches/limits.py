"""What a setting has to keep to be an answer: budgets, right outputs, and a judge of what a lower precision loses."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

from farm.contract.document_cells import Cell
from farm.rules.comparing.comparisons import MARGIN
from farm.rules.presenting.hardware import FAULTS, fault_of
from farm.rules.presenting.lines import BUSY_SHARE, is_as_accurate, is_loss_shown, why_wrong
from farm.rules.quality import accuracy_metrics
from farm.rules.wording.numbers import MIB, NOT_MEASURED, memory, plain

Budget = Literal["p50", "p99", "memory", "accuracy", "outputs"]
Keeping = Literal["kept", "open", "broken"]


class Judged(NamedTuple):
    """Whether a cell keeps a budget. `words`: what it has, and what was asked for."""

    budget: Budget
    keeping: Keeping
    words: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The budgets that a setting has to keep; None is no budget. `has_labels`: outputs are judged on labelled data or
    by the user's own function; `has_tolerance`: they are judged by a tolerance that the user gave."""

    max_p50_ms: float | None = None
    max_p99_ms: float | None = None
    max_memory_bytes: float | None = None
    min_accuracy: float | None = None
    has_labels: bool = False
    has_tolerance: bool = False

    @property
    def has_judge(self) -> bool:
        return self.has_labels or self.has_tolerance

    def find_broken(self, cell: Cell, *, is_busy: bool = False) -> Judged | None:
        """Return the first budget that a short block proves to be broken, or None. A busy block proves no times."""
        found = (*self._judge_lasting(cell), *(() if is_busy else self._judge_early_times(cell)))
        return next((judged for judged in found if judged.keeping == "broken"), None)

    def explain_unproven(self, cell: Cell) -> str:
        """Say why nobody knows whether the cell's outputs are accurate enough; empty where that is known."""
        return next((found.words for found in self._judge_lasting(cell) if found.keeping == "open"), "")

    def judge_budgets(self, cell: Cell, *, is_busy: bool = False) -> list[Judged]:
        """Judge every budget by a final block. Times are judged by both ends of their interval, and stay open where the
        machine was busy."""
        times = self._judge_times(cell)
        return [*self._judge_lasting(cell), *(found._replace(keeping="open") if is_busy else found for found in times)]

    def _judge_lasting(self, cell: Cell) -> Iterator[Judged]:
        """Judge the budgets that a single launch decides."""
        size = cell.peak_memory_bytes
        if self.max_memory_bytes is not None:
            words = f"{memory(size)}, {self.max_memory_bytes / MIB:.4g} MiB asked for"
            yield Judged("memory", _within(size, size, size, self.max_memory_bytes), words)
        yield from self._judge_accuracy(cell)
        fault = fault_of(cell)
        # a wanted accuracy replaces parity as the judge of the outputs
        is_own = self.min_accuracy is not None and cell.accuracy is not None and cell.accuracy.value is not None
        if fault in ("elsewhere", "untimed") or (fault == "wrong" and not is_own):
            yield Judged("outputs", "broken", why_wrong(cell) if fault == "wrong" else FAULTS[fault])

    def _judge_accuracy(self, cell: Cell) -> Iterator[Judged]:
        judged = cell.accuracy
        if judged is not None and judged.value is not None and self.min_accuracy is not None:
            low, high = judged.ci_low, judged.ci_high
            sign = 1.0 if judged.higher_is_better else -1.0
            ends = sorted(sign * (judged.value if end is None else end) for end in (low, high))
            keeping = _within(-sign * judged.value, -ends[1], -ends[0], -sign * self.min_accuracy)
            yield Judged("accuracy", keeping, f"{self._describe_accuracy(cell)}, {self.min_accuracy:g} asked for")
        elif self.min_accuracy is not None or (self.has_labels and cell.precision != "fp32"):
            shown: Keeping = "broken" if is_loss_shown(judged) else "kept" if is_as_accurate(judged) else "open"
            yield Judged("accuracy", shown if self.min_accuracy is None else "open", self._describe_accuracy(cell))
        elif cell.precision != "fp32" and not (self.has_tolerance and cell.parity.verdict == "pass"):
            yield Judged("accuracy", "open", cell.parity.text or "its outputs were not judged")

    def _describe_accuracy(self, cell: Cell) -> str:
        if cell.accuracy is None or cell.accuracy.value is None:
            return cell.accuracy.text if cell.accuracy is not None else f"accuracy {NOT_MEASURED}"
        metric = accuracy_metrics.metric_of(cell.accuracy)
        beside = metric.format_difference(cell.accuracy) if self.min_accuracy is None else ""
        interval = metric.format_interval(cell.accuracy.ci_low, cell.accuracy.ci_high)
        said = f"{metric.title} {metric.format_value(cell.accuracy.value)}{f' ({interval})' if interval else ''}"
        return f"{said}, {beside}" if beside else said

    def _judge_early_times(self, cell: Cell) -> Iterator[Judged]:
        """Judge the times of a few launches: a budget is broken where each launch is beyond it by the margin."""
        shortest = min(cell.samples_ms, default=0.0) / (1.0 + MARGIN)
        if len(cell.samples_ms) < 2:
            return
        if self.max_p50_ms is not None and shortest > self.max_p50_ms:
            yield Judged("p50", "broken", _times_words(cell.p50_ms, self.max_p50_ms))
        if self.max_p99_ms is not None and shortest > self.max_p99_ms:
            yield Judged("p99", "broken", _times_words(cell.p99_ms or cell.p50_ms, self.max_p99_ms, "p99"))

    def _judge_times(self, cell: Cell) -> Iterator[Judged]:
        p50 = cell.p50_ms
        low, high = cell.p50_ci_ms or (0.0, inf)
        if self.max_p50_ms is not None:
            yield Judged("p50", _within(p50, low, high, self.max_p50_ms), _times_words(p50, self.max_p50_ms))
        if self.max_p99_ms is not None:
            # all timings together have no interval of their own: it is as wide as that of the launches
            low, high = (end * (cell.p99_ms or 0.0) / p50 if p50 else end for end in (low, high))
            keeping = _within(cell.p99_ms, low, high, self.max_p99_ms)
            yield Judged("p99", keeping, _times_words(cell.p99_ms, self.max_p99_ms, "p99"))


def is_disturbed(cell: Cell) -> bool:
    return cell.disturbed_samples > BUSY_SHARE * len(cell.samples_ms)


def _within(value: float | None, low: float | None, high: float | None, limit: float) -> Keeping:
    if value is None or low is None or high is None:
        return "open"
    return "kept" if high <= limit else "broken" if low > limit else "open"


def _times_words(value: float | None, limit: float, budget: str = "p50") -> str:
    return f"{budget} {plain(value, unit='ms')}, {limit:g} ms asked for"
