"""A cell that works on for minutes: its latency point by point, and when it throttled."""

from collections.abc import Sequence

from dashboard.figures import colours, scales, theme
from dashboard.figures.cell_lines import CellLines, Placed
from dashboard.figures.figure import Address, Figure, nothing
from dashboard.figures.theme import Json
from farm.contract.document_cells import Cell, CurvePoint, Sustained
from farm.rules.presenting.tables import Column, Entry, Number, Table, written
from farm.rules.wording import numbers, titles

NAME = "sustained"
CAPTION = "Latency of a process that works on"
# in seconds below, in minutes from here on
LONG_S = 180.0


def sustained(cell: Cell) -> Figure:
    """One point a minute; empty with its reason where the process did not last, or was not asked for."""
    curve = cell.sustained or Sustained()
    table = _table(curve.points)
    if not curve.points:
        return nothing(NAME, curve.reason.text if curve.reason else "No sustained work was asked for.", table)
    last = curve.points[-1]
    unit_s, unit = (60.0, "min") if last.at_s + last.span_s >= LONG_S else (1.0, "s")
    return Figure(
        name=NAME,
        title=curve.text.rstrip("."),
        summary=(
            f"p50 of each of {numbers.counted(len(curve.points), 'point')} of one process, from "
            f"{numbers.milliseconds(min(point.p50_ms for point in curve.points))} to "
            f"{numbers.milliseconds(max(point.p50_ms for point in curve.points))} ms. The table below has every point."
        ),
        data=[_line(cell, curve.points, unit_s)],
        layout=theme.layout(
            height=260,
            xaxis=theme.axis(f"{unit} since it began", **scales.linear([(last.at_s + last.span_s) / unit_s])),
            yaxis=theme.axis("p50, ms", **scales.linear([point.p50_ms for point in curve.points])),
            shapes=_shapes(curve, unit_s),
        ),
        table=table,
        note=f"Line: the first point{'' if curve.throttle_s is None else '; dotted: from when p50 stays above it'}.",
    )


def together(cells: Sequence[Cell], address: Address) -> Figure:
    """The curves of several cells that have points, over minutes or seconds; that of the only one as on its page."""
    if len(cells) == 1:
        return sustained(cells[0])
    lines = CellLines(cells, address)
    points = lines.rows(_points)
    ends_s = [one.row.at_s + one.row.span_s for one in points]
    unit_s, unit = (60.0, "min") if max(ends_s) >= LONG_S else (1.0, "s")
    throttling = [cell for cell in cells if cell.sustained is not None and cell.sustained.throttle_s is not None]
    found = (
        f"{len(throttling)} of {numbers.counted(len(cells), 'cell')} throttled" if throttling else "No cell throttled"
    )
    return Figure(
        name=NAME,
        title=found + (f": {lines.name(throttling[0])}" if throttling else ""),
        summary=f"p50 of each of {numbers.counted(len(points), 'point')} of {len(cells)} processes. The table has all.",
        data=[
            lines.line(
                cell,
                [(point.at_s + point.span_s) / unit_s for point in _points(cell)],
                [point.p50_ms for point in _points(cell)],
                hover="%{x:.3~g}: %{y:.5~g} ms",
            )
            for cell in cells
        ],
        layout=theme.layout(
            height=280,
            xaxis=theme.axis(f"{unit} since it began", **scales.linear([one / unit_s for one in ends_s])),
            yaxis=theme.axis("p50, ms", **scales.linear([one.row.p50_ms for one in points])),
            showlegend=True,
        ),
        table=Table.of(NAME, CAPTION, lines.columns(_columns_of(points)), points),
    )


def _columns_of(points: Sequence[Placed[CurvePoint]]) -> Sequence[Column[CurvePoint]]:
    """Without energy where nobody could read it, so that the table fits."""
    return _COLUMNS if any(one.row.energy_mj is not None for one in points) else _COLUMNS[:-1]


def _points(cell: Cell) -> list[CurvePoint]:
    return cell.sustained.points if cell.sustained is not None else []


def _line(cell: Cell, points: list[CurvePoint], unit_s: float) -> Json:
    """Each point stands at its end: what it says is known then."""
    colour = colours.runtime(cell.runtime)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": titles.runtime(cell.runtime),
        "x": [(point.at_s + point.span_s) / unit_s for point in points],
        "y": [point.p50_ms for point in points],
        "line": {"color": colour, "width": 1.5},
        "marker": {"color": colour, "size": 7},
        "hovertemplate": "%{x:.3~g}: %{y:.5~g} ms<extra></extra>",
    }


def _shapes(curve: Sustained, unit_s: float) -> list[Json]:
    """The first point's level, and the moment it was left for good."""
    first = curve.points[0].p50_ms
    level: Json = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": first, "y1": first}
    shapes: list[Json] = [{**level, "line": {"width": 1, "color": theme.INK}}]
    if curve.throttle_s is not None:
        at = curve.throttle_s / unit_s
        moment: Json = {"type": "line", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1}
        shapes.append({**moment, "line": {"width": 1, "dash": "dot", "color": theme.SOFT}})
    return shapes


def _energy(value: float | None) -> str:
    return "not readable here" if value is None else numbers.plain(value)


_COLUMNS: tuple[Column[CurvePoint], ...] = (
    Number("from, s", lambda point: Entry(numbers.fixed(point.at_s, 1), point.at_s)),
    Number("for, s", lambda point: Entry(numbers.fixed(point.span_s, 1), point.span_s)),
    Number("inferences", lambda point: Entry(numbers.fixed(point.n, 0), point.n)),
    Number("p50, ms", lambda point: written(point.p50_ms, numbers.milliseconds)),
    Number("p90, ms", lambda point: written(point.p90_ms, numbers.milliseconds)),
    Number("mJ per inference", lambda point: written(point.energy_mj, _energy)),
)


def _table(points: list[CurvePoint]) -> Table:
    against: Column[CurvePoint] = Number(
        "against the first", lambda point: written(point.p50_ms / points[0].p50_ms, numbers.change)
    )
    return Table.of(NAME, CAPTION, (*_COLUMNS[:-1], against, _COLUMNS[-1]), points)
