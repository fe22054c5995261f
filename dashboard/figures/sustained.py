"""The chart of sustained work: the latency of a process that runs for minutes, and when it throttled."""

from collections.abc import Sequence

from dashboard.figures import cell_lines, scales, theme, traces
from dashboard.figures.cell_lines import CellLines, Curve
from dashboard.figures.figure import Address, Figure, empty_figure, rounded_entry
from farm.contract.document_cells import Cell, CurvePoint, Sustained
from farm.rules.presenting.tables import Column, Number, Table, as_number
from farm.rules.wording import numbers

NAME = "sustained"
CAPTION = "Latency of a process that works on"
# the axis is in minutes from this duration on, below it in seconds
LONG_S = 180.0


def draw_sustained(cell: Cell) -> Figure:
    """Draw the latency of a cell's process over time. The chart is empty and says why where the process did not last or
    sustained work was not requested."""
    curve = cell.sustained or Sustained()
    points = curve.points
    against: Column[CurvePoint] = Number(
        "against the first", lambda point: as_number(point.p50_ms / points[0].p50_ms, numbers.change)
    )
    table = Table.of(NAME, CAPTION, (*_COLUMNS[:-1], against, _COLUMNS[-1]), points)
    if not points:
        return empty_figure(NAME, curve.reason.text if curve.reason else "No sustained work was asked for.", table)
    unit_s, unit = _choose_unit(points)
    p50s = [point.p50_ms for point in points]
    return Figure(
        name=NAME,
        title=curve.text.rstrip("."),
        summary=(
            f"p50 of each of {numbers.counted(len(points), 'point')} of one process, from "
            f"{numbers.milliseconds(min(p50s))} to {numbers.milliseconds(max(p50s))} ms. The table below has every "
            "point."
        ),
        data=[
            cell_lines.single_line(
                cell, [_end_s(point) / unit_s for point in points], p50s, hover="%{x:.3~g}: %{y:.5~g} ms"
            )
        ],
        layout=theme.make_layout(
            height=260,
            xaxis=theme.make_axis(f"{unit} since it began", **scales.make_linear([_end_s(points[-1]) / unit_s])),
            yaxis=theme.make_axis("p50, ms", **scales.make_linear(p50s)),
            shapes=_draw_shapes(curve, unit_s),
        ),
        table=table,
        note=f"Line: the first point{'' if curve.throttle_s is None else '; dotted: from when p50 stays above it'}.",
    )


def draw_together(cells: Sequence[Cell], address: Address) -> Figure:
    """Draw the curves of several cells over minutes or seconds; a single cell is drawn as on its own page. At least one
    of several cells must have points."""
    if len(cells) == 1:
        return draw_sustained(cells[0])
    lines = CellLines(cells, address)
    points = [placed.row for placed in lines.rows(list_points)]
    unit_s, unit = _choose_unit(points)
    throttling = [cell for cell in cells if cell.sustained is not None and cell.sustained.throttle_s is not None]
    found = (
        f"{len(throttling)} of {numbers.counted(len(cells), 'cell')} throttled" if throttling else "No cell throttled"
    )
    # leave out the column of energy where no reading exists, so that the table fits
    has_energy = any(point.energy_mj is not None for point in points)
    return lines.figure(
        Curve(
            NAME,
            CAPTION,
            list_points,
            lambda point: _end_s(point) / unit_s,
            lambda point: point.p50_ms,
            "%{x:.3~g}: %{y:.5~g} ms",
            _COLUMNS if has_energy else _COLUMNS[:-1],
        ),
        title=found + (f": {lines.name(throttling[0])}" if throttling else ""),
        summary=f"p50 of each of {numbers.counted(len(points), 'point')} of {len(cells)} processes. The table has all.",
        height=280,
        xaxis=theme.make_axis(f"{unit} since it began", **scales.make_linear([max(map(_end_s, points)) / unit_s])),
        yaxis=theme.make_axis("p50, ms", **scales.make_linear([point.p50_ms for point in points])),
    )


def list_points(cell: Cell) -> list[CurvePoint]:
    return cell.sustained.points if cell.sustained is not None else []


def _end_s(point: CurvePoint) -> float:
    return point.at_s + point.span_s


def _choose_unit(points: Sequence[CurvePoint]) -> tuple[float, str]:
    return (60.0, "min") if max(map(_end_s, points)) >= LONG_S else (1.0, "s")


def _draw_shapes(curve: Sustained, unit_s: float) -> list[theme.Json]:
    """Draw a line at the level of the first point, and one at the moment from which p50 stays above it."""
    level = traces.make_rule("y", curve.points[0].p50_ms, colour=theme.INK)
    if curve.throttle_s is None:
        return [level]
    return [level, traces.make_rule("x", curve.throttle_s / unit_s, dash="dot")]


def _describe_energy(value: float | None) -> str:
    return "not readable here" if value is None else numbers.plain(value)


_COLUMNS: tuple[Column[CurvePoint], ...] = (
    Number("from, s", lambda point: rounded_entry(point.at_s, 1)),
    Number("for, s", lambda point: rounded_entry(point.span_s, 1)),
    Number("inferences", lambda point: rounded_entry(point.n)),
    Number("p50, ms", lambda point: as_number(point.p50_ms, numbers.milliseconds)),
    Number("p90, ms", lambda point: as_number(point.p90_ms, numbers.milliseconds)),
    Number("mJ per inference", lambda point: as_number(point.energy_mj, _describe_energy)),
)
