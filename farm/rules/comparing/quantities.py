"""In which quantity a comparison is told: latency, the highest rate where a load looks for it, items per second where
its two sides have different batches; of cells that generate also the prompt, and all tokens per second.

More items take more time, so that a latency of batch 8 against one of batch 1 says nothing by itself. The items per
second of a cell are batch / p50, therefore their ratio and its interval are those of latency turned round, times the
ratio of the batches. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log, log1p
from typing import Literal

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.verdicts import ItemsVerdict, Word
from farm.rules.comparing.comparisons import MARGIN
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import GAINS, is_change

Quantity = Literal["latency", "items", "rate", "prefill", "tokens", "memory"]
_WORDS: Mapping[Quantity, numbers.Words] = {
    "latency": numbers.TIMES,
    "items": ("more", "fewer"),
    "rate": ("higher", "lower"),
    "prefill": numbers.TIMES,
    "tokens": ("higher", "lower"),
    "memory": ("bigger", "smaller"),
}
_UNITS: Mapping[Quantity, str] = {"items": " items/s", "rate": " rate", "prefill": " prefill", "tokens": " tokens/s"}
_OF_RATES: Mapping[Word, Word] = {"slower": "lower", "faster": "higher"}
# From the 95 % interval to those at which a block decides: 99 % for a change, 97.5 % for equality, of eight rounds
# (Student's t with 7 degrees of freedom: 3.499 / 2.365 and 2.841 / 2.365; with more rounds it is less).
TO_CHANGE, TO_EQUAL = 1.48, 1.2


@dataclass(frozen=True, slots=True)
class Change:
    """What a comparison comes to. `ratio`, `low`, `high`: candidate / baseline of the quantity; None: no figures."""

    quantity: Quantity
    word: Word
    ratio: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def figures(self) -> tuple[float, float, float] | None:
        """Ratio and interval, where there are all three."""
        if self.ratio is None or self.low is None or self.high is None:
            return None
        return self.ratio, self.low, self.high

    @property
    def unit(self) -> str:
        return _UNITS.get(self.quantity, "") if self.is_decided else ""

    @property
    def words(self) -> numbers.Words:
        return _WORDS[self.quantity]

    @property
    def text(self) -> str:
        """By how much: `19 % slower`, `3.25× more items/s`; empty without figures."""
        if self.ratio is None:
            return ""
        size = numbers.change(self.ratio, self.low, self.high, words=self.words)
        return f"{size}{_UNITS.get(self.quantity, '')}"

    @property
    def amount(self) -> str:
        """The same without direction, for a word that says it: `19 %`."""
        return "" if self.ratio is None else numbers.change_size(self.ratio, self.low, self.high)

    @property
    def interval(self) -> str:
        is_directed = self.is_decided
        return numbers.change_interval(self.low, self.high, ratio=self.ratio, words=self.words, is_directed=is_directed)

    @property
    def size(self) -> float:
        return abs(log(self.ratio)) if self.ratio else 0.0

    @property
    def is_decided(self) -> bool:
        return is_change(self.word)

    @property
    def is_gain(self) -> bool:
        return self.word in GAINS


def change_of(comparison: Comparison, cells: Mapping[str, Cell]) -> Change:
    """What a comparison comes to; without the two cells, what it says of latency."""
    baseline, candidate = cells.get(comparison.baseline), cells.get(comparison.candidate)
    if baseline is None or candidate is None:
        return Change("latency", comparison.verdict, comparison.ratio, comparison.ci_low, comparison.ci_high)
    return change_between(comparison, baseline, candidate)


def change_between(comparison: Comparison, baseline: Cell, candidate: Cell) -> Change:
    """The same, of these two cells. Different models that were not measured for that are never judged."""
    are_apart = not is_same_model(baseline, candidate) and comparison.axis != "model"
    word: Word = "not comparable" if are_apart else comparison.verdict
    own = Change("latency", word, comparison.ratio, comparison.ci_low, comparison.ci_high)
    if comparison.verdict_from == "rate":
        return _of_rate(own)
    times = items_factor(baseline, candidate)
    if times is None:
        return own
    if own.figures is None or word == "not comparable":
        return Change("items", word)
    ratio, low, high = (times / end for end in (own.ratio or 1.0, own.high or 1.0, own.low or 1.0))
    # before the first look nothing is decided of either
    is_early = word == "undecided" and comparison.smallest_detectable is None
    told = word if is_early else judged_items((ratio, low, high), margin=comparison.margin)
    return Change("items", told, ratio, low, high)


def _of_rate(own: Change) -> Change:
    """The same of the highest rate, which is what the time from one request to the next is turned round."""
    word = _OF_RATES.get(own.word, own.word)
    if own.figures is None:
        return Change("rate", word)
    ratio, low, high = own.figures
    return Change("rate", word, 1.0 / ratio, 1.0 / high, 1.0 / low)


def is_same_model(one: Cell, other: Cell) -> bool:
    """By name, of which another version may be another file, or by file, which other runs may call otherwise."""
    return one.model == other.model or one.model_sha256 == other.model_sha256 != ""


def items_factor(baseline: Cell, candidate: Cell) -> float | None:
    """How many times the items of the baseline one inference of the candidate has; None where they are as many."""
    if baseline.batch == candidate.batch or not baseline.batch or not candidate.batch:
        return None
    return candidate.batch / baseline.batch


def judged_items(figures: tuple[float, float, float], *, margin: float) -> ItemsVerdict:
    """Items per second: more or fewer, where 99 % sure and beyond the margin; equal, where 97.5 % sure to be in it."""
    ratio, edge = figures[0], log1p(margin)
    low, high = _widened(figures, TO_CHANGE)
    if abs(log(ratio)) > edge and not low <= 1.0 <= high:
        return "more" if ratio > 1.0 else "fewer"
    low, high = _widened(figures, TO_EQUAL)
    return "equal" if -edge < log(low) and log(high) < edge else "undecided"


def judged_value(ratio: float, low: float | None, high: float | None, *, is_open: bool, words: numbers.Words) -> str:
    """The word of a value of a long series. `is_open`: its round decided nothing, whatever the interval excludes."""
    if is_open or low is None or high is None or low <= 0:
        return "undecided"
    if low <= 1.0 <= high:
        return "equal" if judged_items((ratio, low, high), margin=MARGIN) == "equal" else "undecided"
    return words[0] if low > 1.0 else words[1]


def _widened(figures: tuple[float, float, float], times: float) -> tuple[float, float]:
    middle, low, high = (log(figure) for figure in figures)
    return exp(middle - times * (middle - low)), exp(middle + times * (high - middle))
