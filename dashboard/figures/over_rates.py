"""Cells under load over the rates of their arrivals: latency, what was answered in time, and processor time."""

from collections.abc import Callable, Sequence

from dashboard.figures import scales, theme
from dashboard.figures.cell_lines import CellLines
from dashboard.figures.figure import Address, Figure
from dashboard.figures.theme import Json
from farm.contract.document_cells import Cell, CellPhase
from farm.rules.cells import load
from farm.rules.cells.scenario_metrics import MAX_RATE
from farm.rules.cells.scenarios import parsed
from farm.rules.presenting.tables import Number, Table, written
from farm.rules.wording import numbers
from farm.rules.wording.numbers import plain

LATENCY, GOODPUT, PROCESSOR = "rates", "goodput", "processor"
AXIS = "requests per s"


def rates_of(cell: Cell) -> list[CellPhase]:
    """The rates that a cell was driven at, from the lowest."""
    found = [one for one in cell.phases if "rate_per_s" in one.metrics]
    return sorted(found, key=lambda one: one.metrics["rate_per_s"])


def figures(cells: Sequence[Cell], address: Address | None = None) -> list[Figure]:
    """The three figures of cells that have rates."""
    lines = CellLines(cells, address)
    return [_latency(lines), _goodput(lines), _processor(lines)]


def _latency(lines: CellLines) -> Figure:
    bounds = sorted({bound for cell in lines.cells if (bound := parsed(cell.scenario).bound_ms) is not None})
    p50s, p99s = (_all(lines, name) for name in ("p50_ms", "p99_ms"))
    hover = "%{x:.4~g} per s: %{y:.5~g} ms"
    data: list[Json] = []
    for cell in lines.cells:
        rates = _of(cell, "rate_per_s")
        names = ("p50", "p99") if lines.is_alone else (lines.name(cell),) * 2
        low = lines.line(cell, rates, _of(cell, "p50_ms"), hover=f"p50 at {hover}", name=names[0])
        high = lines.line(cell, rates, _of(cell, "p99_ms"), hover=f"p99 at {hover}", name=names[1])
        # of several cells the key names each once
        data += [
            {**low, "line": {**_line_of(low), "dash": "dot"}, "showlegend": lines.is_alone},
            high,
        ]
    level: Json = {"type": "line", "xref": "paper", "x0": 0, "x1": 1}
    thin: Json = {"width": 1, "dash": "dash", "color": theme.SOFT}
    return Figure(
        name=LATENCY,
        title=_finding(lines),
        summary=_summary(lines, "p50 and p99 of latency from the scheduled arrival"),
        data=data,
        layout=theme.layout(
            height=260,
            xaxis=_rate_axis(lines),
            yaxis=theme.axis("latency, ms", **scales.logarithmic([*p50s, *p99s, *bounds])),
            shapes=[{**level, "line": thin, "y0": bound, "y1": bound} for bound in bounds],
            showlegend=True,
        ),
        table=_table(lines, LATENCY, "Latency over rates"),
        note=f"Whole lines: p99; dotted: p50{'; dashed: the bound' if bounds else ''}.",
    )


def _goodput(lines: CellLines) -> Figure:
    rates, goodputs = _all(lines, "rate_per_s"), _all(lines, "goodput_per_s")
    most = max(rates)
    return Figure(
        name=GOODPUT,
        title=f"At most {plain(max(goodputs))} requests per s were answered in time",
        summary=_summary(lines, "Requests that were answered within the bound, or at all where there is none,"),
        data=[
            lines.line(cell, _of(cell, "rate_per_s"), _of(cell, "goodput_per_s"), hover="%{x:.4~g} → %{y:.4~g} per s")
            for cell in lines.cells
        ],
        layout=theme.layout(
            height=240,
            xaxis=_rate_axis(lines),
            yaxis=theme.axis("goodput, per s", **scales.linear([*goodputs, most])),
            shapes=[
                {"type": "line", "x0": 0, "y0": 0, "x1": most, "y1": most}
                | {"line": {"width": 1, "dash": "dash", "color": theme.SOFT}}
            ],
            showlegend=not lines.is_alone,
        ),
        table=_table(lines, GOODPUT, "Goodput over rates"),
        note="Dashed: all that came.",
    )


def _processor(lines: CellLines) -> Figure:
    times = _all(lines, "cpu_ms")
    least, most = (f"{numbers.milliseconds(one)} ms" for one in (min(times), max(times)))
    return Figure(
        name=PROCESSOR,
        title=f"Processor time of a request: {least} to {most}",
        summary=_summary(lines, "Processor time of the whole process for each request"),
        data=[
            lines.line(cell, _of(cell, "rate_per_s"), _of(cell, "cpu_ms"), hover="%{x:.4~g} per s: %{y:.4~g} ms")
            for cell in lines.cells
        ],
        layout=theme.layout(
            height=240,
            xaxis=_rate_axis(lines),
            yaxis=theme.axis("processor time, ms each", **scales.linear(times)),
            showlegend=not lines.is_alone,
        ),
        table=_table(lines, PROCESSOR, "Processor time over rates"),
        note="Waiting for the next arrival ends in looking at the clock, which is in it.",
    )


def _finding(lines: CellLines) -> str:
    """What a cell alone says of itself; of several the lowest beside the highest rate that kept the bound."""
    if lines.is_alone:
        return lines.cells[0].scenario_text.rstrip(".") or "Latency over the rate of arrivals"
    known = [cell for cell in lines.cells if MAX_RATE in cell.figures]
    if len(known) < 2:
        return f"Latency of {numbers.counted(len(lines.cells), 'cell')} over the rate of arrivals"
    least, most = (choose(known, key=_most_rate) for choose in (min, max))
    told = (f"{load.up_to(_most_rate(one), one.phases)} per s ({lines.name(one)})" for one in (least, most))
    return f"Keeps the bound {' and '.join(told)}"


def _most_rate(cell: Cell) -> float:
    return cell.figures[MAX_RATE].value


def _summary(lines: CellLines, what: str) -> str:
    rates = len(lines.rows(rates_of))
    launches = max(one.row.launches for one in lines.rows(rates_of))
    return (
        f"{what} at {numbers.counted(rates, 'rate')} of {numbers.counted(len(lines.cells), 'cell')}, medians of "
        f"{numbers.counted(launches, 'launch', 'launches')}. The table has every rate."
    )


def _table(lines: CellLines, name: str, caption: str) -> Table:
    def number(head: str, key: str, write: Callable[[float | None], str], note: str = "") -> Number[CellPhase]:
        return Number(head, lambda one: written(one.metrics[key], write), note=note)

    shown = (
        number("per s", "rate_per_s", _three),
        number("p50, ms", "p50_ms", numbers.milliseconds),
        number("p99, ms", "p99_ms", numbers.milliseconds),
        number("goodput, per s", "goodput_per_s", _three, note="requests that kept the bound"),
        number("processor, ms each", "cpu_ms", numbers.milliseconds),
        number("late, ms", "late_ms", _hundredths, note="how late the generator began, at the median"),
    )
    return Table.of(name, caption, lines.columns(shown), lines.rows(rates_of))


def _rate_axis(lines: CellLines) -> Json:
    return theme.axis(AXIS, **scales.linear(_all(lines, "rate_per_s")))


def _of(cell: Cell, key: str) -> list[float]:
    return [one.metrics[key] for one in rates_of(cell)]


def _all(lines: CellLines, key: str) -> list[float]:
    return [one.row.metrics[key] for one in lines.rows(rates_of)]


def _line_of(trace: Json) -> Json:
    line = trace["line"]
    assert isinstance(line, dict)
    return line


def _hundredths(value: float | None) -> str:
    return "" if value is None else numbers.fixed(value, 2)


def _three(value: float | None) -> str:
    return "" if value is None else plain(value)
