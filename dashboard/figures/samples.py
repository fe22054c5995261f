"""A cell's samples: one point for each process launch, in time order, with the interval and groups of launches."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from dashboard.figures import colours, theme
from dashboard.figures.figure import Figure, nothing
from dashboard.figures.theme import Json
from farm.contract.document_cells import Cell
from farm.rules.presenting.tables import Column, Entry, Number, Table, counted, written
from farm.rules.wording import numbers, titles

NAME = "samples"
# beyond this a percentage says less than the ends
WIDE = 0.5


@dataclass(frozen=True)
class Groups:
    """Launches split at the widest gap between neighbours, for a cell that was found bimodal."""

    edge: float
    low: float
    high: float


def split(samples: Sequence[float]) -> Groups | None:
    """The two groups of launches: split where neighbours lie furthest apart, by ratio. None for fewer than four."""
    ordered = sorted(samples)
    if len(ordered) < 4:
        return None
    gaps = [(after / before, place) for place, (before, after) in enumerate(pairwise(ordered))]
    _, place = max(gaps)
    return Groups(
        edge=(ordered[place] + ordered[place + 1]) / 2,
        low=median(ordered[: place + 1]),
        high=median(ordered[place + 1 :]),
    )


def samples(cell: Cell) -> Figure:
    """One point a launch; the band is the 95 % interval of their median."""
    groups = split(cell.samples_ms) if cell.is_bimodal else None
    table = _table(cell.samples_ms, groups)
    if not cell.samples_ms:
        return nothing(NAME, "No launch has been timed yet.", table)
    levels = [groups.low, groups.high] if groups is not None else []
    reached = theme.ends([cell.p50_ci_ms], cell.p50_ms, *levels, *cell.samples_ms)
    return Figure(
        name=NAME,
        title=finding(cell, groups),
        summary=(
            f"{numbers.counted(len(cell.samples_ms), 'process launch', 'process launches')} from "
            f"{numbers.milliseconds(min(cell.samples_ms))} to {numbers.milliseconds(max(cell.samples_ms))} ms. "
            "The table below has every launch."
        ),
        data=[
            theme.points(
                range(1, len(cell.samples_ms) + 1),
                cell.samples_ms,
                name=titles.runtime(cell.runtime),
                marker={"color": colours.runtime(cell.runtime), "size": 9},
                hover="launch %{x}: %{y:.5~g} ms",
            )
        ],
        layout=theme.layout(
            height=260,
            xaxis=theme.axis("process launch, in time order", dtick=max(1, len(cell.samples_ms) // 12), zeroline=False),
            yaxis=theme.axis("p50 of the launch, ms", zeroline=False, **theme.linear(reached, from_zero=False)),
            shapes=_shapes(cell, levels),
            annotations=[_note(level) for level in levels],
            # the names of groups stand beside the launches, not over them
            margin={"l": 8, "r": 16 if groups is None else 72, "t": 8, "b": 8},
        ),
        table=table,
        note="Line: the median of all launches, p50. Band: its 95 % interval." if cell.p50_ci_ms is not None else "",
    )


def finding(cell: Cell, groups: Groups | None) -> str:
    """How the launches lie: in two groups, or how closely together."""
    if groups is not None:
        return (
            f"Launches fall into two groups: {numbers.milliseconds(groups.low)} and "
            f"{numbers.milliseconds(groups.high)} ms ({numbers.change(groups.high / groups.low)})"
        )
    if len(cell.samples_ms) == 1:
        return "One launch: no spread is known"
    low, high = min(cell.samples_ms), max(cell.samples_ms)
    spread = high / low - 1
    if spread > WIDE:
        ends = f"{numbers.milliseconds(low)} to {numbers.milliseconds(high)} ms"
        return f"{len(cell.samples_ms)} launches spread from {ends}"
    return f"{len(cell.samples_ms)} launches within {numbers.share(spread)} of each other"


def _shapes(cell: Cell, levels: Sequence[float]) -> list[Json]:
    shapes = [theme.band("y", *cell.p50_ci_ms, percent=10)] if cell.p50_ci_ms is not None else []
    if cell.p50_ms is not None:
        shapes.append(theme.rule("y", cell.p50_ms, colour=theme.INK))
    return [*shapes, *(theme.rule("y", level, dash="dot") for level in levels)]


def _note(level: float) -> Json:
    return {
        "xref": "paper",
        "x": 1,
        "xanchor": "left",
        "y": level,
        "yanchor": "middle",
        "showarrow": False,
        "text": f"{numbers.milliseconds(level)} ms",
        "font": {"size": 11, "color": theme.SOFT},
    }


def _table(values: Sequence[float], groups: Groups | None) -> Table:
    def group_of(value: float) -> str:
        return "one group" if groups is None else "upper" if value > groups.edge else "lower"

    columns: tuple[Column[tuple[int, float]], ...] = (
        Number("Launch", lambda launch: counted(launch[0])),
        Number("p50, ms", lambda launch: written(launch[1])),
        Column("Group", lambda launch: Entry(group_of(launch[1]))),
    )
    return Table.of(NAME, "The median of each process launch", columns, list(enumerate(values, start=1)))
