"""Formats a comparison as one line, and decides which outputs are wrong and which figures are processor time.

All figures of a line are of one quantity, over the same pairs of launches. The change is the paired estimate, and the
two values are the medians of the same launches. Where their quotient lies outside the change's interval, the values are
left out, and the line says why.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from farm.contract.document_cells import Accuracy, Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.evaluation import ACCURACY_LEVEL
from farm.rules.comparing.quantities import Change, change_of
from farm.rules.presenting import metric_changes
from farm.rules.quality.accuracy_metrics import metric_of
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import WRONG, WRONG_BASE, sign_of

PROCESSOR = "processor time"
UNITS = {"latency": "ms", "items": "items/s", "rate": "per s"}
OUTSIDE_LEFT_OUT = "left out, as it is more in the trace than an inference took when it was timed"
BUSY = "CPU time: this machine was busy"
# A failed parity does not count where labelled data exclude a larger loss of accuracy than this. Where they show a
# larger one, outputs are wrong.
MAX_LOSS = 0.02
# A cell without comparisons is shown by its processor time where more than this share of its launches was disturbed,
# and its time by the clock is more than this many times its processor time.
BUSY_SHARE, LENGTHENED = 1 / 3, 1.05


@dataclass(frozen=True, slots=True)
class ComparisonLine:
    """One comparison. `sides` are the formatted baseline and candidate; where they are left out, `why` says why.

    `wrong` says which side has wrong outputs; empty where none has.
    """

    change: Change
    quantity: str
    unit: str
    rounds: int
    sides: tuple[str, str] | None = None
    why: str = ""
    wrong: str = ""

    @property
    def words(self) -> str:
        """`▲ 19 % slower`, `= equal`, `? undecided`."""
        word = self.change.text if self.change.is_decided and self.change.figures else self.change.word
        return f"{sign_of(self.change.word).mark} {', '.join(filter(None, (word, self.wrong)))}"

    @property
    def values(self) -> str:
        """`0.520 → 0.880 ms`; empty where they are left out."""
        return f"{self.sides[0]} → {self.sides[1]} {self.unit}" if self.sides else ""

    @property
    def details(self) -> str:
        """The quantity, the interval, the number of rounds and why values are left out, separated by semicolons."""
        interval = f"95 % interval {self.change.interval}" if self.change.figures else ""
        parts = (self.quantity, interval, numbers.counted(self.rounds, "round"), self.why)
        return "; ".join(filter(None, parts))


def make_comparison_line(comparison: Comparison, cells: Mapping[str, Cell]) -> ComparisonLine:
    """Make the line of a comparison; `cells` are the known cells by id."""
    change = change_of(comparison, cells)
    quantities = {"items": "items per second", "rate": "highest rate that keeps the bound"}
    if is_by_processor(comparison):
        quantities |= {"latency": PROCESSOR, "items": f"items per second of {PROCESSOR}"}
    unit = UNITS[change.quantity]
    sides, why = _format_sides(_find_medians(comparison, change, cells), change, unit=unit)
    wrong = ""
    if is_wrong(cells.get(comparison.candidate), [comparison]):
        wrong = WRONG
    elif is_wrong(cells.get(comparison.baseline), [comparison]):
        wrong = WRONG_BASE
    return ComparisonLine(
        change, quantities.get(change.quantity, "p50 latency"), unit, comparison.rounds, sides, why, wrong
    )


def is_wrong(cell: Cell | None, compared: Iterable[Comparison] = ()) -> bool:
    """Whether a cell's outputs are wrong; False for None.

    Outputs are wrong where they fail parity, where labelled data show an excessive loss, or where the cell is the
    candidate of one of the comparisons with another model and its outputs differ from that model's.
    """
    if fails_parity(cell) or (cell is not None and has_excessive_loss(cell.accuracy)):
        return True
    return any(is_other_model(comparison, cell) for comparison in compared)


def judge_outputs(cell: Cell) -> str:
    """Return WRONG, `pass`, or the verdict of parity. Labelled data outrank parity in both directions."""
    if is_wrong(cell):
        return WRONG
    return "pass" if has_acceptable_loss(cell.accuracy) else cell.parity.verdict


def why_wrong(cell: Cell) -> str:
    """Return the sentence that says why a cell's outputs are wrong: that of parity, or else that of labelled data.

    Without either, return that of the first comparison with another cell's outputs that fails, or an empty string.
    """
    if fails_parity(cell):
        return cell.parity.text
    if cell.accuracy is not None and has_excessive_loss(cell.accuracy):
        return cell.accuracy.text
    return next((pair.text for pair in cell.engines if pair.verdict == "fail"), "")


def order_by_wrongness(cell: Cell) -> tuple[bool, float]:
    """Return a sort key for cells with wrong outputs, the worst last.

    The key is whether parity fails, then the largest difference of an output. Where parity does not fail, it is the
    lower end of the loss of accuracy.
    """
    if fails_parity(cell):
        differences = [
            inf if output.violations and output.max_abs is None else output.max_abs or 0.0
            for output in cell.parity.outputs
        ]
        return True, max(differences, default=inf)
    loss = find_accuracy_loss(cell.accuracy)
    return False, loss.interval[0] if loss is not None and loss.interval is not None else 0.0


def fails_parity(cell: Cell | None) -> bool:
    """Whether a cell fails parity, and labelled data do not show an acceptable loss; False for None."""
    return cell is not None and cell.parity.verdict == "fail" and not has_acceptable_loss(cell.accuracy)


def has_acceptable_loss(judged: Accuracy | None) -> bool:
    """Whether labelled data exclude, at 95 %, a loss of more than MAX_LOSS; False without such data."""
    loss = find_accuracy_loss(judged)
    return loss is not None and loss.interval is not None and loss.interval[1] <= MAX_LOSS


def has_excessive_loss(judged: Accuracy | None) -> bool:
    """Whether labelled data show, at 95 %, a loss of more than MAX_LOSS; False without such data."""
    loss = find_accuracy_loss(judged)
    return loss is not None and loss.interval is not None and loss.interval[0] > MAX_LOSS


class AccuracyLoss(NamedTuple):
    """A loss of accuracy as a fraction, negative for a gain, with its 95 % interval where there is one."""

    value: float
    interval: tuple[float, float] | None


def find_accuracy_loss(judged: Accuracy | None) -> AccuracyLoss | None:
    """Return the loss against the baseline: for a share, the difference; else, relative to the baseline's value.

    Return None where it was not measured, or the baseline's value is not above 0.
    """
    if judged is None or judged.value is None or judged.difference is None:
        return None
    unit = 1.0 if metric_of(judged).is_share else judged.value - judged.difference
    if unit <= 0:
        return None
    per_loss = -unit if judged.higher_is_better else unit
    low, high = judged.difference_low, judged.difference_high
    interval = None
    if low is not None and high is not None:
        ends = low / per_loss, high / per_loss
        interval = min(ends), max(ends)
    return AccuracyLoss(judged.difference / per_loss, interval)


def is_less_accurate(accuracy: Accuracy) -> bool:
    """Whether the paired test shows that the cell is less accurate than its FP32 cell; False without a test."""
    if accuracy.p is None or accuracy.difference is None or accuracy.p >= 1 - ACCURACY_LEVEL:
        return False
    return accuracy.difference < 0 if accuracy.higher_is_better else accuracy.difference > 0


def is_other_model(comparison: Comparison, cell: Cell | None) -> bool:
    """Whether a cell is the candidate of a comparison of two models, and its outputs differ from the baseline's."""
    if comparison.axis != "model" or cell is None or cell.id != comparison.candidate:
        return False
    return any(pair.cell == comparison.baseline and pair.verdict == "fail" for pair in cell.engines)


def is_by_processor(comparison: Comparison) -> bool:
    return comparison.verdict_from == "processor"


def is_disturbed(cell: Cell) -> bool:
    """Whether other programs disturbed more than BUSY_SHARE of the cell's launches."""
    return cell.disturbed_samples > BUSY_SHARE * len(cell.samples_ms)


def is_busy(cell: Cell) -> bool:
    """Whether other programs disturbed many launches of a cell and lengthened its time by the clock.

    Such a cell is shown by its processor time where it has no comparisons.
    """
    if cell.cpu_p50_ms is None or cell.p50_ms is None:
        return False
    return is_disturbed(cell) and cell.p50_ms > LENGTHENED * cell.cpu_p50_ms


def outside_us(cell: Cell) -> float | None:
    """Return the time that a traced inference spent outside operators, in µs.

    Return None where it is unknown, or longer than a whole timed inference: then other programs, or the profiler,
    delayed the trace.
    """
    timed_ms = cell.cpu_p50_ms if is_busy(cell) else cell.p50_ms
    if cell.unaccounted_us is None or (timed_ms is not None and cell.unaccounted_us > 1000 * timed_ms):
        return None
    return cell.unaccounted_us


def format_outside_times(sides: Sequence[Cell]) -> str:
    """Format the time outside operators: `40.0 → 41.2 µs`, or a note that it is left out.

    Return an empty string where a trace lacks it, and for fewer than two cells.
    """
    if len(sides) < 2 or any(cell.unaccounted_us is None for cell in sides):
        return ""
    times_us = [outside_us(cell) for cell in sides]
    return OUTSIDE_LEFT_OUT if None in times_us else f"{' → '.join(map(numbers.plain, times_us))} µs"


def format_items_per_s(cell: Cell) -> str:
    return numbers.rate(cell.throughput, cell.p50_ci_ms, time=cell.p50_ms)


def _format_sides(
    medians: tuple[float, float] | None, change: Change, *, unit: str
) -> tuple[tuple[str, str] | None, str]:
    """Return both formatted values and an empty text, or None and the reason why they are left out."""
    if medians is None or change.figures is None:
        return None, ""
    _, low, high = change.figures
    sides = numbers.format_divisible_pair(*medians, low=low, high=high, digits=numbers.SHOWN_PAIR_DIGITS)
    if sides is not None:
        return sides, ""
    baseline, candidate = (numbers.plain(value) for value in medians)
    values = f"{baseline} and {candidate} {unit}"
    return None, f"the medians, {values}, are apart otherwise than their pairs, so they are left out"


def _find_medians(comparison: Comparison, change: Change, cells: Mapping[str, Cell]) -> tuple[float, float] | None:
    """Return both medians over the launches that the change is computed from, in its unit; None if not known."""
    headline = metric_changes.find_headline_change(comparison)
    medians = (headline.baseline, headline.candidate) if headline is not None else _cell_medians(comparison, cells)
    if medians is None or change.quantity != "items":
        return medians
    if not all(medians):
        return None
    baseline, candidate = cells[comparison.baseline], cells[comparison.candidate]
    return _items_per_s(baseline, medians[0]), _items_per_s(candidate, medians[1])


def _items_per_s(cell: Cell, latency_ms: float) -> float:
    return (cell.batch or 1) * 1000.0 / latency_ms


def _cell_medians(comparison: Comparison, cells: Mapping[str, Cell]) -> tuple[float, float] | None:
    """Return both cells' own medians, over all their launches, of the time that the verdict rests on.

    Return None where the verdict rests on a rate, or a median is not known.
    """
    baseline, candidate = cells.get(comparison.baseline), cells.get(comparison.candidate)
    if comparison.verdict_from == "rate" or baseline is None or candidate is None:
        return None
    if is_by_processor(comparison):
        medians = baseline.cpu_p50_ms, candidate.cpu_p50_ms
    else:
        medians = baseline.p50_ms, candidate.p50_ms
    return None if medians[0] is None or medians[1] is None else (medians[0], medians[1])
