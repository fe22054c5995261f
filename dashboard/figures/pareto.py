"""Accuracy against latency against bytes: the Pareto front drawn, dominated cells faded, areas as large as models."""

from collections.abc import Sequence
from math import sqrt

from dashboard import axes
from dashboard.figures import accuracies, colours, scales, theme
from dashboard.figures.figure import Address, Figure, nothing
from dashboard.figures.theme import Json
from farm.contract.document_cells import Cell
from farm.rules.quality.accuracy import pareto_front, undominated
from farm.rules.wording import numbers

NAME = "pareto"
NONE = "No cell was judged on labelled data: add some on the model’s page, an .npz of inputs and labels, and run again."
SMALLEST, LARGEST = 8.0, 30.0
# so many points are named in the drawing itself
MOST_LABELS = 8


def pareto(cells: Sequence[Cell], address: Address) -> Figure:
    """Every cell that has a latency and an accuracy; the metric is the one that most of them have."""
    judged = _drawn(cells)
    if not judged:
        return nothing(NAME, NONE, accuracies.table([], frozenset(), address))
    along = axes.varying(judged)
    front = undominated([(cell.p50_ms or 0.0, float(cell.model_bytes or 0), -_goodness(cell)) for cell in judged])
    chosen = [judged[at] for at in front]
    others = [cell for at, cell in enumerate(judged) if at not in set(front)]
    metric = accuracies.METRIC_NAMES[judged[0].accuracy.metric] if judged[0].accuracy else ""
    return Figure(
        name=NAME,
        title=_title(judged, chosen, along, metric=metric),
        summary=(
            f"{metric} against latency of {numbers.counted(len(judged), 'cell')}, {len(chosen)} of them on the Pareto "
            "front; the larger a point, the more bytes its model has. The table below has every number."
        ),
        data=[
            _line(judged),
            *([_points(others, judged, along, address, is_front=False)] if others else []),
            _points(chosen, judged, along, address, is_front=True),
        ],
        layout=theme.layout(
            height=380,
            xaxis=theme.axis(
                "p50 of one inference, ms",
                **scales.linear(scales.ends([c.p50_ci_ms for c in judged], *(c.p50_ms for c in judged))),
            ),
            yaxis=theme.axis(
                metric,
                tickformat=".4~p" if _is_share(judged) else ".3~g",
                **scales.linear(scales.ends(map(_interval, judged)), from_zero=False),
            ),
            showlegend=False,
        ),
        table=accuracies.table(judged, frozenset(cell.id for cell in chosen), address),
        note="Whiskers: 95 % intervals. Dotted: the front of latency and accuracy. A larger point: a larger model.",
    )


def _drawn(cells: Sequence[Cell]) -> list[Cell]:
    known = [
        cell
        for cell in cells
        if cell.p50_ms is not None
        and cell.twin_of is None
        and cell.accuracy is not None
        and cell.accuracy.value is not None
    ]
    recipes = [cell.accuracy.recipe for cell in known if cell.accuracy]
    usual = max(recipes, key=recipes.count, default="")
    return [cell for cell in known if cell.accuracy is not None and cell.accuracy.recipe == usual]


def _goodness(cell: Cell) -> float:
    """The accuracy; an error with its sign turned."""
    accuracy = cell.accuracy
    if accuracy is None or accuracy.value is None:
        return 0.0
    return accuracy.value if accuracy.higher_is_better else -accuracy.value


def _value(cell: Cell) -> float:
    return abs(_goodness(cell))


def _is_share(cells: Sequence[Cell]) -> bool:
    return cells[0].accuracy is not None and cells[0].accuracy.higher_is_better


def _title(cells: Sequence[Cell], front: Sequence[Cell], along: Sequence[axes.Axis], *, metric: str) -> str:
    if len(cells) == 1:
        return f"{numbers.latency(cells[0].p50_ms, cells[0].p50_ci_ms)}, {metric} {accuracies.value(cells[0].accuracy)}"
    fastest = min(front, key=lambda cell: cell.p50_ms or 0.0)
    return (
        f"{len(front)} of {len(cells)} cells are on the Pareto front; the fastest, {axes.name_of(fastest, along)}, "
        f"takes {numbers.latency(fastest.p50_ms, fastest.p50_ci_ms)} at {metric} {accuracies.value(fastest.accuracy)}"
    )


def _line(cells: Sequence[Cell]) -> Json:
    """The front of latency and accuracy alone, as steps: what one gives up for speed."""
    at = pareto_front([(cell.p50_ms or 0.0, _goodness(cell)) for cell in cells])
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [cells[place].p50_ms for place in at],
        "y": [_value(cells[place]) for place in at],
        "line": {"color": theme.SOFT, "width": 1.5, "dash": "dot", "shape": "hv"},
        "hoverinfo": "skip",
    }


def _points(
    cells: Sequence[Cell], whole: Sequence[Cell], along: Sequence[axes.Axis], address: Address, *, is_front: bool
) -> Json:
    colour_of = colours.of_cells(whole)
    names = [axes.name_of(cell, along) if along else "the model" for cell in cells]
    return {
        "type": "scatter",
        "mode": "markers+text" if len(whole) <= MOST_LABELS else "markers",
        "x": [cell.p50_ms for cell in cells],
        "y": [_value(cell) for cell in cells],
        "error_x": _errors([cell.p50_ci_ms or (cell.p50_ms or 0.0,) * 2 for cell in cells], [c.p50_ms for c in cells]),
        "error_y": _errors([_interval(cell) for cell in cells], [_value(cell) for cell in cells]),
        "text": names,
        "textposition": "top center",
        "textfont": {"size": 12, "color": theme.INK if is_front else theme.SOFT},
        "marker": {
            "color": [colour_of(cell) if is_front else colours.GREY for cell in cells],
            "size": [_diameter(cell, whole) for cell in cells],
            "opacity": 0.9 if is_front else 0.35,
            "line": {"width": 1, "color": theme.INK if is_front else theme.LINE},
        },
        "customdata": [
            [address(cell.id), f"{name}<br>{_words(cell)}"] for cell, name in zip(cells, names, strict=True)
        ],
        "hovertemplate": "%{customdata[1]}<extra></extra>",
        "cliponaxis": False,
    }


def _words(cell: Cell) -> str:
    return (
        f"{numbers.latency(cell.p50_ms, cell.p50_ci_ms)}<br>{accuracies.value(cell.accuracy)} "
        f"({accuracies.interval(cell.accuracy)})<br>{numbers.size(cell.model_bytes)}"
    )


def _interval(cell: Cell) -> tuple[float, float]:
    accuracy = cell.accuracy
    if accuracy is None or accuracy.ci_low is None or accuracy.ci_high is None:
        return _value(cell), _value(cell)
    return accuracy.ci_low, accuracy.ci_high


def _errors(intervals: Sequence[tuple[float, ...]], values: Sequence[float | None]) -> Json:
    pairs = list(zip(intervals, values, strict=True))
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, high - (value or 0.0)) for (_, high), value in pairs],
        "arrayminus": [max(0.0, (value or 0.0) - low) for (low, _), value in pairs],
        "color": theme.SOFT,
        "thickness": 1,
        "width": 3,
    }


def _diameter(cell: Cell, whole: Sequence[Cell]) -> float:
    """Areas in proportion to bytes, the largest model's point LARGEST wide."""
    largest = max((one.model_bytes or 0 for one in whole), default=0)
    if not largest or not cell.model_bytes:
        return SMALLEST
    return round(max(SMALLEST, LARGEST * sqrt(cell.model_bytes / largest)), 1)
