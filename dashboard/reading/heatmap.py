"""The heat map of a run's cells: a table with real links, coloured by verdict or by a metric."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import log

from dashboard import axes
from dashboard.figures.figure import Address
from dashboard.metrics import metric_with_unit
from farm.base.grouping import group_by
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.reasons import CellStatus
from farm.rules.cells.metrics import BY_NAME as MEASURED
from farm.rules.comparing.quantities import change_of
from farm.rules.presenting import prefills
from farm.rules.presenting.headlines import rank_results
from farm.rules.presenting.lines import PROCESSOR, format_items_per_s, is_wrong, make_comparison_line, why_wrong
from farm.rules.presenting.times import Times, clock_title
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import STATES, WRONG, Sign, sign_of

# along these more work is done, so that more time is no slowdown
WORKLOAD_AXES = ("batch", "shapes", "concurrency", "scenario")
OPEN_STATES = ("preparing", "queued", "measuring", "settling")
# from these changes on a slower or faster cell has the next deeper colour
STEPS = (0.05, 0.15)
RAMP = 5
COMPACT_FROM = 9
CLOCK = "by the clock"
# with more fields a map is shown part by part, of about so many each
MAX_FIELDS, PART_FIELDS, MIN_ROWS = 100, 60, 4


@dataclass(frozen=True)
class Metric:
    """What colours the map. `of`: its name in the table of metrics; `read` gives a number per cell, `write` words."""

    name: str
    of: str
    label: str
    read: Callable[[Cell], float | None]
    write: Callable[[Cell], str]


def _make_colour_metric(name: str, place: str, *, label: str = "") -> Metric:
    metric = MEASURED[place]
    return Metric(name, place, label or metric.title, metric.value, partial(metric_with_unit, metric))


METRICS = (
    replace(_make_colour_metric("verdict", "p50_ms", label="verdict"), read=lambda cell: None),
    _make_colour_metric("p50", "p50_ms", label="p50 latency"),
    _make_colour_metric("throughput", "throughput"),
    _make_colour_metric("session", "session_ms"),
    _make_colour_metric("first", "first_ms"),
    _make_colour_metric("memory", "peak_memory_bytes"),
)
BY_NAME = {metric.name: metric for metric in METRICS}


@dataclass(frozen=True)
class Place:
    """One field of the map. `tone` names classes of the stylesheet, `title` tells the rest on hover."""

    href: str = ""
    value: str = ""
    sign: Sign | None = None
    tone: str = "none"
    title: str = ""


@dataclass(frozen=True)
class Row:
    """`labels`: the row's places on the axes down the side."""

    labels: tuple[str, ...]
    places: Sequence[Place]


@dataclass(frozen=True)
class Part:
    """Which rows of a large map are shown: `first` to `last` of `total`, the part `number` of `count`, from 1 on."""

    number: int
    count: int
    first: int
    last: int
    total: int


@dataclass(frozen=True)
class HeatMap:
    """`column_axis` heads the columns; `row_axes` the rows. `cells`: those in the rows; `part`: None where all are.

    `ends`: the smallest and the largest value, which have the lightest and the darkest colour; `so_far`: of which clock
    the times of cells without a verdict are, as their verdicts may rest on the other.
    """

    metric: Metric
    column_axis: axes.Axis
    row_axes: Sequence[axes.Axis]
    columns: Sequence[str]
    rows: Sequence[Row]
    choices: Sequence[axes.Axis] = field(default_factory=tuple)
    cells: Sequence[Cell] = field(default_factory=tuple)
    part: Part | None = None
    ends: Sequence[str] = ()
    so_far: str = ""

    @property
    def is_compact(self) -> bool:
        return len(self.columns) >= COMPACT_FROM

    @property
    def is_of_items(self) -> bool:
        return self.metric.name == "verdict" and self.column_axis.name == "batch"

    @property
    def of_tokens(self) -> str:
        """Say that the figures are of tokens; empty where they are of inferences."""
        is_timed = self.metric.name in ("verdict", "p50", "throughput")
        if not is_timed or not any(map(prefills.is_generated, self.cells)):
            return ""
        is_rate = self.is_of_items or self.metric.name == "throughput"
        return f"Items are {prefills.ITEMS_NOTE}" if is_rate else "Times are of one new token"


Places = Mapping[str, Sequence[Cell]]


@dataclass(frozen=True)
class Layout:
    """Where every cell of a run stands, which does not depend on what colours the map.

    `rows`: labels, and cells by their column. Of a large map those with the largest slowdowns come first.
    """

    cells: Sequence[Cell]
    choices: Sequence[axes.Axis]
    column_axis: axes.Axis
    row_axes: Sequence[axes.Axis]
    heads: Sequence[str]
    rows: Sequence[tuple[tuple[str, ...], Places]]
    by_id: Mapping[str, Cell]
    compared: Mapping[str, Sequence[Comparison]]
    times: Times

    @property
    def is_large(self) -> bool:
        return len(self.rows) * len(self.heads) > MAX_FIELDS and len(self.rows) > MIN_ROWS


@dataclass(frozen=True)
class Grid:
    """What the fields are filled from. `states`: of open cells, by id; `ends`: the smallest and the largest value.

    `times`: of the cells, by the verdicts of the run; `timed`: the cells with those, by id.
    """

    laid: Layout
    metric: Metric
    states: Mapping[str, str]
    ends: Sequence[float]
    address: Address
    times: Times
    timed: Mapping[str, Cell]

    @property
    def is_of_items(self) -> bool:
        return self.laid.column_axis.name == "batch"

    @cached_property
    def baselines(self) -> frozenset[str]:
        pairs = (pair for some in self.laid.compared.values() for pair in some)
        return frozenset(pair.baseline for pair in pairs if pair.axis == self.laid.column_axis.name)

    def figure(self, cell: Cell) -> float | None:
        shown = self.timed[cell.id]
        return shown.throughput if self.is_of_items else shown.p50_ms

    def title(self, cell: Cell) -> str:
        """Write the time of a cell with its interval, and where that is processor time also the time by the clock."""
        timed, is_by_processor = self.timed[cell.id], cell.id in self.times.by_processor
        by_clock = f"; {numbers.latency(cell.p50_ms, cell.p50_ci_ms)} by the clock" if is_by_processor else ""
        return f"{self.times.title([cell])} {numbers.latency(timed.p50_ms, timed.p50_ci_ms)}{by_clock}"


def make_heat_map(
    cells: Iterable[Cell],
    comparisons: Sequence[Comparison],
    address: Address,
    *,
    columns: str = "",
    metric: str = "",
    states: Mapping[str, str] | None = None,
    part: int = 1,
) -> HeatMap:
    """Make the map of these cells without A/A twins. `states`: of those that have not ended, what goes on in their
    block, by id. `columns`, `metric` and `part` as make_layout and draw_layout take them."""
    return draw_layout(
        make_layout(cells, comparisons, columns=columns), address, metric=metric, states=states, part=part
    )


def make_layout(cells: Iterable[Cell], comparisons: Sequence[Comparison], *, columns: str = "") -> Layout:
    """Lay out the cells in rows and columns, without A/A twins. `columns`: the name of the axis that the columns are
    of; where that does not vary, the axis of the leading comparison, else the runtime, else the last that varies."""
    shown = [cell for cell in cells if cell.twin_of is None]
    choices = axes.varying_axes(shown)
    leading = rank_results(comparisons, {cell.id: cell for cell in shown}).axis
    column_axis = _choose_column_axis(choices, columns, leading)
    row_axes = [axis for axis in choices if axis != column_axis]
    groups: dict[tuple[str, ...], dict[str, list[Cell]]] = {}
    for cell in shown:
        groups.setdefault(axes.place_of(cell, row_axes), {}).setdefault(column_axis.label(cell), []).append(cell)
    laid = Layout(
        cells=shown,
        choices=choices,
        column_axis=column_axis,
        row_axes=row_axes,
        heads=[place[0] for place in axes.places(shown, [column_axis])],
        rows=sorted(
            ((labels, groups[labels]) for labels in axes.places(shown, row_axes)),
            # measured rows first, and those that will be
            key=lambda row: all(
                cell.reason is not None and cell.p50_ms is None for cells in row[1].values() for cell in cells
            ),
        ),
        by_id={cell.id: cell for cell in shown},
        compared=group_by(comparisons, lambda comparison: comparison.candidate),
        times=Times.of(shown, comparisons),
    )
    return replace(laid, rows=_sort_rows(laid)) if laid.is_large else laid


def _sort_rows(laid: Layout) -> list[tuple[tuple[str, ...], Places]]:
    """Sort the rows by their largest slowdown along the columns; those without one keep their order at the end."""
    along = laid.column_axis.name

    def slowdown(row: tuple[tuple[str, ...], Places]) -> float:
        compared = (pair for cells in row[1].values() for cell in cells for pair in laid.compared.get(cell.id, ()))
        return max(
            (pair.ratio or 1.0 for pair in compared if pair.axis == along and pair.verdict == "slower"), default=0.0
        )

    return sorted(laid.rows, key=slowdown, reverse=True)


def draw_layout(
    laid: Layout, address: Address, *, metric: str = "", states: Mapping[str, str] | None = None, part: int = 1
) -> HeatMap:
    """Draw the map, coloured by a metric, or by verdict where the name is unknown; of a large map only the part with
    this number, from 1 on, or the nearest. `states`: of cells that have not ended, by id."""
    chosen = BY_NAME.get(metric, METRICS[0])
    if chosen.name != "verdict":
        chosen = replace(chosen, label=laid.times.heading(chosen.label, chosen.of, laid.cells))
    open_ids = {name for name, state in (states or {}).items() if state in OPEN_STATES} - laid.times.medians.keys()
    live = [cell for cell in laid.cells if cell.id in open_ids and cell.samples_ms]
    times = laid.times.with_same_clock(live)
    timed, read = [times.with_compared_figures(cell) for cell in laid.cells], chosen.read
    known = sorted((cell for cell in timed if (read(cell) or 0.0) > 0), key=lambda cell: read(cell) or 0.0)
    ends = [known[0], known[-1]] if known else []
    grid = Grid(
        laid=laid,
        metric=chosen,
        states=states or {},
        ends=[read(cell) or 0.0 for cell in ends],
        address=address,
        times=times,
        timed={cell.id: cell for cell in timed},
    )
    which = _find_part(laid, part) if laid.is_large else None
    shown = laid.rows if which is None else laid.rows[which.first - 1 : which.last]
    rows = [
        Row(labels=labels, places=[_make_place(places.get(head, ()), grid, laid.heads[0]) for head in laid.heads])
        for labels, places in shown
    ]
    cells = [cell for _, places in shown for group in places.values() for cell in group]
    in_words = [chosen.write(cell) for cell in ends]
    place = (chosen, laid.column_axis, laid.row_axes, laid.heads, rows, laid.choices, cells, which, in_words)
    return HeatMap(*place, so_far=clock_title([cell.id in times.by_processor for cell in live], CLOCK) if live else "")


def _find_part(laid: Layout, number: int) -> Part:
    """Find the part with this number, or the nearest one where there is no such part."""
    each = max(MIN_ROWS, PART_FIELDS // len(laid.heads))
    count = -(-len(laid.rows) // each)
    number = min(max(1, number), count)
    first = (number - 1) * each + 1
    return Part(number, count, first, min(first + each - 1, len(laid.rows)), len(laid.rows))


def _choose_column_axis(choices: Sequence[axes.Axis], *wished: str) -> axes.Axis:
    """Choose the first wished axis that varies, else the runtime if it varies, else the last axis that does."""
    named = {axis.name: axis for axis in choices}
    last = choices[-1] if choices else axes.BY_NAME["runtime"]
    return next((named[name] for name in (*wished, "runtime") if name in named), last)


def _make_place(group: Sequence[Cell], grid: Grid, first_head: str) -> Place:
    """Make the field of the cells at one place. Where a block repeats its baseline, it shows the first one measured."""
    if not group:
        return Place(title="not in the matrix")
    cell = next((cell for cell in group if cell.p50_ms is not None), group[0])
    state = grid.states.get(cell.id, cell.status.value)
    href = grid.address(cell.id)
    if state in OPEN_STATES and cell.id not in grid.times.medians:
        return _make_open_place(cell, state, href, grid.times)
    if cell.p50_ms is None or cell.status == CellStatus.CANCELLED:
        return Place(href, sign=sign_of(state), tone="off", title=cell.reason.text if cell.reason else "")
    if grid.metric.name != "verdict":
        sign, timed = STATES[WRONG] if is_wrong(cell) else None, grid.timed[cell.id]
        return Place(
            href, grid.metric.write(timed), sign, _ramp_step(grid.metric.read(timed), grid.ends), grid.title(cell)
        )
    comparison = None if grid.laid.column_axis.label(cell) == first_head else _find_comparison(group, grid, first_head)
    sign, tone, title = _judge(cell, comparison, grid, is_baseline=any(each.id in grid.baselines for each in group))
    value, why = _format_value(cell, comparison, grid)
    if is_wrong(cell):
        # never praised, and marked wherever it stands
        sign, tone, why = STATES[WRONG], "", "; ".join(filter(None, (why_wrong(cell), sign.word, why)))
    if state in OPEN_STATES:
        so_far = f"{sign.word}, {numbers.counted(len(cell.samples_ms), 'round')} so far"
        sign, tone = replace(sign, word=so_far), "running"
    stopped = cell.reason.text if cell.reason else ""
    return Place(href, value, sign, tone, "; ".join(filter(None, (title, why, stopped))))


def _format_value(cell: Cell, comparison: Comparison | None, grid: Grid) -> tuple[str, str]:
    """Format the cell's figure in the quantity that its row is judged by. The figure is empty, and a reason is given,
    where dividing it by the baseline's would contradict the change that is shown."""
    change = None if comparison is None else change_of(comparison, grid.laid.by_id)
    own = grid.figure(cell)
    if comparison is not None and change is not None and change.figures is not None:
        base = grid.figure(grid.laid.by_id[comparison.baseline])
        _, low, high = change.figures
        is_of_figures = change.quantity == ("items" if grid.is_of_items else "latency")
        if is_of_figures and base and own and numbers.format_divisible_pair(base, own, low=low, high=high) is None:
            return "", "its own median, over all its launches, is apart otherwise than the pairs, so it is left out"
    timed = grid.timed[cell.id]
    unit = "tokens/s" if prefills.is_generated(cell) else "items/s"
    text = f"{format_items_per_s(timed)} {unit}" if grid.is_of_items and own is not None else grid.metric.write(timed)
    return text, ""


def _make_open_place(cell: Cell, state: str, href: str, times: Times) -> Place:
    """Make the field of a cell that has not ended, with the median of its launches so far."""
    sign, rounds = sign_of(state), len(cell.samples_ms)
    if not rounds:
        return Place(href, sign=sign, tone="running" if state == "measuring" else "")
    so_far = Sign(sign.mark, f"{numbers.counted(rounds, 'round')} so far", sign.tone)
    title = f"no verdict yet; {PROCESSOR}" if cell.id in times.by_processor else "no verdict yet"
    return Place(href, f"{numbers.milliseconds(times.with_compared_time(cell).p50_ms)} ms", so_far, "running", title)


def _judge(cell: Cell, comparison: Comparison | None, grid: Grid, *, is_baseline: bool) -> tuple[Sign, str, str]:
    """Judge a cell against the baseline of its row: the sign, the class of its colour, and what hovering shows."""
    if comparison is None:
        other = next((f"compared by {pair.axis}" for pair in grid.laid.compared.get(cell.id, ())), "not compared")
        return Sign("·", "baseline" if is_baseline else other, "quiet"), "", grid.title(cell)
    change = change_of(comparison, grid.laid.by_id)
    sign = sign_of(change.word)
    if change.ratio is None:
        return sign, "", comparison.reason or ""
    if grid.laid.column_axis.name in WORKLOAD_AXES and change.quantity == "latency":
        return Sign("·", f"{numbers.plain(change.ratio)}× the time", "quiet"), "", grid.title(cell)
    words = change.text if change.is_decided else ", ".join(filter(None, (sign.word, change.text)))
    title = f"{words}; {make_comparison_line(comparison, grid.laid.by_id).details}"
    tone = change_tone(change.size, is_gain=change.is_gain) if change.is_decided else ""
    return Sign(sign.mark, words, sign.tone), tone, title


def _find_comparison(group: Sequence[Cell], grid: Grid, first_head: str) -> Comparison | None:
    """Find the comparison with the first column, else with any other column; None where there is none."""
    by_id = grid.laid.by_id
    compared = [pair for cell in group for pair in grid.laid.compared.get(cell.id, ()) if pair.baseline in by_id]
    sides = ((pair, [by_id[pair.baseline], by_id[pair.candidate]]) for pair in compared)
    named = ((pair, [axis.name for axis in axes.varying_axes(cells)]) for pair, cells in sides)
    along = [pair for pair, names in named if names == [grid.laid.column_axis.name]]
    first = [pair for pair in along if grid.laid.column_axis.label(by_id[pair.baseline]) == first_head]
    return next(iter(first or along), None)


def change_tone(size: float, *, is_gain: bool) -> str:
    """Return the class of the colour of a change: `f1` to `f3` for gains, `s1` to `s3` for losses, the largest
    deepest. `size`: the natural logarithm of its ratio, without its sign."""
    return f"{'f' if is_gain else 's'}{1 + sum(size >= log(1 + step) for step in STEPS)}"


def _ramp_step(value: float | None, ends: Sequence[float]) -> str:
    """Return the class of a step of the colour ramp, by the logarithm of the value between the ends."""
    if value is None or value <= 0 or not ends:
        return ""
    low, high = ends
    part = log(value / low) / log(high / low) if high > low else 0.0
    return f"r{min(RAMP, 1 + int(part * RAMP))}"
