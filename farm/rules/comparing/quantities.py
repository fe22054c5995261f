"""Expresses a comparison in the quantity that it is shown in.

The quantity is latency, with two exceptions. A load that looks for the highest rate is compared by that rate. Sides
with different batches are compared by items per second, because more items take more time. A cell's items per second
are batch / p50, so their ratio and its interval are the inverse of those of latency, times the ratio of the batches.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, log1p
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
# A block of eight rounds decides by wider intervals than the 95 % one: the 99 % interval for a change, the 97.5 % one
# for equality. They are wider by these factors (Student's t, 7 degrees of freedom: 3.499 / 2.365 and 2.841 / 2.365).
WIDTH_FOR_CHANGE, WIDTH_FOR_EQUALITY = 1.48, 1.2


@dataclass(frozen=True, slots=True)
class Change:
    """A comparison in one quantity: its verdict, and candidate / baseline with the ends of its interval.

    The figures are None where they are not known. `words` are those for a ratio above and below 1. `unit` is what
    sentences write after the verdict, such as ` items/s`; empty for latency, for memory, and for a change that is not
    decided. `is_gain` says that the verdict is a change for the better.
    """

    quantity: Quantity
    word: Word
    ratio: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def figures(self) -> tuple[float, float, float] | None:
        """Ratio, low and high; None unless all three are known."""
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
        """The size of the change with its direction: `19 % slower`, `3.25× more items/s`.

        It is empty without figures, and where the direction is undecided, because the medians may show the other one.
        """
        has_no_direction = self.word == "undecided" and (self.low or 1.0) <= 1.0 <= (self.high or 1.0)
        if self.ratio is None or has_no_direction:
            return ""
        size = numbers.change(self.ratio, self.low, self.high, words=self.words)
        return f"{size}{_UNITS.get(self.quantity, '')}"

    @property
    def amount(self) -> str:
        """The size of the change without its direction: `19 %`; empty without figures."""
        return "" if self.ratio is None else numbers.change_size(self.ratio, self.low, self.high)

    @property
    def interval(self) -> str:
        """The interval as text: `21–26 %`, or `4 % faster to 8 % slower` if undecided; `not measured` without one."""
        return numbers.change_interval(
            self.low, self.high, ratio=self.ratio, words=self.words, is_directed=self.is_decided
        )

    @property
    def size(self) -> float:
        """How far the ratio is from 1, on the log scale; 0 without figures."""
        return abs(log(self.ratio)) if self.ratio else 0.0

    @property
    def is_decided(self) -> bool:
        """Whether the verdict has a direction; `equal` has none."""
        return is_change(self.word)

    @property
    def is_gain(self) -> bool:
        return self.word in GAINS


def change_of(comparison: Comparison, cells: Mapping[str, Cell]) -> Change:
    """Express a comparison in its quantity, as latency where one of its two cells is not among `cells`, by id."""
    baseline, candidate = cells.get(comparison.baseline), cells.get(comparison.candidate)
    if baseline is None or candidate is None:
        return Change("latency", comparison.verdict, comparison.ratio, comparison.ci_low, comparison.ci_high)
    return change_between(comparison, baseline, candidate)


def change_between(comparison: Comparison, baseline: Cell, candidate: Cell) -> Change:
    """Express a comparison of these two cells in its quantity.

    Cells of different models are `not comparable`, unless the model is what was compared. Items per second are judged
    anew by `judge_items`, except before the first look; they have no figures where those of latency are not all known.
    """
    are_other_models = not is_same_model(baseline, candidate) and comparison.axis != "model"
    word: Word = "not comparable" if are_other_models else comparison.verdict
    change = Change("latency", word, comparison.ratio, comparison.ci_low, comparison.ci_high)
    if comparison.verdict_from == "rate":
        return _express_as_rate(change)
    factor = items_factor(baseline, candidate)
    if factor is None:
        return change
    if change.figures is None or word == "not comparable":
        return Change("items", word)
    ratio, low, high = (factor / end for end in (change.ratio or 1.0, change.high or 1.0, change.low or 1.0))
    # Before the first look neither latency nor items per second is decided.
    is_early = word == "undecided" and comparison.smallest_detectable is None
    items_word = word if is_early else judge_items(ratio, low, high, margin=comparison.margin)
    return Change("items", items_word, ratio, low, high)


def _express_as_rate(change: Change) -> Change:
    """Express a change of the time between two requests as the inverse change of the rate."""
    word = _OF_RATES.get(change.word, change.word)
    if change.figures is None:
        return Change("rate", word)
    ratio, low, high = change.figures
    return Change("rate", word, 1.0 / ratio, 1.0 / high, 1.0 / low)


def is_same_model(one: Cell, other: Cell) -> bool:
    """Whether both cells are of a model with the same name, in any version, or of the same file under any name."""
    return one.model == other.model or one.model_sha256 == other.model_sha256 != ""


def items_factor(baseline: Cell, candidate: Cell) -> float | None:
    """Compute candidate batch / baseline batch; None where they are equal or one is not known."""
    if baseline.batch == candidate.batch or not baseline.batch or not candidate.batch:
        return None
    return candidate.batch / baseline.batch


def judge_items(ratio: float, low: float, high: float, *, margin: float) -> ItemsVerdict:
    """Judge the ratio of items per second with its 95 % interval, all above zero.

    The verdict is `more` or `fewer` if the ratio is beyond the margin and the 99 % interval excludes 1. It is `equal`
    if the 97.5 % interval lies within the margin.
    """
    edge, location = log1p(margin), log(ratio)
    below, above = location - log(low), log(high) - location
    is_significant = abs(location) > WIDTH_FOR_CHANGE * (below if location > 0.0 else above)
    if abs(location) > edge and is_significant:
        return "more" if ratio > 1.0 else "fewer"
    is_within = -edge < location - WIDTH_FOR_EQUALITY * below and location + WIDTH_FOR_EQUALITY * above < edge
    return "equal" if is_within else "undecided"


def judge_series_value(
    ratio: float, low: float | None, high: float | None, *, is_undecided: bool, words: numbers.Words
) -> str:
    """Return the verdict on a value of a long series: `undecided`, `equal`, or the word for its direction.

    `ratio` is new / old with its 95 % interval; without an interval above zero the verdict is `undecided`. It is judged
    as `judge_items` does, by the margin of 2 %. `is_undecided` says that the value's own round did not decide, which
    also makes it `undecided`. `words` are those for a ratio above and below 1.
    """
    if is_undecided or low is None or high is None or low <= 0:
        return "undecided"
    verdict = judge_items(ratio, low, high, margin=MARGIN)
    return {"more": words[0], "fewer": words[1]}.get(verdict, verdict)
