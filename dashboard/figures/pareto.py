"""Charts of accuracy against latency with the Pareto front: of the cells of a run, and of settings over hardware."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from dashboard import axes
from dashboard.figures import accuracies, colours, scales, theme, traces
from dashboard.figures.figure import Address, Figure, empty_figure, latency_entry
from farm.contract.document_cells import Accuracy, Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.presenting.hardware import MeasuredSetting, find_fault
from farm.rules.presenting.hardware_words import format_setting
from farm.rules.presenting.lines import is_wrong
from farm.rules.presenting.tables import Column, Entry, Number, Table
from farm.rules.presenting.times import Times, clock_title
from farm.rules.quality import accuracy_metrics
from farm.rules.quality.accuracy import find_undominated, pareto_front
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import WRONG, with_mark

CELLS, HARDWARE = "pareto", "hardware"
HOW = "Members add it on the model’s page, as an .npz of inputs and labels, and run again."
NO_CELL = f"No cell was judged on labelled data. {HOW}"
NO_SETTING = f"No measured setting was judged on labelled data, so there is no accuracy to draw. {HOW}"
NONE_RIGHT = "Of the settings that were judged on labelled data none may be recommended: their outputs are wrong."
# diameters of points in pixels
SMALLEST, LARGEST = 8.0, 30.0
# points have a label only where there are at most so many
MAX_LABELS = 8


@dataclass(frozen=True, eq=False)
class Judged:
    """A point: a cell with its latency and accuracy. `value`: the accuracy's value; `goodness`: the same with its sign
    turned where less is better, so that more is always better; `interval`: of the accuracy; `words`: both figures for
    the text on hover; `target` and `setting`: in words, only in the chart over hardware; `time`: the latency with its
    interval in words, marked where it is CPU time."""

    cell: Cell
    accuracy: Accuracy
    p50_ms: float
    value: float
    href: str
    target: str = ""
    setting: str = ""
    is_processor: bool = False

    @property
    def goodness(self) -> float:
        return self.value if self.accuracy.higher_is_better else -self.value

    @property
    def interval(self) -> traces.Interval:
        return self.accuracy.ci_low, self.accuracy.ci_high

    @property
    def words(self) -> str:
        return f"{self.time}<br>{accuracy_metrics.metric_of(self.accuracy).format_with_interval(self.accuracy)}"

    @property
    def time(self) -> str:
        latency = numbers.latency(self.cell.p50_ms, self.cell.p50_ci_ms)
        return f"{latency} of CPU time" if self.is_processor else latency


def draw_cells(
    cells: Sequence[Cell],
    address: Address,
    comparisons: Sequence[Comparison] = (),
    weight: accuracies.Weight = accuracies.MODEL_SIZE,
) -> Figure:
    """Draw accuracy against latency of every cell that has both, except A/A twins and cells that were judged by another
    recipe than most. The latency is of the time that verdicts rest on. Dominated cells and cells with wrong outputs are
    faded, and the area of a point grows with the weight. Without such cells the chart is empty and says so."""
    times = Times.of(cells, comparisons).with_same_clock(cells)
    judged = _select_usual_recipe(
        _make_point(times.with_compared_time(cell), address(cell.id), is_processor=cell.id in times.by_processor)
        for cell in cells
        if cell.twin_of is None
    )
    if not judged:
        return empty_figure(CELLS, NO_CELL, accuracies.make_table([], frozenset(), address, times, weight))
    known = [point.cell for point in judged]
    along = axes.varying_axes(known)
    right = [point for point in judged if not is_wrong(point.cell)]
    places = find_undominated([(point.p50_ms, weight.count_steps(point.cell), -point.goodness) for point in right])
    front = [right[place] for place in places]
    others = [point for point in judged if point not in front]
    metric = accuracies.name_metric(judged[0].accuracy)
    groups = ((others, None), (front, colours.choose_cell_colour(known)))
    names = {cell.id: axes.name_of(cell, along) if along else "the model" for cell in known}
    return Figure(
        name=CELLS,
        title=_write_title(judged, front, along),
        summary=(
            f"{metric} against latency of {numbers.counted(len(judged), 'cell')}, {len(front)} of them on the Pareto "
            f"front; a larger point is {weight.larger}. The table below has every number."
        ),
        data=[
            _draw_front(front),
            *(_draw_group(points, names, known, weight, colour_of) for points, colour_of in groups if points),
        ],
        layout=_make_layout(judged, metric, f"{times.title(known)} of one inference, ms", showlegend=False),
        table=accuracies.make_table(known, frozenset(point.cell.id for point in front), address, times, weight),
        note=f"Whiskers: 95 % intervals. Dotted: the front of latency and accuracy. A larger point: {weight.larger}.",
    )


def _draw_group(
    points: Sequence[Judged],
    names: Mapping[str, str],
    every: Sequence[Cell],
    weight: accuracies.Weight,
    colour_of: Callable[[Cell], str] | None,
) -> theme.Json:
    """Draw the points of the front, or faded points where `colour_of` is None. `names`: the name of every drawn cell,
    by its id."""
    largest = max(weight.read(cell) or 0.0 for cell in every) or 1.0
    shares = [(weight.read(point.cell) or 0.0) / largest for point in points]
    ink = theme.SOFT if colour_of is None else theme.INK
    hovers = [
        f"{names[point.cell.id]}<br>{point.words}<br>{weight.format(weight.read(point.cell))}"
        f"{f'<br>{with_mark(WRONG)}' if is_wrong(point.cell) else ''}"
        for point in points
    ]
    marker = {
        "color": [colours.GREY if colour_of is None else colour_of(point.cell) for point in points],
        "size": [round(max(SMALLEST, LARGEST * sqrt(share)), 1) for share in shares],
        "opacity": 0.35 if colour_of is None else 0.9,
        "line": traces.make_pen(theme.LINE if colour_of is None else theme.INK, 1),
    }
    texts = [names[point.cell.id] for point in points]
    return _draw_points(points, texts, hovers, ink=ink, has_names=len(names) <= MAX_LABELS, marker=marker)


def _write_title(judged: Sequence[Judged], front: Sequence[Judged], along: Sequence[axes.Axis]) -> str:
    """Name the fastest cell of the front. Without a front, say that the outputs of all cells are wrong."""
    fastest = min(front or judged, key=lambda point: point.p50_ms)
    reached = f"{accuracies.name_metric(fastest.accuracy)} {accuracies.format_value(fastest.accuracy)}"
    if len(judged) == 1:
        return f"{fastest.time}, {reached}{'' if front else f': {WRONG}'}"
    if not front:
        return f"{WRONG.capitalize()} in all {len(judged)} cells, {reached} in the fastest"
    named = axes.name_of(fastest.cell, along)
    return (
        f"{len(front)} of {len(judged)} cells are on the Pareto front of time, accuracy and size; the fastest, "
        f"{named}, takes {fastest.time} at {reached}"
    )


def draw_hardware(
    measured: Sequence[MeasuredSetting], names: Sequence[str], address: Callable[[MeasuredSetting], str]
) -> Figure:
    """Draw the settings that may be recommended and were judged on labelled data. Only settings with the most frequent
    recipe and batch size are drawn, one colour for each target: where providers differ that of the provider of its
    first setting, else its own. Without any the chart is empty and says why. `names`: the targets in the order of their
    colours."""
    judged = _select_usual_recipe(
        _make_point(own.cell, address(own), target_label(own), format_setting(own), is_processor=own.is_processor)
        for own in measured
        if find_fault(own.cell) is None
    )
    batches = [point.cell.batch for point in judged]
    batch = max(batches, key=batches.count, default=None)
    judged = [point for point in judged if point.cell.batch == batch]
    front = _find_front(judged)
    table = Table.of(
        HARDWARE,
        "Accuracy and latency of each judged setting",
        _list_columns(front, judged),
        sorted(judged, key=lambda point: point.p50_ms),
    )
    if not judged:
        is_known = any(own.cell.accuracy is not None for own in measured)
        return empty_figure(HARDWARE, NONE_RIGHT if is_known else NO_SETTING, table)
    metric = accuracies.name_metric(judged[0].accuracy)
    time = clock_title([point.is_processor for point in judged])
    targets = list(dict.fromkeys(point.target for point in judged))
    fastest = min(front, key=lambda point: point.p50_ms)
    with_batch = f"batch {batch}" if batch is not None else "no batch"
    data = [_draw_target(judged, target, names.index(target) if target in names else len(names)) for target in targets]
    return Figure(
        name=HARDWARE,
        title=(
            f"{len(front)} of {numbers.counted(len(judged), 'setting')} on {numbers.counted(len(targets), 'target')} "
            f"{'is' if len(front) == 1 else 'are'} on the Pareto front; the fastest of them, on {fastest.target}, "
            f"takes {fastest.time} at {metric} {accuracies.format_value(fastest.accuracy)}"
        ),
        summary=(
            f"{metric} against {time} of {numbers.counted(len(judged), 'setting')} with {with_batch}, one "
            "mark a target. Different hardware, side by side. The table below has every number."
        ),
        data=[{**_draw_front(judged), "showlegend": False}, *data],
        layout=_make_layout(judged, metric, f"{time} of one inference, {with_batch}, ms", showlegend=len(targets) > 1),
        table=table,
        note="Whiskers: 95 % intervals. Dotted: the Pareto front, over all targets.",
    )


def _draw_target(judged: Sequence[Judged], target: str, place: int) -> theme.Json:
    """Draw the settings of a target. Its `place` among all targets decides the mark and, unless providers differ, the
    colour; otherwise the provider decides the colour."""
    own = [point for point in judged if point.target == target]
    colour = f"@series-{place + 1}" if place < theme.SLOTS else theme.OTHER
    if len({point.cell.provider for point in judged}) > 1:
        colour = colours.provider_colour(own[0].cell.provider)
    line = traces.make_pen(theme.INK, 1)
    marker = {"color": colour, "symbol": theme.MARKS[place % len(theme.MARKS)], "size": 10, "line": line}
    hovers = [f"{target}<br>{point.setting}<br>{point.words}" for point in own]
    precisions = [point.cell.precision for point in own]
    has_names = len(judged) <= MAX_LABELS
    return _draw_points(own, precisions, hovers, ink=theme.INK, has_names=has_names, marker=marker, name=target)


def target_label(measured: MeasuredSetting) -> str:
    return f"{measured.node} ({measured.tag})"


def _make_point(cell: Cell, href: str, target: str = "", setting: str = "", *, is_processor: bool) -> Judged | None:
    """Make the point of a cell; None where its latency or its accuracy is not known."""
    if cell.p50_ms is None or cell.accuracy is None or cell.accuracy.value is None:
        return None
    return Judged(cell, cell.accuracy, cell.p50_ms, cell.accuracy.value, href, target, setting, is_processor)


def _select_usual_recipe(points: Iterable[Judged | None]) -> list[Judged]:
    """Select the points that were judged by the most frequent recipe; None is dropped."""
    judged = [point for point in points if point is not None]
    recipes = [point.accuracy.recipe for point in judged]
    usual = max(recipes, key=recipes.count, default="")
    return [point for point in judged if point.accuracy.recipe == usual]


def _find_front(judged: Sequence[Judged]) -> list[Judged]:
    places = pareto_front([(point.p50_ms, point.goodness) for point in judged])
    return [judged[place] for place in places]


def _make_layout(judged: Sequence[Judged], metric: str, xaxis: str, *, showlegend: bool) -> theme.Json:
    is_share = accuracy_metrics.metric_of(judged[0].accuracy).is_share
    latencies = scales.list_reached([point.cell.p50_ci_ms for point in judged], *(point.p50_ms for point in judged))
    values = scales.list_reached([point.interval for point in judged], *(point.value for point in judged))
    return theme.make_layout(
        height=380,
        xaxis=theme.make_axis(xaxis, **scales.make_linear(latencies)),
        yaxis=theme.make_axis(metric, **scales.make_linear(values, from_zero=False, is_share=is_share)),
        showlegend=showlegend,
    )


def _draw_front(judged: Sequence[Judged]) -> theme.Json:
    """Draw the front of latency and accuracy alone, as steps."""
    front = _find_front(judged)
    steps = {**traces.make_pen(theme.SOFT, 1.5, "dot"), "shape": "hv"}
    return traces.make_points(
        [point.p50_ms for point in front], [point.value for point in front], mode="lines", line=steps
    )


def _draw_points(
    points: Sequence[Judged], names: Sequence[str], hovers: Sequence[str], *, ink: str, has_names: bool, **more: object
) -> theme.Json:
    p50s, values = [point.p50_ms for point in points], [point.value for point in points]
    return traces.make_points(
        p50s,
        values,
        mode="markers+text" if has_names else "markers",
        error_x=traces.make_whiskers(p50s, [point.cell.p50_ci_ms for point in points], theme.SOFT, thickness=1),
        error_y=traces.make_whiskers(values, [point.interval for point in points], theme.SOFT, thickness=1),
        text=[*names],
        textfont={"size": 12, "color": ink},
        customdata=[[point.href, words] for point, words in zip(points, hovers, strict=True)],
        hover="%{customdata[1]}",
        cliponaxis=False,
        **more,
    )


def _list_columns(front: Sequence[Judged], judged: Sequence[Judged]) -> tuple[Column[Judged], ...]:
    kinds = [point.is_processor for point in judged]
    are_mixed = len(set(kinds)) > 1
    return (
        Column("Target", lambda point: Entry(point.target)),
        Column("Setting", lambda point: Entry(point.setting, href=point.href)),
        Number(
            f"{clock_title(kinds)}, ms",
            lambda point: latency_entry(point.cell, is_marked=are_mixed and point.is_processor),
        ),
        Number("accuracy", lambda point: accuracies.accuracy_entry(point.cell), note="with its 95 % interval"),
        Column("Pareto front", lambda point: Entry("on the front" if point in front else "", int(point not in front))),
    )
