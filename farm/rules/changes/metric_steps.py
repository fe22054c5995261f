"""A bisection by a metric: which release changed it, for better or worse, by the verdicts of comparisons. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from farm.contract.document import Document
from farm.contract.document_comparisons import MetricChange
from farm.rules.cells.metrics import COMPARED
from farm.rules.cells.scenario_metrics import GROWTH
from farm.rules.changes import watch_rounds
from farm.rules.changes.bisection import Outcome
from farm.rules.changes.probes import Step
from farm.rules.changes.watch_rounds import Pair
from farm.rules.presenting import metric_changes
from farm.rules.wording.vocabulary import is_change

# every metric in bytes
MEMORY = "memory"
NAMES = tuple(metric.name for metric, _ in COMPARED)
# a release has the change that is looked for where it has this part of it
PART = 0.5


@dataclass(frozen=True, slots=True)
class SoughtMetric:
    """The change of one metric in one series whose release is looked for."""

    series: str
    change: MetricChange

    @property
    def words(self) -> tuple[str, str]:
        """`in which peak address space is bigger`, and the metric's name."""
        return f"in which {metric_changes.title(self.change)} is {self.change.verdict}", self.change.name


def names_of(asked: str) -> tuple[str, ...]:
    """The metrics that `asked` names; empty for none of the table."""
    if asked == MEMORY:
        return tuple(metric.name for metric, _ in COMPARED if metric.unit == "bytes")
    return (asked,) if asked in NAMES else ()


def is_by_repeat(names: Sequence[str], scenarios: Sequence[object]) -> bool:
    """Whether a repeat decides on all of these metrics: growth, which others than `fresh` do not tell, takes rounds."""
    told = [name for name in names if name != GROWTH or any(str(one).startswith("fresh") for one in scenarios)]
    return bool(told) and all(judging.by == "repeat" for metric, judging in COMPARED if metric.name in told)


def sought_of(document: Document, names: Sequence[str], *, old: str, new: str) -> SoughtMetric | None:
    """The largest decided change of these metrics, losses before gains; None where none changed."""
    found = [
        SoughtMetric(pair.series, change)
        for pair in watch_rounds.pairs(document, old=old, new=new)
        for change in _told(pair, names)
        if is_change(change.verdict)
    ]
    return min(found, key=lambda one: (metric_changes.is_gain(one.change), -_size(one.change)), default=None)


def read_metric_step(document: Document, sought: SoughtMetric, *, old: str, new: str) -> Step:
    """What a document of the good release `old` and the probed one `new` says: has it half of the change?"""
    pairs = watch_rounds.pairs(document, old=old, new=new)
    mine = next((pair for pair in pairs if pair.series == sought.series), None)
    change = next(iter(_told(mine, [sought.change.name])), None) if mine is not None else None
    if change is None:
        endings = [] if mine is None else [cell.reason.text for cell in (mine.new, mine.old) if cell.reason is not None]
        return Step(Outcome.SKIPPED, [*endings, "It was not compared."][0])
    figures = change.ratio, change.ci_low, change.ci_high
    if change.verdict == "undecided":
        return Step(Outcome.SKIPPED, f"{metric_changes.title(change)} is undecided", *figures)
    has_it = change.verdict == sought.change.verdict and _size(change) >= PART * _size(sought.change)
    return Step(Outcome.BAD, metric_changes.words(change), *figures) if has_it else Step(Outcome.GOOD, "", *figures)


def _told(pair: Pair, names: Sequence[str]) -> list[MetricChange]:
    return [] if pair.comparison is None else [one for one in pair.comparison.metrics if one.name in names]


def _size(change: MetricChange) -> float:
    """How large it is: by the logarithm of its ratio, or in margins where there is none."""
    return abs(log(change.ratio)) if change.ratio else abs(change.change or 0.0) / change.margin
