"""Compares a chosen cell with the base cell: by the verdict of the block that measured both, else by their launches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dashboard import axes
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.rules.comparing import verdicts
from farm.rules.comparing.quantities import Quantity, change_between, is_same_model, items_factor
from farm.rules.comparing.sides import comparison_between, index_by_sides
from farm.rules.presenting import simulated
from farm.rules.presenting.lines import PROCESSOR, is_by_processor, is_wrong, why_wrong
from farm.rules.presenting.times import BY_CLOCK, Times
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import STATES, WRONG, WRONG_BASE, Sign, sign_of

MIN_SAMPLES = 2
# words for more and less time where cells have no verdict, because they were not measured side by side
UNJUDGED: numbers.Words = ("longer", "shorter")


@dataclass(frozen=True)
class ChosenCell:
    """A cell that the reader chose. `key`: run and cell as the address names them, `12:c3-b1`; `href`: the cell's page;
    `version_id`: the measured version of the model; `device`: the machine that measured, which several nodes may share,
    empty where it is not known."""

    key: str
    run_id: int
    cell: Cell
    href: str
    version_id: int = 0
    device: str = ""


@dataclass(frozen=True)
class PairVerdict:
    """How a cell compares with the base.

    `sign`: the verdict, or why there is none; `change`: the change in words, empty without figures; `evidence`: how it
    was measured; `ratio`, `low`, `high`: cell / base with its interval, None without figures; `quantity`: what the
    ratio is of; `words`: what more and less of that quantity are called; `wrong`: the keys of the cells with wrong
    outputs, the base's too; `by_processor`: the figures are of processor time, because other programs disturbed the
    clock; `metrics`: the changes of further metrics that have their own verdict, by name; `excludes_no_change`: the
    interval is known and does not contain 1.
    """

    sign: Sign
    change: str
    evidence: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    quantity: Quantity = "latency"
    wrong: tuple[str, ...] = ()
    by_processor: bool = False
    words: numbers.Words = numbers.TIMES
    metrics: Mapping[str, MetricChange] = field(default_factory=dict)

    @property
    def interval(self) -> str:
        """Return the interval of the change in words; empty without figures."""
        if self.low is None:
            return ""
        return numbers.change_interval(self.low, self.high, ratio=self.ratio, words=self.words)

    @property
    def excludes_no_change(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= 1.0 <= self.high

    def agrees_with_times(self, base: Cell | None, cell: Cell | None) -> bool:
        """Whether the two times, as they are shown, can be divided without contradicting the interval. True also where
        a time or the interval is missing, or the change is not of latency."""
        old, new = (
            None if side is None else self.times_of(side).with_compared_time(side).p50_ms for side in (base, cell)
        )
        if not old or not new or self.low is None or self.high is None or self.quantity != "latency":
            return True
        return numbers.format_divisible_pair(old, new, low=self.low, high=self.high) is not None

    def times_of(self, cell: Cell) -> Times:
        """Choose the kind of time that the cell shows: processor time where the verdict rests on it and the cell has
        it, else time by the clock."""
        return Times(frozenset([cell.id])) if self.by_processor and cell.cpu_p50_ms else BY_CLOCK


def judge_pair(
    base: ChosenCell,
    other: ChosenCell,
    base_comparisons: Sequence[Comparison],
    other_comparisons: Sequence[Comparison] = (),
) -> PairVerdict:
    """Compare a cell with the base: by their comparison where one block measured both, else by their launches, which
    gives no verdict. Two models, other shapes, simulated times and fewer than MIN_SAMPLES launches give no figures
    either. Where the outputs of either are wrong, the sign says so and the figures stay.

    `base_comparisons`: the base's comparisons in its run; `other_comparisons`: the other cell's comparisons, needed
    only where it is in another run. Comparisons of other cells are ignored.
    """
    is_one_run = base.run_id == other.run_id
    sides = ((base, base_comparisons), (other, (*(base_comparisons if is_one_run else ()), *other_comparisons)))
    paired = comparison_between(index_by_sides(base_comparisons), base.cell.id, other.cell.id) if is_one_run else None
    if paired is not None:
        verdict = _judge_paired(paired, base.cell, other.cell)
    else:
        by_processor = any(Times.of([side.cell], comparisons).by_processor for side, comparisons in sides)
        verdict = _describe_unpaired(base, other, by_processor=by_processor)
    wrong = [side for side, comparisons in sides if is_wrong(side.cell, comparisons)]
    if not wrong:
        return verdict
    evidence = "; ".join(filter(None, (verdict.evidence, why_wrong(wrong[-1].cell), "there is no verdict on speed")))
    sign = replace(STATES[WRONG], word=WRONG if wrong[-1] is other else WRONG_BASE)
    return replace(verdict, sign=sign, evidence=evidence, wrong=tuple(side.key for side in wrong))


def _judge_paired(paired: Comparison, base: Cell, other: Cell) -> PairVerdict:
    change = change_between(paired, base, other)
    metrics = {metric.name: metric for metric in paired.metrics}
    if change.figures is None:
        return PairVerdict(sign_of(change.word), "", paired.reason or "", metrics=metrics)
    by_processor = is_by_processor(paired)
    clock = f", {PROCESSOR}" if by_processor else ""
    return PairVerdict(
        sign_of(change.word),
        change.text,
        f"{change.interval}, {numbers.counted(paired.rounds, 'round')} side by side in one block{clock}",
        *change.figures,
        change.quantity,
        by_processor=by_processor,
        words=change.words,
        metrics=metrics,
    )


def _describe_unpaired(base: ChosenCell, other: ChosenCell, *, by_processor: bool) -> PairVerdict:
    """Compare the launches of two cells that no block compared. The result has figures at most, and no verdict."""
    old, new = base.cell, other.cell
    if not is_same_model(old, new):
        evidence = f"{new.model} is a different model than {old.model}: shown side by side, without a verdict."
        return PairVerdict(Sign("≠", "different models", "quiet"), "", evidence)
    times = items_factor(old, new)
    if len(old.samples_ms) < MIN_SAMPLES or len(new.samples_ms) < MIN_SAMPLES:
        return PairVerdict(sign_of("not comparable"), "", "One of the two has too few launches.")
    if old.shapes != new.shapes or (old.batch != new.batch and times is None):
        return PairVerdict(sign_of("not comparable"), "", "The workloads differ: other shapes, or one without a batch.")
    if old.simulated or new.simulated:
        return PairVerdict(sign_of("not comparable"), "", simulated.NOTE)
    by_processor = by_processor and min(len(old.cpu_samples_ms), len(new.cpu_samples_ms)) > 1
    launches = [side.cpu_samples_ms if by_processor else side.samples_ms for side in (old, new)]
    judged = verdicts.judge_unpaired(*launches)
    figures = judged.ratio, judged.ci_low, judged.ci_high
    if times is not None:
        figures = times / judged.ratio, times / judged.ci_high, times / judged.ci_low
    words = UNJUDGED if times is None else ("more items/s", "fewer items/s")
    interval = numbers.change_interval(*figures[1:], ratio=figures[0], words=words)
    sign, why = _explain_unpaired(base, other)
    return PairVerdict(
        sign,
        numbers.change(*figures, words=words),
        f"{interval}{f', {PROCESSOR}' if by_processor else ''}; {why}, no verdict",
        *figures,
        "latency" if times is None else "items",
        by_processor=by_processor,
        words=words,
    )


def _explain_unpaired(base: ChosenCell, other: ChosenCell) -> tuple[Sign, str]:
    """Explain why two cells have no verdict: return the sign that is shown in its place, and the reason."""
    old, new = base.cell, other.cell
    if old.node != new.node:
        nodes = f"{old.node or 'no node'} and {new.node or 'no node'}"
        if not base.device == other.device != "":
            return Sign("≠", "different hardware", "quiet"), f"different hardware: {nodes}"
        why = f"{nodes} are nodes of one machine, which measured one after the other"
        return Sign("≠", "not side by side", "quiet"), why
    if base.run_id != other.run_id or not old.block == new.block != "":
        why = "not measured side by side: the machine may have changed between the two"
        return Sign("≠", "not side by side", "quiet"), why
    changed = [axis.heading.lower() for axis in axes.varying_axes([old, new])]
    if len(changed) < 2:
        return Sign("≠", "not compared", "quiet"), "their block compared no such pair"
    all_of_them = "both" if len(changed) == 2 else "all"
    why = f"{all_of_them} changed: {numbers.listed(changed, most=len(changed))}"
    return Sign("≠", "several changes", "quiet"), why
