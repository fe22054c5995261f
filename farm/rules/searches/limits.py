"""What a setting has to keep to be an answer: budgets, right outputs, and a judge of what a lower precision loses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from farm.contract.document_cells import Cell
from farm.rules.comparing.comparisons import MARGIN
from farm.rules.presenting.hardware import FAULTS, find_fault
from farm.rules.presenting.lines import BUSY_SHARE, has_acceptable_loss, has_excessive_loss, why_wrong
from farm.rules.quality import accuracy_metrics
from farm.rules.wording.numbers import MIB, NOT_MEASURED, memory, plain

Budget = Literal["p50", "p99", "memory", "accuracy", "outputs"]
Keeping = Literal["kept", "open", "broken"]


class Judgement(NamedTuple):
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

    def find_broken(self, cell: Cell, *, is_busy: bool = False) -> Judgement | None:
        """Return the first budget that a short block proves to be broken, or None. A busy block proves no times.

        Outputs that are wrong or untimed, or that another provider computed, count as a broken budget.
        """
        judgements = (*self._judge_lasting(cell), *(() if is_busy else self._judge_early_times(cell)))
        return next((judgement for judgement in judgements if judgement.keeping == "broken"), None)

    def is_in_time(self, cell: Cell) -> bool:
        """Whether a short block leaves no doubt that its times keep their budgets."""
        return all(judgement.keeping == "kept" for judgement in self._judge_early_times(cell))

    def explain_unproven(self, cell: Cell) -> str:
        """Say why nobody knows whether the cell's outputs are accurate enough; empty where that is known."""
        return next((judgement.words for judgement in self._judge_lasting(cell) if judgement.keeping == "open"), "")

    def judge_budgets(self, cell: Cell, *, is_busy: bool = False) -> list[Judgement]:
        """Judge by a final block every budget that was asked for.

        Times are judged by both ends of their interval, and stay open where the machine was busy. The accuracy of a
        lower precision is judged unasked; outputs have a judgement only where they are wrong or untimed, or ran
        elsewhere.
        """
        times = self._judge_times(cell)
        return [*self._judge_lasting(cell), *(time._replace(keeping="open") if is_busy else time for time in times)]

    def _judge_lasting(self, cell: Cell) -> Iterator[Judgement]:
        """Judge the budgets that a single launch decides."""
        size = cell.peak_memory_bytes
        if self.max_memory_bytes is not None:
            words = f"{memory(size)}, {self.max_memory_bytes / MIB:.4g} MiB asked for"
            yield Judgement("memory", _judge_interval(size, size, self.max_memory_bytes), words)
        yield from self._judge_accuracy(cell)
        fault = find_fault(cell)
        # a wanted accuracy replaces parity as the judge of the outputs
        is_own = self.min_accuracy is not None and cell.accuracy is not None and cell.accuracy.value is not None
        if fault in ("elsewhere", "untimed") or (fault == "wrong" and not is_own):
            yield Judgement("outputs", "broken", why_wrong(cell) if fault == "wrong" else FAULTS[fault])

    def _judge_accuracy(self, cell: Cell) -> Iterator[Judgement]:
        accuracy, words = cell.accuracy, self._describe_accuracy(cell)
        if accuracy is not None and accuracy.value is not None and self.min_accuracy is not None:
            # an interval is judged as one of which less is better
            sign = -1.0 if accuracy.higher_is_better else 1.0
            ends = [accuracy.value if end is None else end for end in (accuracy.ci_low, accuracy.ci_high)]
            low, high = sorted(sign * end for end in ends)
            keeping = _judge_interval(low, high, sign * self.min_accuracy)
            yield Judgement("accuracy", keeping, f"{words}, {self.min_accuracy:g} asked for")
        elif self.min_accuracy is not None:
            yield Judgement("accuracy", "open", words)
        elif self.has_labels and cell.precision != "fp32":
            loss: Keeping = (
                "broken" if has_excessive_loss(accuracy) else "kept" if has_acceptable_loss(accuracy) else "open"
            )
            yield Judgement("accuracy", loss, words)
        elif cell.precision != "fp32" and not (self.has_tolerance and cell.parity.verdict == "pass"):
            yield Judgement("accuracy", "open", cell.parity.text or "its outputs were not judged")

    def _describe_accuracy(self, cell: Cell) -> str:
        accuracy = cell.accuracy
        if accuracy is None or accuracy.value is None:
            return f"accuracy {NOT_MEASURED}" if accuracy is None else accuracy.text
        metric = accuracy_metrics.metric_of(accuracy)
        difference = metric.format_difference(accuracy) if self.min_accuracy is None else ""
        return ", ".join(filter(None, (f"{metric.title} {metric.format_reached(accuracy)}", difference)))

    def _judge_early_times(self, cell: Cell) -> Iterator[Judgement]:
        """Judge the times of a few launches, each of which may be wrong by the margin. A single one shows nothing."""
        low = high = None
        if len(cell.samples_ms) > 1:
            low, high = min(cell.samples_ms) / (1.0 + MARGIN), max(cell.samples_ms) * (1.0 + MARGIN)
        yield from _judge_time("p50", cell.p50_ms, (low, high), self.max_p50_ms)
        if high is not None and cell.p99_ms is not None:
            high = max(high, cell.p99_ms * (1.0 + MARGIN))
        yield from _judge_time("p99", cell.p99_ms or cell.p50_ms, (low, high), self.max_p99_ms)

    def _judge_times(self, cell: Cell) -> Iterator[Judgement]:
        low, high = cell.p50_ci_ms or (None, None)
        yield from _judge_time("p50", cell.p50_ms, (low, high), self.max_p50_ms)
        # all timings together have no interval of their own: it is as wide as that of the launches
        scale = cell.p99_ms / cell.p50_ms if cell.p99_ms and cell.p50_ms else None
        low, high = (end * scale if end is not None and scale is not None else None for end in (low, high))
        yield from _judge_time("p99", cell.p99_ms, (low, high), self.max_p99_ms)


def is_disturbed(cell: Cell) -> bool:
    return cell.disturbed_samples > BUSY_SHARE * len(cell.samples_ms)


def _judge_interval(low: float | None, high: float | None, limit: float) -> Keeping:
    if low is None or high is None:
        return "open"
    return "kept" if high <= limit else "broken" if low > limit else "open"


def _judge_time(
    budget: Budget, value: float | None, ends: tuple[float | None, float | None], limit: float | None
) -> Iterator[Judgement]:
    """Judge a time by the ends of its interval; nothing where there is no limit."""
    if limit is not None:
        words = f"{budget} {plain(value, unit='ms')}, {limit:g} ms asked for"
        yield Judgement(budget, _judge_interval(*ends, limit), words)
