"""Cells of any runs side by side: a base and up to three others, line by line, with what differs marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dashboard import axes
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.rules.comparing import verdicts
from farm.rules.comparing.quantities import change_between, items_factor
from farm.rules.comparing.sides import between, by_sides
from farm.rules.presenting import simulated
from farm.rules.presenting.lines import PROCESSOR, is_by_processor
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import Sign, sign_of

MOST = 4
FEWEST_SAMPLES = 2
DIFFERENT_MODELS = Sign("≠", "different models", "quiet")


# a cell whose outputs differ from the reference is not praised, however fast it is
# of figures that nobody judges, as they were not measured side by side
UNJUDGED: numbers.Words = ("longer", "shorter")
WRONG = Sign("✕", "fails parity", "bad")
WRONG_BASE = Sign("✕", "base fails parity", "bad")


@dataclass(frozen=True)
class Chosen:
    """A cell of a run, as the address names it: `12:c3-b1`. `version_id`: of the model version it measured."""

    key: str
    run_id: int
    cell: Cell
    href: str
    version_id: int = 0


@dataclass(frozen=True)
class Judged:
    """A cell against the base. `how` says what the figures rest on; `change` is empty for none, the figures None.

    `is_items`: the figures are of items per second, as the batches differ; `is_wrong`: one of the two fails parity;
    `by_processor`: they are of processor time, as other programs lengthened that of the clock.
    """

    sign: Sign
    change: str
    how: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    is_items: bool = False
    is_wrong: bool = False
    by_processor: bool = False
    # of the highest rate under load
    is_rate: bool = False
    # what more of it is called, and less
    words: numbers.Words = numbers.TIMES
    # every metric with a verdict of its own, where one block measured both
    metrics: Mapping[str, MetricChange] = field(default_factory=dict)

    @property
    def interval(self) -> str:
        """Between which changes it lies; empty without figures."""
        if self.low is None:
            return ""
        return numbers.change_interval(self.low, self.high, ratio=self.ratio, words=self.words)

    def is_of(self, base: Cell | None, cell: Cell | None) -> bool:
        """Whether a reader who divides the latencies of both gets a change that the interval holds."""
        if base is None or cell is None or not base.p50_ms or not cell.p50_ms or self.low is None or self.high is None:
            return True
        if self.is_items or self.is_rate:
            return True
        return numbers.pair(base.p50_ms, cell.p50_ms, low=self.low, high=self.high) is not None

    @property
    def is_sure(self) -> bool:
        """Whether its interval leaves out that nothing changed."""
        return self.low is not None and self.high is not None and not self.low <= 1.0 <= self.high


@dataclass(frozen=True)
class Row:
    """A compared cell in the list of them. `judged`: against the base, None for the base itself.

    `pin`, `without`: addresses that make it the base and that take it away; empty where nobody may choose.
    """

    one: Chosen
    name: str
    p50: str
    judged: Judged | None = None
    pin: str = ""
    without: str = ""

    @property
    def is_base(self) -> bool:
        return self.judged is None


def rows(chosen: Sequence[Chosen], judged: Sequence[Judged]) -> list[Row]:
    """The compared cells, the base first."""
    against = [None, *judged][: len(chosen)]
    figures = [
        numbers.latency(choice.cell.p50_ms, choice.cell.p50_ci_ms)
        if each is None or each.is_of(chosen[0].cell, choice.cell)
        else ""
        for choice, each in zip(chosen, against, strict=True)
    ]
    return [Row(*each) for each in zip(chosen, names(chosen), figures, against, strict=True)]


def pinned(chosen: Sequence[Chosen], base: str) -> list[Chosen]:
    """The cells with the one of this key first, which makes it the base; as they come where none has it."""
    return sorted(chosen, key=lambda one: one.key != base)


def names(chosen: Sequence[Chosen]) -> list[str]:
    """What the cells are called beside each other: what differs, or run and cell where nothing does."""
    along = axes.varying(choice.cell for choice in chosen)
    said = [axes.name_of(choice.cell, along) for choice in chosen]
    return said if len(set(said)) == len(said) else [f"run {choice.run_id}, {choice.cell.id}" for choice in chosen]


def headline(chosen: Sequence[Chosen], judged: Sequence[Judged]) -> str:
    """The cells against the first one, in a sentence; empty for a single cell."""
    if not judged:
        return ""
    base, *others = names(chosen)
    said = [f"{name} {_said(verdict)}" for name, verdict in zip(others, judged, strict=True)]
    return numbers.unbroken(f"Against {base}: {numbers.listed(said, most=MOST)}")


def _said(one: Judged) -> str:
    if not one.change or one.is_wrong:
        return one.sign.word
    return one.change if one.change.endswith(one.sign.word) else f"{one.sign.word} ({one.change})"


def judge(base: Chosen, other: Chosen, measured: Sequence[Comparison]) -> Judged:
    """A cell against the base, whichever of them was measured as the baseline: paired where one block measured both,
    else unpaired and labelled as such."""
    judged = _judged(base, other, measured)
    wrong = [each for each in (base, other) if each.cell.parity.verdict == "fail"]
    if not wrong or judged.sign == DIFFERENT_MODELS:
        return judged
    how = "; ".join(
        filter(None, (judged.how, "the outputs differ from the reference, so there is no verdict on speed"))
    )
    return replace(judged, sign=WRONG if other in wrong else WRONG_BASE, how=how, is_wrong=True)


def _judged(base: Chosen, other: Chosen, measured: Sequence[Comparison]) -> Judged:
    is_one_run = base.run_id == other.run_id
    paired = between(by_sides(measured), base.cell.id, other.cell.id) if is_one_run else None
    if paired is None:
        return _unpaired(base.cell, other.cell)
    told = change_between(paired, base.cell, other.cell)
    if told.figures is None:
        return Judged(sign_of(told.word), "", paired.reason or "", metrics=_metrics(paired))
    is_items = told.quantity == "items"
    by_processor = is_by_processor(paired)
    by = f", {PROCESSOR}" if by_processor else ""
    how = f"{told.interval}, {numbers.counted(paired.rounds, 'round')} side by side in one block{by}"
    return Judged(
        sign_of(told.word),
        told.text,
        how,
        *told.figures,
        is_items,
        by_processor=by_processor,
        is_rate=told.quantity == "rate",
        words=told.words,
        metrics=_metrics(paired),
    )


def _metrics(paired: Comparison) -> dict[str, MetricChange]:
    return {change.name: change for change in paired.metrics}


def _unpaired(base: Cell, other: Cell) -> Judged:
    if base.model != other.model:
        how = f"{other.model} is a different model than {base.model}: shown side by side, without a verdict."
        return Judged(DIFFERENT_MODELS, "", how)
    if len(base.samples_ms) < FEWEST_SAMPLES or len(other.samples_ms) < FEWEST_SAMPLES:
        return Judged(sign_of("not comparable"), "", "One of the two has no samples.")
    if base.shapes != other.shapes or (base.batch != other.batch and items_factor(base, other) is None):
        return Judged(sign_of("not comparable"), "", "The workloads differ: other shapes, or one without a batch.")
    if base.simulated or other.simulated:
        return Judged(sign_of("not comparable"), "", simulated.NOTE)
    judged = verdicts.judge_unpaired(base.samples_ms, other.samples_ms)
    figures = judged.ratio, judged.ci_low, judged.ci_high
    if (times := items_factor(base, other)) is not None:
        figures = times / judged.ratio, times / judged.ci_high, times / judged.ci_low
    is_items = times is not None
    words = ("more items/s", "fewer items/s") if is_items else UNJUDGED
    change = numbers.change(*figures, words=words)
    interval = numbers.change_interval(*figures[1:], ratio=figures[0], words=words)
    if base.node != other.node:
        how = f"{interval}; different hardware: {base.node or 'no node'} and {other.node or 'no node'}, no verdict"
        return Judged(Sign("≠", "different hardware", "quiet"), change, how, *figures, is_items, words=words)
    how = f"{interval}; not measured side by side: the machine may have changed between the two, no verdict"
    return Judged(Sign("≠", "not side by side", "quiet"), change, how, *figures, is_items, words=words)
