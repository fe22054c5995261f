"""Formats a comparison as one line: everything on it is of one quantity, over the same pairs of launches. Pure.

The change is the paired estimate. The two values beside it are the medians of the same launches; where a reader who
divides them would get something that the change's interval leaves out, they are left out and the line says why.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from farm.contract.document_cells import Accuracy, Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.evaluation import ACCURACY_LEVEL
from farm.rules.comparing.quantities import Change, change_of
from farm.rules.presenting import metric_changes
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import WRONG, WRONG_BASE, sign_of

PROCESSOR = "processor time"
UNITS = {"latency": "ms", "items": "items/s", "rate": "per s"}
OUTSIDE_LEFT_OUT = "left out, as it is more in the trace than an inference took when it was timed"
BUSY = "CPU time: this machine was busy"
# what labelled data may lose before they stop to outrank parity; outputs that surely lost more are wrong
MAX_LOSS = 0.02
# a lone cell is busy from so many of its launches on, and from so much longer a time of the clock
BUSY_SHARE, LENGTHENED = 1 / 3, 1.05


@dataclass(frozen=True, slots=True)
class Line:
    """One comparison. `quantity`: what everything on the line is of; `sides`: baseline and candidate as written, empty
    where they are left out, and then `why` says the reason. `wrong`: whose outputs are; empty where nobody's are."""

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
        known = [self.quantity, f"95 % interval {self.change.interval}" if self.change.figures else ""]
        return "; ".join(part for part in (*known, numbers.counted(self.rounds, "round"), self.why) if part)


def line_of(comparison: Comparison, cells: Mapping[str, Cell]) -> Line:
    """Return the line of a comparison; `cells` are the known cells by id."""
    change = change_of(comparison, cells)
    title = {"items": "items per second", "rate": "highest rate that keeps the bound"}
    if is_by_processor(comparison):
        title |= {"latency": PROCESSOR, "items": f"items per second of {PROCESSOR}"}
    unit = UNITS[change.quantity]
    sides, why = _sides(_medians(comparison, change, cells), change, unit=unit)
    quantity = title.get(change.quantity, "p50 latency")
    base, candidate = (is_wrong(cells.get(side), [comparison]) for side in (comparison.baseline, comparison.candidate))
    wrong = WRONG if candidate else WRONG_BASE if base else ""
    return Line(change, quantity, unit, comparison.rounds, sides, why, wrong)


def is_wrong(cell: Cell | None, compared: Iterable[Comparison] = ()) -> bool:
    """Whether its outputs fail parity, or labelled data show that it lost too much accuracy, or they are of another
    model than that of the base of one of these comparisons."""
    is_own = fails_parity(cell) or (cell is not None and is_loss_shown(cell.accuracy))
    return is_own or any(is_other_model(comparison, cell) for comparison in compared)


def outputs_of(cell: Cell) -> str:
    """Return what its outputs are known to be: WRONG, `pass`, or the verdict of parity.

    Labelled data outrank parity: they can make outputs wrong or right against it.
    """
    if is_wrong(cell):
        return WRONG
    return "pass" if is_as_accurate(cell.accuracy) else cell.parity.verdict


def why_wrong(cell: Cell) -> str:
    """Say what shows that its outputs are wrong: parity, labelled data, or the outputs of another model; empty where
    nothing."""
    if fails_parity(cell):
        return cell.parity.text
    if cell.accuracy is not None and is_loss_shown(cell.accuracy):
        return cell.accuracy.text
    return next((pair.text for pair in cell.engines if pair.verdict == "fail"), "")


def how_far_off(cell: Cell) -> tuple[bool, float]:
    """Return what wrong outputs are ordered by: a failed parity by its largest difference, before a lost accuracy."""
    if fails_parity(cell):
        outputs = cell.parity.outputs
        apart = [inf if out.violations and out.max_abs is None else out.max_abs or 0.0 for out in outputs]
        return True, max(apart, default=inf)
    return False, (_losses(cell.accuracy) or (0.0,))[0]


def fails_parity(cell: Cell | None) -> bool:
    """Whether its outputs fail parity, and labelled data do not show that it is as accurate as before."""
    return cell is not None and cell.parity.verdict == "fail" and not is_as_accurate(cell.accuracy)


def is_as_accurate(judged: Accuracy | None) -> bool:
    """Whether labelled data exclude, at 95 %, a loss of more than MAX_LOSS."""
    lost = _losses(judged)
    return lost is not None and lost[1] <= MAX_LOSS


def is_loss_shown(judged: Accuracy | None) -> bool:
    """Whether labelled data show, at 95 %, a loss of more than MAX_LOSS."""
    lost = _losses(judged)
    return lost is not None and lost[0] > MAX_LOSS


def _losses(judged: Accuracy | None) -> tuple[float, float] | None:
    """The ends of the interval of what was lost: points, or of an error its part."""
    if judged is None or judged.value is None or judged.difference is None:
        return None
    low, high = judged.difference_low, judged.difference_high
    if low is None or high is None:
        return None
    if judged.higher_is_better:
        return -high, -low
    before = judged.value - judged.difference
    return (low / before, high / before) if before > 0 else None


def is_less_accurate(accuracy: Accuracy) -> bool:
    """Whether the paired test shows that the cell does worse than its FP32 cell."""
    if accuracy.p is None or accuracy.difference is None or accuracy.p >= 1 - ACCURACY_LEVEL:
        return False
    return accuracy.difference < 0 if accuracy.higher_is_better else accuracy.difference > 0


def is_other_model(comparison: Comparison, cell: Cell | None) -> bool:
    """Whether a cell is of another model, whose outputs are not those of the base that it is compared with."""
    if comparison.axis != "model" or cell is None or cell.id != comparison.candidate:
        return False
    return any(pair.cell == comparison.baseline and pair.verdict == "fail" for pair in cell.engines)


def is_by_processor(comparison: Comparison) -> bool:
    return comparison.verdict_from == "processor"


def is_busy(cell: Cell) -> bool:
    """Whether a cell that stands alone is told by its processor time.

    That is where other programs took a part of most launches, and lengthened the time of the clock.
    """
    if cell.cpu_p50_ms is None or cell.p50_ms is None:
        return False
    is_disturbed = cell.disturbed_samples > BUSY_SHARE * len(cell.samples_ms)
    return is_disturbed and cell.p50_ms > LENGTHENED * cell.cpu_p50_ms


def outside_us(cell: Cell) -> float | None:
    """Return the part of its traced inference outside operators, in µs.

    Return None where it is unknown, or more than a timed inference took: then other programs held up the trace, or the
    profiler did.
    """
    timed = cell.cpu_p50_ms if is_busy(cell) else cell.p50_ms
    is_known = cell.unaccounted_us is not None and (timed is None or cell.unaccounted_us <= 1000 * timed)
    return cell.unaccounted_us if is_known else None


def outside_words(sides: Sequence[Cell]) -> str:
    """Format the time outside operators: `40.0 → 41.2 µs`, or say that it is left out; empty where a trace lacks it."""
    if len(sides) < 2 or any(cell.unaccounted_us is None for cell in sides):
        return ""
    left = [outside_us(cell) for cell in sides]
    return OUTSIDE_LEFT_OUT if None in left else f"{' → '.join(map(numbers.plain, left))} µs"


def items_of(cell: Cell) -> str:
    """Format its items per second, with no more digits than the interval of its p50 allows."""
    return numbers.rate(cell.throughput, cell.p50_ci_ms, time=cell.p50_ms)


def _sides(medians: tuple[float, float] | None, change: Change, *, unit: str) -> tuple[tuple[str, str] | None, str]:
    """Both values as they are written; else none, and why."""
    if medians is None or change.figures is None:
        return None, ""
    _, low, high = change.figures
    sides = numbers.format_divisible_pair(*medians, low=low, high=high)
    if sides is not None:
        return sides, ""
    old, new = (numbers.plain(value) for value in medians)
    return None, f"the medians, {old} and {new} {unit}, are apart otherwise than their pairs, so they are left out"


def _medians(comparison: Comparison, change: Change, cells: Mapping[str, Cell]) -> tuple[float, float] | None:
    """Return the medians of the same launches as the change, in its unit; None where no document has them."""
    headline = metric_changes.find(metric_changes.headline_of(comparison), comparison)
    medians = (headline.baseline, headline.candidate) if headline is not None else _of_cells(comparison, cells)
    if medians is None or change.quantity != "items":
        return medians
    if not all(medians):
        return None
    old, new = (
        (cells[side].batch or 1) * 1000.0 / ms
        for side, ms in zip((comparison.baseline, comparison.candidate), medians, strict=True)
    )
    return old, new


def _of_cells(comparison: Comparison, cells: Mapping[str, Cell]) -> tuple[float, float] | None:
    """Return the cells' own medians of the same quantity, over all their launches."""
    if comparison.verdict_from == "rate" or not {comparison.baseline, comparison.candidate} <= cells.keys():
        return None
    old, new = (
        cell.cpu_p50_ms if is_by_processor(comparison) else cell.p50_ms
        for cell in (cells[comparison.baseline], cells[comparison.candidate])
    )
    return None if old is None or new is None else (old, new)
