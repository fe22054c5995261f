"""Charts of cells under load over the rate of arrivals: latency, goodput (answers in time), and processor time.
`list_rates` lists a cell's measurements with a rate, the lowest rate first."""

from collections.abc import Sequence

from dashboard.figures import scales, theme, traces
from dashboard.figures.cell_lines import CellLines, Curve, read_metric
from dashboard.figures.figure import Address, Figure, rounded_entry
from farm.contract.document_cells import Cell, CellPhase
from farm.rules.cells.load import format_highest_rate
from farm.rules.cells.scenario_metrics import MAX_RATE
from farm.rules.cells.scenarios import parse_recorded
from farm.rules.presenting.tables import Number, Table, as_number
from farm.rules.wording import numbers
from farm.rules.wording.numbers import plain

LATENCY, GOODPUT, PROCESSOR = "rates", "goodput", "processor"
COLUMNS = (
    Number[CellPhase]("per s", lambda rate: as_number(rate.metrics["rate_per_s"])),
    Number[CellPhase]("p50, ms", lambda rate: as_number(rate.metrics["p50_ms"], numbers.milliseconds)),
    Number[CellPhase]("p99, ms", lambda rate: as_number(rate.metrics["p99_ms"], numbers.milliseconds)),
    Number[CellPhase](
        "goodput, per s", lambda rate: as_number(rate.metrics["goodput_per_s"]), "requests that kept the bound"
    ),
    Number[CellPhase]("processor, ms each", lambda rate: as_number(rate.metrics["cpu_ms"], numbers.milliseconds)),
    Number[CellPhase](
        "late, ms",
        lambda rate: rounded_entry(rate.metrics["late_ms"], 2),
        "how late the generator began, at the median",
    ),
)


def list_rates(cell: Cell) -> list[CellPhase]:
    return sorted((phase for phase in cell.phases if "rate_per_s" in phase.metrics), key=read_metric("rate_per_s"))


def draw_latency(cells: Sequence[Cell], address: Address | None = None) -> Figure:
    """Draw p50 and p99 of each cell over the rate, with the latency bounds of their scenarios. As for the other charts
    of this module, at least one cell must have rates (see list_rates)."""
    lines = CellLines(cells, address)
    bounds = sorted({bound for cell in cells if (bound := parse_recorded(cell.scenario).bound_ms) is not None})
    reached = [*_list_metric(lines, "p50_ms"), *_list_metric(lines, "p99_ms"), *bounds]
    data: list[theme.Json] = []
    for cell in cells:
        for what, dash in (("p50", "dot"), ("p99", "")):
            line = lines.line(
                cell,
                map(read_metric("rate_per_s"), list_rates(cell)),
                map(read_metric(f"{what}_ms"), list_rates(cell)),
                hover=f"{what} at %{{x:.4~g}} per s: %{{y:.5~g}} ms",
                name=what if lines.is_alone else lines.name(cell),
                dash=dash,
            )
            # with several cells, the key names each cell only once
            data.append({**line, "showlegend": lines.is_alone} if dash else line)
    return Figure(
        name=LATENCY,
        title=_write_finding(lines),
        summary=_write_summary(lines, "p50 and p99 of latency from the scheduled arrival"),
        data=data,
        layout=theme.make_layout(
            height=260,
            xaxis=_make_rate_axis(lines),
            yaxis=theme.make_axis("latency, ms", **scales.make_logarithmic(reached)),
            shapes=[traces.make_rule("y", bound, dash="dash") for bound in bounds],
            showlegend=True,
        ),
        table=Table.of(LATENCY, "Latency over rates", lines.columns(COLUMNS), lines.rows(list_rates)),
        note=f"Whole lines: p99; dotted: p50{'; dashed: the bound' if bounds else ''}.",
    )


def draw_goodput(cells: Sequence[Cell], address: Address | None = None) -> Figure:
    """Draw the requests per second that were answered within the bound, or at all where there is none, over the
    rate."""
    lines = CellLines(cells, address)
    goodputs, highest = _list_metric(lines, "goodput_per_s"), max(_list_metric(lines, "rate_per_s"))
    all_that_came = {"x0": 0, "y0": 0, "x1": highest, "y1": highest}
    return lines.figure(
        _make_curve(GOODPUT, "Goodput over rates", "goodput_per_s", "%{x:.4~g} → %{y:.4~g} per s"),
        title=f"At most {plain(max(goodputs))} requests per s were answered in time",
        summary=_write_summary(lines, "Requests that were answered within the bound, or at all where there is none,"),
        xaxis=_make_rate_axis(lines),
        yaxis=theme.make_axis("goodput, per s", **scales.make_linear([*goodputs, highest])),
        shapes=[{"type": "line", **all_that_came, "line": traces.make_pen(theme.SOFT, 1, "dash")}],
        note="Dashed: all that came.",
    )


def draw_processor(cells: Sequence[Cell], address: Address | None = None) -> Figure:
    """Draw the processor time of a request, of all threads together, over the rate."""
    lines = CellLines(cells, address)
    times = _list_metric(lines, "cpu_ms")
    ends = (f"{numbers.milliseconds(time_ms)} ms" for time_ms in (min(times), max(times)))
    return lines.figure(
        _make_curve(PROCESSOR, "Processor time over rates", "cpu_ms", "%{x:.4~g} per s: %{y:.4~g} ms"),
        title=f"Processor time of a request: {' to '.join(ends)}",
        summary=_write_summary(lines, "Processor time of the whole process for each request"),
        xaxis=_make_rate_axis(lines),
        yaxis=theme.make_axis("processor time, ms each", **scales.make_linear(times)),
        note="Of all threads together, so that it may pass the latency; waiting for arrivals looks at the clock, too.",
    )


# the function that draws each chart, by the chart's name
FIGURES = {LATENCY: draw_latency, GOODPUT: draw_goodput, PROCESSOR: draw_processor}


def _write_finding(lines: CellLines) -> str:
    """For a single cell, return its scenario's sentence. For several, name the cells with the lowest and the highest
    rate that kept the bound."""
    if lines.is_alone:
        return lines.cells[0].scenario_text.rstrip(".") or "Latency over the rate of arrivals"
    known = [cell for cell in lines.cells if MAX_RATE in cell.figures]
    if len(known) < 2:
        return f"Latency of {numbers.counted(len(lines.cells), 'cell')} over the rate of arrivals"
    ends = (pick(known, key=_max_rate) for pick in (min, max))
    words = (f"{format_highest_rate(_max_rate(cell), cell.phases)} per s ({lines.name(cell)})" for cell in ends)
    return f"Keeps the bound {' and '.join(words)}"


def _max_rate(cell: Cell) -> float:
    return cell.figures[MAX_RATE].value


def _write_summary(lines: CellLines, what: str) -> str:
    rates = lines.rows(list_rates)
    launches = max(placed.row.launches for placed in rates)
    return (
        f"{what} at {numbers.counted(len(rates), 'rate')} of {numbers.counted(len(lines.cells), 'cell')}, medians of "
        f"{numbers.counted(launches, 'launch', 'launches')}. The table has every rate."
    )


def _make_rate_axis(lines: CellLines) -> theme.Json:
    return theme.make_axis("requests per s", **scales.make_linear(_list_metric(lines, "rate_per_s")))


def _list_metric(lines: CellLines, key: str) -> list[float]:
    return [placed.row.metrics[key] for placed in lines.rows(list_rates)]


def _make_curve(name: str, caption: str, key: str, hover: str) -> Curve[CellPhase]:
    return Curve(name, caption, list_rates, read_metric("rate_per_s"), read_metric(key), hover, COLUMNS)
