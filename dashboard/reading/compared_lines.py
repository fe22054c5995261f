"""The metrics and facts of compared cells: a line for each, with the change against the base cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dashboard import axes
from dashboard.figures import accuracies
from dashboard.metrics import metric_with_unit, title
from dashboard.reading.compared_cells import name_cells
from dashboard.reading.judging import UNJUDGED, ChosenCell, PairVerdict
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import MetricChange
from farm.rules.cells.metric import Metric
from farm.rules.cells.metrics import METRICS
from farm.rules.comparing.quantities import is_same_model
from farm.rules.presenting import metric_changes
from farm.rules.presenting.tables import Entry, Head, Table
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import WRONG, sign_of

P50, PROCESSOR_TIME = "p50_ms", "cpu_p50_ms"
THROUGHPUT, PROCESSOR_THROUGHPUT = "throughput", "cpu_throughput"
# these metrics describe single launches and differ between any two cells, so they are not compared
OF_SINGLE_LAUNCHES = frozenset({"mean_ms", "std_ms", "min_ms", "max_ms", "disturbed_samples"})
FACTS: tuple[tuple[str, Callable[[Cell], str]], ...] = (
    ("Model file digest", lambda cell: cell.model_sha256[:12]),
    ("Provider ran", lambda cell: ", ".join(map(titles.provider, cell.active_providers))),
    ("Executed precision", lambda cell: cell.executed_precision or ""),
    ("Packages", lambda cell: ", ".join(f"{name} {version}" for name, version in sorted(cell.packages.items()))),
)
OUTPUTS: tuple[tuple[str, Callable[[Cell], str]], ...] = (
    ("Parity", lambda cell: sign_of(cell.parity.verdict).word),
    (
        "Accuracy",
        lambda cell: (
            accuracies.format_value(cell.accuracy) if cell.accuracy and cell.accuracy.value is not None else ""
        ),
    ),
    ("Executed nodes", lambda cell: ", ".join(f"{titles.provider(ran.name)} {ran.nodes}" for ran in cell.providers)),
)


@dataclass(frozen=True)
class Change:
    """How a figure differs from the base's. `text`: the change in words, empty where the two cannot be compared;
    `ratio`: this cell's figure / the base's, else None; `tone`: of the verdict on this figure, empty where there is
    none."""

    text: str = ""
    ratio: float | None = None
    tone: str = ""


@dataclass(frozen=True)
class Line:
    """A fact or metric of all compared cells, the base first. `texts`: the figures as pages show them; `values`: the
    same figures as plain values for files; `changes`: against the base, whose own change is empty."""

    name: str
    texts: Sequence[str]
    changes: Sequence[Change]
    values: Sequence[float | str | None]

    @property
    def differs(self) -> bool:
        return len(set(self.texts)) > 1


def make_lines(chosen: Sequence[ChosenCell], verdicts: Sequence[PairVerdict]) -> list[Line]:
    """Make the lines of metrics, outputs, settings and facts, in this order. Metrics of single launches and lines that
    are empty for all cells are left out. `verdicts`: one for each cell except the base, in order."""
    cells = [choice.cell for choice in chosen]
    metrics = [
        metric
        for metric in METRICS
        if metric.title
        and metric.name not in OF_SINGLE_LAUNCHES
        and any(metric.value(cell) is not None for cell in cells)
    ]
    wrong = {key for verdict in verdicts for key in verdict.wrong}
    facts = [("Outputs", [WRONG if choice.key in wrong else "" for choice in chosen])]
    settings = [(axis.heading, axis.label) for axis in axes.AXES]
    facts += [(name, [write(cell) for cell in cells]) for name, write in (*OUTPUTS, *settings, *FACTS)]
    return [
        *(_make_metric_line(metric, cells, verdicts) for metric in metrics),
        *(
            Line(name, texts, [Change()] * len(texts), [text or None for text in texts])
            for name, texts in facts
            if any(texts)
        ),
    ]


def _make_metric_line(metric: Metric, cells: Sequence[Cell], verdicts: Sequence[PairVerdict]) -> Line:
    changes = [
        describe_change(metric, cells[0], other, verdict) for other, verdict in zip(cells[1:], verdicts, strict=True)
    ]
    judged = [verdict.metrics.get(metric.name) for verdict in verdicts]
    if metric.launch_title and None in judged:
        # a line shows the medians of launches only where every cell has one
        judged = [None] * len(verdicts)
    # the base shows the figure of its first comparison
    figures = [
        _format_figure(metric, cell, change, is_base=cell is cells[0])
        for cell, change in zip(cells, [*judged[:1], *judged] or [None], strict=True)
    ]
    heading = metric.launch_title.capitalize() if metric.launch_title and any(judged) else title(metric)
    return Line(heading, [text for text, _ in figures], [Change(), *changes], [value for _, value in figures])


def _format_figure(
    metric: Metric, cell: Cell, judged: MetricChange | None, *, is_base: bool
) -> tuple[str, float | bool | None]:
    """Return a cell's figure in words and as a value. Where the verdict was computed from other launches than the
    cell's own figure, the median of those launches is shown instead."""
    if judged is None or not (metric.launch_title or metric_changes.replaces_cell_figures(judged)):
        return metric_with_unit(metric, cell, has_interval=True), metric.value(cell)
    value = judged.baseline if is_base else judged.candidate
    return f"{metric_changes.format_value(judged, value)}{' of CPU time' if judged.is_processor else ''}", value


def describe_change(metric: Metric, base: Cell, other: Cell, verdict: PairVerdict) -> Change:
    """Describe by how much a metric differs from the base's. For p50 and items per second this is the verdict's change.

    The change is empty between different models or shapes, for metrics of which neither more nor less is better, and
    where a figure is missing or 0. Between different batches only items per second have a change. Where the
    verdict rests on processor time, p50 and items per second by the clock have none.
    """
    old, new = metric.value(base), metric.value(other)
    is_same_work = is_same_model(base, other) and base.shapes == other.shapes
    if not metric.better or not old or not new or not is_same_work:
        return Change()
    time_name, items_name = (PROCESSOR_TIME, PROCESSOR_THROUGHPUT) if verdict.by_processor else (P50, THROUGHPUT)
    is_rate = verdict.quantity == "rate"
    ratio, low, high, words = verdict.ratio, verdict.low, verdict.high, verdict.words
    is_judged = metric.name in (time_name, items_name) and not is_rate
    if base.batch != other.batch:
        is_items = is_judged and metric.name == items_name and verdict.quantity == "items"
        return Change(verdict.change, ratio, verdict.sign.tone) if is_items else Change()
    if metric.name in (P50, THROUGHPUT) and verdict.by_processor:
        return Change()
    judged = verdict.metrics.get(metric.name)
    if judged is not None and (metric.name not in (P50, PROCESSOR_TIME) or is_rate):
        return Change(metric_changes.mark_change(judged), judged.ratio, sign_of(judged.verdict).tone)
    if not is_judged or not ratio or not low or not high:
        return Change(numbers.change(new / old, words=_choose_words(metric)), new / old)
    if metric.name == items_name:
        ratio, low, high, words = 1 / ratio, 1 / high, 1 / low, _choose_words(metric)
    # the change is left out where the two shown values, divided, would contradict it
    agrees = numbers.format_divisible_pair(old, new, low=low, high=high) is not None
    return Change(numbers.change(ratio, low, high, words=words), ratio, verdict.sign.tone) if agrees else Change()


def _choose_words(metric: Metric) -> numbers.Words:
    """Choose the words for more and less of a metric without a verdict."""
    if metric.name in (THROUGHPUT, PROCESSOR_THROUGHPUT):
        return "more", "fewer"
    return UNJUDGED if metric.unit == "ms" else ("more", "less")


def select_lines(lines: Sequence[Line], *, every: bool, wanted: str) -> list[Line]:
    """Select the lines that differ between the cells, or all lines with `every`. Of these only lines are kept that
    contain every word of `wanted` in their name or figures, whatever the case; an empty `wanted` keeps all."""
    selected = []
    for line in (line for line in lines if every or line.differs):
        text = " ".join((line.name, *line.texts)).lower()
        if all(word in text for word in wanted.lower().split()):
            selected.append(line)
    return selected


def make_table(chosen: Sequence[ChosenCell], lines: Sequence[Line]) -> Table:
    """Make a table with a row for each metric or fact and a column for each cell, the base first."""
    heads = [Head("Row")]
    for choice, name in zip(chosen, name_cells(chosen), strict=True):
        text = f"{name} (base)" if choice is chosen[0] else name
        heads.append(Head(text, is_text=True, note=f"run {choice.run_id}, {choice.cell.id}"))
    rows = [
        (
            Entry(line.name, soft="" if line.differs else "equal"),
            *(Entry(text, soft=change.text) for text, change in zip(line.texts, line.changes, strict=True)),
        )
        for line in lines
    ]
    return Table("side", "Cells side by side", heads, rows)


def make_file_row(chosen: Sequence[ChosenCell], line: Line) -> dict[str, str | float | None]:
    """Make the row of a line in a file: each cell's value under the cell's key, its ratio to the base under `KEY
    ratio`."""
    row: dict[str, str | float | None] = {"row": line.name}
    for choice, value, change in zip(chosen, line.values, line.changes, strict=True):
        row[choice.key] = value
        if choice is not chosen[0]:
            row[f"{choice.key} ratio"] = change.ratio
    return row
