"""The rows of cells side by side: metrics with their change against the base, then settings and what ran."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dashboard import axes
from dashboard.figures import accuracies
from dashboard.metrics import metric_with_unit, title
from dashboard.reading.side import UNJUDGED, Chosen, Judged, names
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import MetricChange
from farm.rules.cells.metric import Metric
from farm.rules.cells.metrics import METRICS
from farm.rules.presenting import metric_changes
from farm.rules.presenting.tables import Entry, Head, Table
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import sign_of

P50, PROCESSOR_TIME, THROUGHPUT = "p50_ms", "cpu_p50_ms", "throughput"
# what differs between any two cells says nothing: counts and spreads of single launches
SELDOM = frozenset({"mean_ms", "std_ms", "min_ms", "max_ms", "disturbed_samples"})
FACTS: tuple[tuple[str, Callable[[Cell], str]], ...] = (
    ("Model file digest", lambda c: c.model_sha256[:12]),
    ("Provider ran", lambda c: ", ".join(map(titles.provider, c.active_providers))),
    ("Executed precision", lambda c: c.executed_precision or ""),
    ("Packages", lambda c: ", ".join(f"{name} {version}" for name, version in sorted(c.packages.items()))),
)
JUDGEMENTS: tuple[tuple[str, Callable[[Cell], str]], ...] = (
    ("Parity", lambda c: sign_of(c.parity.verdict).word),
    ("Accuracy", lambda c: "" if c.accuracy is None or c.accuracy.value is None else accuracies.value(c.accuracy)),
    ("Executed nodes", lambda c: ", ".join(f"{titles.provider(p.name)} {p.nodes}" for p in c.providers)),
)


@dataclass(frozen=True)
class Change:
    """How a figure differs from the base's, in words and as a ratio; nothing where that would mean nothing."""

    text: str = ""
    ratio: float | None = None


@dataclass(frozen=True)
class Line:
    """One fact or metric across the cells, the base first. `values`: the same as `texts`, for programs."""

    name: str
    texts: Sequence[str]
    changes: Sequence[Change]
    values: Sequence[float | str | None]

    @property
    def differs(self) -> bool:
        return len(set(self.texts)) > 1

    def holds(self, wanted: str) -> bool:
        """Whether the row has all of these words."""
        text = " ".join((self.name, *self.texts)).lower()
        return all(word in text for word in wanted.lower().split())


def lines(chosen: Sequence[Chosen], judged: Sequence[Judged]) -> list[Line]:
    """Metrics, judgements of the outputs, axes and facts of the cells; without what none of them has."""
    cells = [choice.cell for choice in chosen]
    measured = [_measured(metric, cells, judged) for metric in METRICS if _is_row(metric, cells)]
    settings = [(axis.heading, axis.label) for axis in axes.AXES]
    told = [_told(name, [write(cell) for cell in cells]) for name, write in (*JUDGEMENTS, *settings, *FACTS)]
    return [line for line in (*measured, *told) if any(line.texts)]


def _is_row(metric: Metric, cells: Sequence[Cell]) -> bool:
    is_known = any(metric.value(cell) is not None for cell in cells)
    return bool(metric.title) and metric.name not in SELDOM and is_known


def _told(name: str, texts: Sequence[str]) -> Line:
    return Line(name, texts, [Change()] * len(texts), [text or None for text in texts])


def _measured(metric: Metric, cells: Sequence[Cell], judged: Sequence[Judged]) -> Line:
    texts = [metric_with_unit(metric, cell, has_interval=True) for cell in cells]
    changes = [change(metric, cells[0], other, verdict) for other, verdict in zip(cells[1:], judged, strict=False)]
    return Line(title(metric), texts, [Change(), *changes], [metric.value(cell) for cell in cells])


def change(metric: Metric, base: Cell, other: Cell, judged: Judged) -> Change:
    """By how much a metric differs from the base's. p50 and items per second say what the verdict says.

    Nothing where a difference would mean nothing: other models, other shapes, another batch.
    """
    old, new = metric.value(base), metric.value(other)
    if not metric.better or not old or not new or base.model != other.model or base.shapes != other.shapes:
        return Change()
    is_told = not judged.is_rate and None not in (judged.ratio, judged.low, judged.high)
    is_judged = metric.name in (PROCESSOR_TIME if judged.by_processor else P50, THROUGHPUT) and is_told
    if base.batch != other.batch:
        is_of_items = is_judged and judged.is_items and metric.name == THROUGHPUT
        return Change(judged.change, judged.ratio) if is_of_items else Change()
    if metric.name == P50 and judged.by_processor:
        return Change()
    if (verdict := judged.metrics.get(metric.name)) is not None and (
        metric.name not in (P50, PROCESSOR_TIME) or judged.is_rate
    ):
        return _verdict(verdict)
    if not is_judged:
        return Change(numbers.change(new / old, words=_unjudged(metric)), new / old)
    ratio, low, high = judged.ratio or 1.0, judged.low or 1.0, judged.high or 1.0
    words = judged.words
    if metric.name == THROUGHPUT:
        ratio, low, high, words = 1 / ratio, 1 / high, 1 / low, _unjudged(metric)
    # where the values on this line, divided, would give another change, its own stands in the verdict above alone
    is_alike = numbers.pair(old, new, low=low, high=high) is not None
    return Change(numbers.change(ratio, low, high, words=words), ratio) if is_alike else Change()


def _unjudged(metric: Metric) -> numbers.Words:
    """What more of it is called, and less, where nobody judges it."""
    if metric.name == THROUGHPUT:
        return "more", "fewer"
    return UNJUDGED if metric.unit == "ms" else ("more", "less")


def _verdict(change: MetricChange) -> Change:
    """`▲ 12 % slower`, by the launches of both; of growth the word alone."""
    return Change(metric_changes.told(change), change.ratio)


def shown(rows: Sequence[Line], *, every: bool, wanted: str) -> list[Line]:
    """The rows that differ, or every row; of them those that have the words which were searched for."""
    return [line for line in rows if (every or line.differs) and line.holds(wanted)]


def table(chosen: Sequence[Chosen], rows: Sequence[Line]) -> Table:
    """A row a metric or fact, a column a cell, the base first."""
    called = names(chosen)
    heads = [Head("Row"), *(_head(choice, name) for choice, name in zip(chosen, called, strict=True))]
    if heads[1:]:
        heads[1] = Head(f"{heads[1].text} (base)", is_text=True, note=heads[1].note)
    return Table("side", "Cells side by side", heads, [_row(line) for line in rows])


def _head(one: Chosen, name: str) -> Head:
    return Head(name, is_text=True, note=f"run {one.run_id}, {one.cell.id}")


def _row(line: Line) -> tuple[Entry, ...]:
    texts = zip(line.texts, line.changes, strict=True)
    return (
        Entry(line.name, soft="" if line.differs else "equal"),
        *(Entry(text, soft=one.text) for text, one in texts),
    )


def as_row(chosen: Sequence[Chosen], line: Line) -> dict[str, str | float | None]:
    """A row in a file: each cell's figure, and its ratio to the base's."""
    row: dict[str, str | float | None] = {"row": line.name}
    for choice, value, changed in zip(chosen, line.values, line.changes, strict=True):
        row[choice.key] = value
        if choice is not chosen[0]:
            row[f"{choice.key} ratio"] = changed.ratio
    return row
