"""The limits that a setting must keep to be an answer: budgets, right outputs, and a proven accuracy."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from farm.contract.document_cells import Cell
from farm.rules.comparing.comparisons import MARGIN
from farm.rules.presenting.hardware import FAULTS, find_fault
from farm.rules.presenting.lines import has_acceptable_loss, has_excessive_loss, why_wrong
from farm.rules.quality import accuracy_metrics
from farm.rules.wording.numbers import MIB, NOT_MEASURED, memory, plain

Budget = Literal["p50", "p99", "memory", "accuracy", "outputs"]
Keeping = Literal["kept", "open", "broken"]


class Judgement(NamedTuple):
    """Whether a cell keeps a budget: `open` if that is not known. `text` has its value and the limit, or the fault."""

    budget: Budget
    keeping: Keeping
    text: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The budgets that a setting must keep; None means no budget.

    `has_labels` says that outputs are judged on labelled data or by the user's function. `has_tolerance` says that they
    are judged by a tolerance that the user gave.
    """

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
        """Return the first budget that a short block shows to be broken, or None. A busy block does not judge times.

        The order is memory, accuracy, outputs, p50, p99.
        Outputs that are wrong or untimed, or that another provider computed, count as a broken budget.
        """
        judgements = list(self._judge_single_launch(cell))
        if not is_busy:
            judgements += self._judge_early_times(cell)
        return next((judgement for judgement in judgements if judgement.keeping == "broken"), None)

    def is_in_time(self, cell: Cell) -> bool:
        """Whether a short block leaves no doubt that the cell keeps its budgets of time; True without such a budget."""
        return all(judgement.keeping == "kept" for judgement in self._judge_early_times(cell))

    def explain_unproven(self, cell: Cell) -> str:
        """Say why it is unknown whether the cell keeps a budget that a single launch decides; empty where it is known.

        These budgets are all but those of time. It is mostly the accuracy of the outputs that is unknown.
        """
        judgements = self._judge_single_launch(cell)
        return next((judgement.text for judgement in judgements if judgement.keeping == "open"), "")

    def judge_budgets(self, cell: Cell, *, is_busy: bool = False) -> list[Judgement]:
        """Judge every budget that the user gave, by a final block.

        Times are judged by both ends of their interval, the p99 by that of the p50, scaled; they stay open where the
        machine was busy. The accuracy of a lower precision is judged even without a budget. Outputs have a judgement
        only where they are wrong or untimed, or where another provider computed them.
        """
        times = self._judge_times(cell)
        if is_busy:
            times = (time._replace(keeping="open") for time in times)
        return [*self._judge_single_launch(cell), *times]

    def _judge_single_launch(self, cell: Cell) -> Iterator[Judgement]:
        """Judge the budgets that a single launch decides: all but those of time."""
        size = cell.peak_memory_bytes
        if self.max_memory_bytes is not None:
            text = f"{memory(size)}, {self.max_memory_bytes / MIB:.4g} MiB asked for"
            yield Judgement("memory", _judge_interval(size, size, self.max_memory_bytes), text)

        yield from self._judge_accuracy(cell)

        fault, accuracy = find_fault(cell), None if cell.accuracy is None else cell.accuracy.value
        # a budget of accuracy replaces parity as the judge of the outputs
        is_accuracy_judged = self.min_accuracy is not None and accuracy is not None
        if fault in ("elsewhere", "untimed") or (fault == "wrong" and not is_accuracy_judged):
            yield Judgement("outputs", "broken", why_wrong(cell) if fault == "wrong" else FAULTS[fault])

    def _judge_accuracy(self, cell: Cell) -> Iterator[Judgement]:
        """Judge the accuracy by its budget; without one judge only lower precisions, by labels or a tolerance."""
        accuracy, text = cell.accuracy, self._describe_accuracy(cell)
        if accuracy is not None and accuracy.value is not None and self.min_accuracy is not None:
            # the signs make it an interval of which less is better
            sign = -1.0 if accuracy.higher_is_better else 1.0
            ends = [accuracy.value if end is None else end for end in (accuracy.ci_low, accuracy.ci_high)]
            low, high = sorted(sign * end for end in ends)
            keeping = _judge_interval(low, high, sign * self.min_accuracy)
            yield Judgement("accuracy", keeping, f"{text}, {self.min_accuracy:g} asked for")
        elif self.min_accuracy is not None:
            yield Judgement("accuracy", "open", text)
        elif self.has_labels and cell.precision != "fp32":
            loss: Keeping = (
                "broken" if has_excessive_loss(accuracy) else "kept" if has_acceptable_loss(accuracy) else "open"
            )
            yield Judgement("accuracy", loss, text)
        elif cell.precision != "fp32" and not (self.has_tolerance and cell.parity.verdict == "pass"):
            yield Judgement("accuracy", "open", cell.parity.text or "its outputs were not judged")

    def _describe_accuracy(self, cell: Cell) -> str:
        accuracy = cell.accuracy
        if accuracy is None or accuracy.value is None:
            return f"accuracy {NOT_MEASURED}" if accuracy is None else accuracy.text
        metric = accuracy_metrics.metric_of(accuracy)
        difference = metric.format_difference(accuracy) if self.min_accuracy is None else ""
        return ", ".join(filter(None, (f"{metric.title} {metric.format_with_interval(accuracy)}", difference)))

    def _judge_early_times(self, cell: Cell) -> Iterator[Judgement]:
        """Judge the times of a few launches, each of which may be wrong by MARGIN; a single launch leaves them open."""
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
        # The p99 has no interval: the interval of p50 is scaled to it.
        scale = cell.p99_ms / cell.p50_ms if cell.p99_ms and cell.p50_ms else None
        low, high = (end * scale if end is not None and scale is not None else None for end in (low, high))
        yield from _judge_time("p99", cell.p99_ms, (low, high), self.max_p99_ms)


def _judge_interval(low: float | None, high: float | None, limit: float) -> Keeping:
    if low is None or high is None:
        return "open"
    return "kept" if high <= limit else "broken" if low > limit else "open"


def _judge_time(
    budget: Budget, value: float | None, ends: tuple[float | None, float | None], limit: float | None
) -> Iterator[Judgement]:
    """Judge a time by the ends of its interval; nothing where there is no limit."""
    if limit is not None:
        text = f"{budget} {plain(value, unit='ms')}, {limit:g} ms asked for"
        yield Judgement(budget, _judge_interval(*ends, limit), text)
