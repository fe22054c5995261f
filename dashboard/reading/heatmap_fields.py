"""The fields of the heat map: what each shows of its cell, and its colour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log

from dashboard import axes
from dashboard.figures.figure import Address
from dashboard.metrics import metric_with_unit
from dashboard.reading.heatmap_layout import Layout
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.reasons import CellStatus
from farm.rules.cells.metrics import BY_NAME as MEASURED
from farm.rules.comparing.quantities import change_of
from farm.rules.presenting import prefills
from farm.rules.presenting.lines import PROCESSOR, format_items_per_s, is_wrong, make_comparison_line, why_wrong
from farm.rules.presenting.times import Times
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import STATES, WRONG, Sign, sign_of

# along these axes cells do different amounts of work, so a longer time is no slowdown
WORKLOAD_AXES = ("batch", "shapes", "concurrency", "scenario")
OPEN_STATES = ("preparing", "queued", "measuring", "settling")
# at each of these relative changes the colour of a slower or faster cell gets one step deeper
STEPS = (0.05, 0.15)
# number of colours for the values of a metric
RAMP = 5


@dataclass(frozen=True)
class Metric:
    """A metric that can colour the map. `name`: its name in the address; `of`: its name in the table of metrics;
    `read`: returns a cell's value, which decides its colour; `write`: returns the value in words."""

    name: str
    of: str
    label: str

    def read(self, cell: Cell) -> float | None:
        # a verdict decides the colour itself
        return None if self.name == "verdict" else MEASURED[self.of].value(cell)

    def write(self, cell: Cell) -> str:
        return metric_with_unit(MEASURED[self.of], cell)


METRICS = (
    Metric("verdict", "p50_ms", "verdict"),
    Metric("p50", "p50_ms", "p50 latency"),
    Metric("throughput", "throughput", MEASURED["throughput"].title),
    Metric("session", "session_ms", MEASURED["session_ms"].title),
    Metric("first", "first_ms", MEASURED["first_ms"].title),
    Metric("memory", "peak_memory_bytes", MEASURED["peak_memory_bytes"].title),
)
BY_NAME = {metric.name: metric for metric in METRICS}


@dataclass(frozen=True)
class Field:
    """A field of the map. `value`: the figure in words; `tone`: the stylesheet's class of its colour; `title`: the text
    on hover."""

    href: str = ""
    value: str = ""
    sign: Sign | None = None
    tone: str = "none"
    title: str = ""


@dataclass(frozen=True)
class Grid:
    """The data from which fields are made. `states`: the states of open cells, by id; `ends`: the smallest and the
    largest value, empty without values; `times`: the kind of time that the verdicts rest on; `timed`: the cells with
    their figures of that kind, by id."""

    layout: Layout
    metric: Metric
    states: Mapping[str, str]
    ends: Sequence[float]
    address: Address
    times: Times
    timed: Mapping[str, Cell]

    @property
    def has_batch_columns(self) -> bool:
        return self.layout.column_axis.name == "batch"

    @cached_property
    def column_baselines(self) -> frozenset[str]:
        """Return the ids of the cells that are the baseline of a comparison along the columns' axis."""
        comparisons = (comparison for group in self.layout.compared.values() for comparison in group)
        axis = self.layout.column_axis.name
        return frozenset(comparison.baseline for comparison in comparisons if comparison.axis == axis)

    def compared_figure(self, cell: Cell) -> float | None:
        """Return the figure that verdicts compare, whatever metric colours the map: items per second where the columns
        are batches, else p50 in ms. None where it was not measured."""
        timed = self.timed[cell.id]
        return timed.throughput if self.has_batch_columns else timed.p50_ms

    def title(self, cell: Cell) -> str:
        """Write the time of a cell with its interval. Where that is processor time, the time by the clock follows."""
        timed, is_by_processor = self.timed[cell.id], cell.id in self.times.by_processor
        by_clock = f"; {numbers.latency(cell.p50_ms, cell.p50_ci_ms)} by the clock" if is_by_processor else ""
        return f"{self.times.title([cell])} {numbers.latency(timed.p50_ms, timed.p50_ci_ms)}{by_clock}"


def make_field(group: Sequence[Cell], grid: Grid, first_head: str) -> Field:
    """Make the field of the cells that share a row and column. Where there are several, such as a repeated baseline, it
    shows the first measured cell, or the first of all where none was measured. Without cells it says that the matrix
    has none. `first_head`: the label of the first column, whose cells are the baselines."""
    if not group:
        return Field(title="not in the matrix")
    cell = next((cell for cell in group if cell.p50_ms is not None), group[0])
    state = grid.states.get(cell.id, cell.status.value)
    href = grid.address(cell.id)
    if state in OPEN_STATES and cell.id not in grid.times.medians:
        return _make_open_field(cell, state, href, grid.times)
    if cell.p50_ms is None or cell.status == CellStatus.CANCELLED:
        return Field(href, sign=sign_of(state), tone="off", title=cell.reason.text if cell.reason else "")
    if grid.metric.name != "verdict":
        sign, timed = STATES[WRONG] if is_wrong(cell) else None, grid.timed[cell.id]
        return Field(
            href, grid.metric.write(timed), sign, _ramp_step(grid.metric.read(timed), grid.ends), grid.title(cell)
        )
    is_first = grid.layout.column_axis.label(cell) == first_head
    comparison = None if is_first else _find_comparison(group, grid, first_head)
    sign, tone, title = _judge(
        cell, comparison, grid, is_baseline=any(each.id in grid.column_baselines for each in group)
    )
    value, why = _format_value(cell, comparison, grid)
    if is_wrong(cell):
        # a cell with wrong outputs is called wrong, never faster or slower
        sign, tone, why = STATES[WRONG], "", "; ".join(filter(None, (why_wrong(cell), sign.word, why)))
    if state in OPEN_STATES:
        so_far = f"{sign.word}, {numbers.counted(len(cell.samples_ms), 'round')} so far"
        sign, tone = replace(sign, word=so_far), "running"
    stopped = cell.reason.text if cell.reason else ""
    return Field(href, value, sign, tone, "; ".join(filter(None, (title, why, stopped))))


def _format_value(cell: Cell, comparison: Comparison | None, grid: Grid) -> tuple[str, str]:
    """Return the cell's figure in the quantity by which its row is judged, and an empty reason. Where the figure
    divided by the baseline's would contradict the shown change, return an empty figure and the reason."""
    change = None if comparison is None else change_of(comparison, grid.layout.by_id)
    figure = grid.compared_figure(cell)
    if comparison is not None and change is not None and change.figures is not None:
        base = grid.compared_figure(grid.layout.by_id[comparison.baseline])
        _, low, high = change.figures
        is_of_figures = change.quantity == ("items" if grid.has_batch_columns else "latency")
        if (
            is_of_figures
            and base
            and figure
            and numbers.format_divisible_pair(base, figure, low=low, high=high) is None
        ):
            return "", "its own median, over all its launches, is apart otherwise than the pairs, so it is left out"
    timed = grid.timed[cell.id]
    unit = "tokens/s" if prefills.is_generated(cell) else "items/s"
    text = (
        f"{format_items_per_s(timed)} {unit}"
        if grid.has_batch_columns and figure is not None
        else grid.metric.write(timed)
    )
    return text, ""


def _make_open_field(cell: Cell, state: str, href: str, times: Times) -> Field:
    """Make the field of a cell that has not ended, with the median of its launches so far."""
    sign, rounds = sign_of(state), len(cell.samples_ms)
    if not rounds:
        return Field(href, sign=sign, tone="running" if state == "measuring" else "")
    so_far = Sign(sign.mark, f"{numbers.counted(rounds, 'round')} so far", sign.tone)
    title = f"no verdict yet; {PROCESSOR}" if cell.id in times.by_processor else "no verdict yet"
    return Field(href, f"{numbers.milliseconds(times.with_compared_time(cell).p50_ms)} ms", so_far, "running", title)


def _judge(cell: Cell, comparison: Comparison | None, grid: Grid, *, is_baseline: bool) -> tuple[Sign, str, str]:
    """Judge a cell against the baseline of its row: the sign, the class of its colour, and the text on hover."""
    if comparison is None:
        other = next((f"compared by {pair.axis}" for pair in grid.layout.compared.get(cell.id, ())), "not compared")
        return Sign("·", "baseline" if is_baseline else other, "quiet"), "", grid.title(cell)
    change = change_of(comparison, grid.layout.by_id)
    sign = sign_of(change.word)
    if change.ratio is None:
        return sign, "", comparison.reason or ""
    if grid.layout.column_axis.name in WORKLOAD_AXES and change.quantity == "latency":
        return Sign("·", f"{numbers.plain(change.ratio)}× the time", "quiet"), "", grid.title(cell)
    words = change.text if change.is_decided else ", ".join(filter(None, (sign.word, change.text)))
    title = f"{words}; {make_comparison_line(comparison, grid.layout.by_id).details}"
    tone = change_tone(change.size, is_gain=change.is_gain) if change.is_decided else ""
    return Sign(sign.mark, words, sign.tone), tone, title


def _find_comparison(group: Sequence[Cell], grid: Grid, first_head: str) -> Comparison | None:
    """Find the comparison with a cell of the first column, else of another column; None where there is none."""
    by_id, column_axis = grid.layout.by_id, grid.layout.column_axis
    along_columns = [
        pair
        for cell in group
        for pair in grid.layout.compared.get(cell.id, ())
        if pair.baseline in by_id
        and [axis.name for axis in axes.varying_axes([by_id[pair.baseline], cell])] == [column_axis.name]
    ]
    with_first = (pair for pair in along_columns if column_axis.label(by_id[pair.baseline]) == first_head)
    return next(with_first, next(iter(along_columns), None))


def change_tone(size: float, *, is_gain: bool) -> str:
    """Return the stylesheet's class for the colour of a change: `f1` to `f3` for gains and `s1` to `s3` for losses,
    where 3 is the deepest colour. `size`: the absolute natural logarithm of the change's ratio."""
    return f"{'f' if is_gain else 's'}{1 + sum(size >= log(1 + step) for step in STEPS)}"


def _ramp_step(value: float | None, ends: Sequence[float]) -> str:
    """Return the class of the value's step, `r1` to `r5`, on a logarithmic colour ramp between `ends`. Empty for None,
    for values that are not above 0, and without `ends`."""
    if value is None or value <= 0 or not ends:
        return ""
    low, high = ends
    part = log(value / low) / log(high / low) if high > low else 0.0
    return f"r{min(RAMP, 1 + int(part * RAMP))}"
