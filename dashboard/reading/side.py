"""Cells of any runs side by side: a base and up to three others, line by line, with what differs marked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from dashboard import axes
from dashboard.figures import accuracies
from dashboard.metrics import metric_with_unit, title
from dashboard.reading import unjudged
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.rules.cells.metric import Metric
from farm.rules.cells.metrics import METRICS
from farm.rules.comparing import verdicts
from farm.rules.comparing.quantities import change_between, is_same_model, items_factor
from farm.rules.comparing.sides import comparison_between, index_by_sides
from farm.rules.presenting import metric_changes, sentences, simulated
from farm.rules.presenting.lines import PROCESSOR, is_by_processor, is_wrong, why_wrong
from farm.rules.presenting.tables import Entry, Head, Table
from farm.rules.presenting.times import Times, latency_of
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import STATES, WRONG, WRONG_BASE, Sign, sign_of

MAX_CHOSEN = 4
MIN_SAMPLES = 2

# of figures that nobody judges, as they were not measured side by side
UNJUDGED: numbers.Words = ("longer", "shorter")
SPEEDS = ("slower", "faster")
P50, PROCESSOR_TIME = "p50_ms", "cpu_p50_ms"
THROUGHPUT, OF_PROCESSOR = "throughput", "cpu_throughput"
# what differs between any two cells says nothing: counts and spreads of single launches
OF_SINGLE_LAUNCHES = frozenset({"mean_ms", "std_ms", "min_ms", "max_ms", "disturbed_samples"})
FACTS: tuple[tuple[str, Callable[[Cell], str]], ...] = (
    ("Model file digest", lambda c: c.model_sha256[:12]),
    ("Provider ran", lambda c: ", ".join(map(titles.provider, c.active_providers))),
    ("Executed precision", lambda c: c.executed_precision or ""),
    ("Packages", lambda c: ", ".join(f"{name} {version}" for name, version in sorted(c.packages.items()))),
)
JUDGEMENTS: tuple[tuple[str, Callable[[Cell], str]], ...] = (
    ("Parity", lambda c: sign_of(c.parity.verdict).word),
    ("Accuracy", lambda c: accuracies.format_value(c.accuracy) if c.accuracy and c.accuracy.value is not None else ""),
    ("Executed nodes", lambda c: ", ".join(f"{titles.provider(p.name)} {p.nodes}" for p in c.providers)),
)


@dataclass(frozen=True)
class Chosen:
    """A cell of a run, as the address names it: `12:c3-b1`. `version_id`: of the model version it measured;
    `device`: the machine that measured it, which several nodes may share, empty where that is not known."""

    key: str
    run_id: int
    cell: Cell
    href: str
    version_id: int = 0
    device: str = ""


@dataclass(frozen=True)
class Judged:
    """A cell against the base. `how` says what the figures rest on; `change` is empty for none, the figures None.

    `is_items`: the figures are of items per second, as the batches differ; `wrong`: the keys of those of the two whose
    outputs are; `by_processor`: they are of processor time, as other programs lengthened that of the clock.
    """

    sign: Sign
    change: str
    how: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    is_items: bool = False
    wrong: tuple[str, ...] = ()
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

    def agrees_with_times(self, base: Cell | None, cell: Cell | None) -> bool:
        """Whether the quotient of the times shown beside it lies in its interval. True too where there is nothing to
        divide: a time or the interval is missing, or it rests on items or a rate."""
        base, cell = (None if side is None else self.times_for(side).with_compared_time(side) for side in (base, cell))
        if base is None or cell is None or not base.p50_ms or not cell.p50_ms or self.low is None or self.high is None:
            return True
        if self.is_items or self.is_rate:
            return True
        return numbers.format_divisible_pair(base.p50_ms, cell.p50_ms, low=self.low, high=self.high) is not None

    def times_for(self, cell: Cell) -> Times:
        """How the time of one of the two is written: as processor time where this rests on it, else by the clock."""
        return Times(frozenset([cell.id] if self.by_processor and cell.cpu_p50_ms else []))

    @property
    def excludes_no_change(self) -> bool:
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


def make_rows(chosen: Sequence[Chosen], judged: Sequence[Judged]) -> list[Row]:
    """The compared cells, the base first."""
    against = [None, *judged][: len(chosen)]
    # one quantity a column: where a verdict rests on processor time, that of all cells that have it
    is_processor = any(each.by_processor for each in judged)
    by = [replace(each, by_processor=is_processor) for each in judged]
    pairs = zip(by, chosen[1:], strict=False)
    is_alike = [True, *(how.agrees_with_times(chosen[0].cell, choice.cell) for how, choice in pairs)]
    figures = [
        "" if not alike else by[0].times_for(choice.cell).words(choice.cell) if by else latency_of(choice.cell)
        for choice, alike in zip(chosen, is_alike, strict=False)
    ]
    return [Row(*each) for each in zip(chosen, name_cells(chosen), figures, against, strict=True)]


def pin_base(chosen: Sequence[Chosen], base: str) -> list[Chosen]:
    """The cells with the one of this key first, which makes it the base; as they come where none has it."""
    return sorted(chosen, key=lambda choice: choice.key != base)


def name_cells(chosen: Sequence[Chosen]) -> list[str]:
    """What the cells are called beside each other: what differs, or run and cell where nothing does."""
    along = axes.varying_axes(choice.cell for choice in chosen)
    short = [axes.name_of(choice.cell, along) for choice in chosen]
    return short if len(set(short)) == len(short) else [f"run {choice.run_id}, {choice.cell.id}" for choice in chosen]


def write_headline(chosen: Sequence[Chosen], judged: Sequence[Judged]) -> str:
    """Whose outputs are wrong, then the others against the first one, in a sentence; empty for a single cell."""
    if not judged:
        return ""
    called, keys = name_cells(chosen), {key for verdict in judged for key in verdict.wrong}
    wrong = {name: choice.cell for name, choice in zip(called, chosen, strict=True) if choice.key in keys}
    base, *others = called
    word = judged[0].sign.word
    if len(others) == 1 and not wrong and word in SPEEDS and judged[0].change.endswith(word):
        return numbers.unbroken(f"{others[0]} is {judged[0].change} than {base}")
    against = [
        f"{name} {_in_words(verdict)}" for name, verdict in zip(others, judged, strict=True) if not verdict.wrong
    ]
    names = numbers.listed([*wrong], most=MAX_CHOSEN)
    parts = [sentences.wrong_among([*wrong.values()], names, of=len(chosen))] if wrong else []
    if against:
        parts.append(f"Against {base}: {numbers.listed(against, most=MAX_CHOSEN)}")
    return numbers.unbroken(". ".join(parts))


def _in_words(judged: Judged) -> str:
    if not judged.change:
        return judged.sign.word
    return judged.change if judged.change.endswith(judged.sign.word) else f"{judged.sign.word} ({judged.change})"


def judge(base: Chosen, other: Chosen, measured: Sequence[Comparison], of_other: Sequence[Comparison] = ()) -> Judged:
    """Judge a cell against the base: paired where one block measured both, else unpaired and labelled as such. Of wrong
    outputs the sign says so; the figures stay. `measured`: comparisons of the base; `of_other`: of the other's run."""
    beside = (*(measured if base.run_id == other.run_id else ()), *of_other)
    judged = _judged(base, other, measured, beside)
    wrong = [each for each, own in ((base, measured), (other, beside)) if is_wrong(each.cell, own)]
    if not wrong:
        return judged
    how = "; ".join(filter(None, (judged.how, why_wrong(wrong[-1].cell), "there is no verdict on speed")))
    sign = replace(STATES[WRONG], word=WRONG if wrong[-1] is other else WRONG_BASE)
    return replace(judged, sign=sign, how=how, wrong=tuple(each.key for each in wrong))


def _judged(base: Chosen, other: Chosen, measured: Sequence[Comparison], beside: Sequence[Comparison]) -> Judged:
    is_one_run = base.run_id == other.run_id
    paired = comparison_between(index_by_sides(measured), base.cell.id, other.cell.id) if is_one_run else None
    if paired is None:
        is_one_block = is_one_run and base.cell.block == other.cell.block != "" and base.cell.node == other.cell.node
        across = partial(unjudged.explain_across_blocks, is_one_machine=base.device == other.device != "")
        why = unjudged.explain_within_block if is_one_block else across
        by_processor = bool(Times.of([base.cell], measured).by_processor | Times.of([other.cell], beside).by_processor)
        return _unpaired(base.cell, other.cell, *why(base.cell, other.cell), by_processor=by_processor)
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


def _unpaired(base: Cell, other: Cell, sign: Sign, why: str, *, by_processor: bool) -> Judged:
    """`sign`, `why`: that there is no verdict. `by_processor`: processor time is told of one of the two."""
    if not is_same_model(base, other):
        how = f"{other.model} is a different model than {base.model}: shown side by side, without a verdict."
        return Judged(Sign("≠", "different models", "quiet"), "", how)
    if len(base.samples_ms) < MIN_SAMPLES or len(other.samples_ms) < MIN_SAMPLES:
        return Judged(sign_of("not comparable"), "", "One of the two has too few launches.")
    if base.shapes != other.shapes or (base.batch != other.batch and items_factor(base, other) is None):
        return Judged(sign_of("not comparable"), "", "The workloads differ: other shapes, or one without a batch.")
    if base.simulated or other.simulated:
        return Judged(sign_of("not comparable"), "", simulated.NOTE)
    by_processor = by_processor and min(len(base.cpu_samples_ms), len(other.cpu_samples_ms)) > 1
    samples = [side.cpu_samples_ms if by_processor else side.samples_ms for side in (base, other)]
    judged = verdicts.judge_unpaired(*samples)
    figures = judged.ratio, judged.ci_low, judged.ci_high
    if (times := items_factor(base, other)) is not None:
        figures = times / judged.ratio, times / judged.ci_high, times / judged.ci_low
    is_items = times is not None
    words = ("more items/s", "fewer items/s") if is_items else UNJUDGED
    change = numbers.change(*figures, words=words)
    interval = numbers.change_interval(*figures[1:], ratio=figures[0], words=words)
    interval = f"{interval}, {PROCESSOR}" if by_processor else interval
    how = f"{interval}; {why}, no verdict"
    return Judged(sign, change, how, *figures, is_items, by_processor=by_processor, words=words)


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
        text = " ".join((self.name, *self.texts)).lower()
        return all(word in text for word in wanted.lower().split())


def make_lines(chosen: Sequence[Chosen], judged: Sequence[Judged]) -> list[Line]:
    """Metrics, judgements of the outputs, axes and facts of the cells; without what none of them has."""
    cells = [choice.cell for choice in chosen]
    shown = [metric for metric in METRICS if metric.title and metric.name not in OF_SINGLE_LAUNCHES]
    known = [metric for metric in shown if any(metric.value(cell) is not None for cell in cells)]
    measured = [_measured(metric, cells, judged) for metric in known]
    settings = [(axis.heading, axis.label) for axis in axes.AXES]
    told = [_fact(name, [write(cell) for cell in cells]) for name, write in (*JUDGEMENTS, *settings, *FACTS)]
    keys = {key for verdict in judged for key in verdict.wrong}
    outputs = _fact("Outputs", [WRONG if choice.key in keys else "" for choice in chosen])
    return [line for line in (*measured, outputs, *told) if any(line.texts)]


def _fact(name: str, texts: Sequence[str]) -> Line:
    return Line(name, texts, [Change()] * len(texts), [text or None for text in texts])


def _measured(metric: Metric, cells: Sequence[Cell], judged: Sequence[Judged]) -> Line:
    changes = [
        describe_change(metric, cells[0], other, verdict) for other, verdict in zip(cells[1:], judged, strict=False)
    ]
    verdicts = [verdict.metrics.get(metric.name) for verdict in judged]
    # of launches all or none
    verdicts = [None] * len(judged) if metric.launch_title and None in verdicts else verdicts
    # the base by what the first of the others is judged by
    told = [
        _figure(metric, cell, verdict, is_base=cell is cells[0])
        for cell, verdict in zip(cells, [*verdicts[:1], *verdicts] or [None], strict=False)
    ]
    heading = metric.launch_title.capitalize() if metric.launch_title and any(verdicts) else title(metric)
    return Line(heading, [text for text, _ in told], [Change(), *changes], [value for _, value in told])


def _figure(
    metric: Metric, cell: Cell, judged: MetricChange | None, *, is_base: bool
) -> tuple[str, float | bool | None]:
    """A cell's figure in words and as it is: the median of the launches that the verdict beside it is of, where its own
    is of others."""
    if judged is None or not (metric.launch_title or metric_changes.is_of_launches(judged)):
        return metric_with_unit(metric, cell, has_interval=True), metric.value(cell)
    value = judged.baseline if is_base else judged.candidate
    return f"{metric_changes.format_value(judged, value)}{' of CPU time' if judged.is_processor else ''}", value


def describe_change(metric: Metric, base: Cell, other: Cell, judged: Judged) -> Change:
    """By how much a metric differs from the base's. p50 and items per second say what the verdict says.

    Nothing where a difference would mean nothing: other models, other shapes, another batch.
    """
    old, new = metric.value(base), metric.value(other)
    are_alike = is_same_model(base, other) and base.shapes == other.shapes
    if not metric.better or not old or not new or not are_alike:
        return Change()
    is_told = not judged.is_rate and None not in (judged.ratio, judged.low, judged.high)
    of_time, of_items = (PROCESSOR_TIME, OF_PROCESSOR) if judged.by_processor else (P50, THROUGHPUT)
    is_judged = metric.name in (of_time, of_items) and is_told
    if base.batch != other.batch:
        is_of_items = is_judged and judged.is_items and metric.name == of_items
        return Change(judged.change, judged.ratio) if is_of_items else Change()
    if metric.name in (P50, THROUGHPUT) and judged.by_processor:
        return Change()
    if (verdict := judged.metrics.get(metric.name)) is not None and (
        metric.name not in (P50, PROCESSOR_TIME) or judged.is_rate
    ):
        return _verdict(verdict)
    if not is_judged:
        return Change(numbers.change(new / old, words=_unjudged(metric)), new / old)
    ratio, low, high = judged.ratio or 1.0, judged.low or 1.0, judged.high or 1.0
    words = judged.words
    if metric.name == of_items:
        ratio, low, high, words = 1 / ratio, 1 / high, 1 / low, _unjudged(metric)
    # where the values on this line, divided, would give another change, its own stands in the verdict above alone
    is_alike = numbers.format_divisible_pair(old, new, low=low, high=high) is not None
    return Change(numbers.change(ratio, low, high, words=words), ratio) if is_alike else Change()


def _unjudged(metric: Metric) -> numbers.Words:
    """What more of it is called, and less, where nobody judges it."""
    if metric.name in (THROUGHPUT, OF_PROCESSOR):
        return "more", "fewer"
    return UNJUDGED if metric.unit == "ms" else ("more", "less")


def _verdict(change: MetricChange) -> Change:
    """`▲ 12 % slower`, by the launches of both; of growth the word alone."""
    return Change(metric_changes.marked(change), change.ratio)


def select_lines(rows: Sequence[Line], *, every: bool, wanted: str) -> list[Line]:
    """The rows that differ, or every row; of them those that have the words which were searched for."""
    return [line for line in rows if (every or line.differs) and line.holds(wanted)]


def make_table(chosen: Sequence[Chosen], rows: Sequence[Line]) -> Table:
    """A row a metric or fact, a column a cell, the base first."""
    heads = [Head("Row")]
    for choice, name in zip(chosen, name_cells(chosen), strict=True):
        heads.append(Head(name, is_text=True, note=f"run {choice.run_id}, {choice.cell.id}"))
    if heads[1:]:
        heads[1] = Head(f"{heads[1].text} (base)", is_text=True, note=heads[1].note)
    return Table("side", "Cells side by side", heads, [_row(line) for line in rows])


def _row(line: Line) -> tuple[Entry, ...]:
    texts = zip(line.texts, line.changes, strict=True)
    return (
        Entry(line.name, soft="" if line.differs else "equal"),
        *(Entry(text, soft=change.text) for text, change in texts),
    )


def make_file_row(chosen: Sequence[Chosen], line: Line) -> dict[str, str | float | None]:
    """Make a row of a file: each cell's figure under the cell's key, and its ratio to the base's under `KEY ratio`."""
    row: dict[str, str | float | None] = {"row": line.name}
    for choice, value, changed in zip(chosen, line.values, line.changes, strict=True):
        row[choice.key] = value
        if choice is not chosen[0]:
            row[f"{choice.key} ratio"] = changed.ratio
    return row
