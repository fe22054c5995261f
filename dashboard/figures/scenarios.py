"""What a cell's scenario found, phase by phase: memory over inferences, latency by shape, latency over rates."""

from collections.abc import Sequence

from dashboard import numbers, words
from dashboard.figures import colours, scales, theme
from dashboard.figures.figure import Figure
from dashboard.figures.theme import Json
from dashboard.tables import Column, Entry, Number, Table, written
from farm.contract.document import Cell, CellPhase
from farm.rules.cells.numbers import MIB, three_digits
from farm.rules.cells.scenarios import parsed

MEMORY, SHAPES, RATES, TOKENS = "memory", "shapes", "rates", "tokens"


def figures_of(cell: Cell) -> list[Figure]:
    """The figures of the cell's scenario; none where it has no phases."""
    memory = [one for one in cell.phases if "resident_bytes" in one.metrics]
    rates = [one for one in cell.phases if "rate_per_s" in one.metrics]
    shapes = [one for one in cell.phases if "p50_ms" in one.metrics and one not in rates]
    tokens = [one for one in cell.phases if "tpot_ms" in one.metrics]
    found = ((_memory, memory), (_shapes, shapes), (_rates, rates), (_tokens, tokens))
    return [draw(cell, phases) for draw, phases in found if phases]


def _memory(cell: Cell, phases: Sequence[CellPhase]) -> Figure:
    after = [one.metrics["inferences"] for one in phases]
    resident = [one.metrics["resident_bytes"] / MIB for one in phases]
    columns: tuple[Column[CellPhase], ...] = (
        Number("inferences", lambda one: written(one.metrics["inferences"], _whole)),
        Number("resident, MiB", lambda one: written(one.metrics["resident_bytes"] / MIB, _one_digit)),
    )
    return Figure(
        name=MEMORY,
        title=cell.scenario_text.rstrip(".") or "Memory over inferences",
        summary=(
            f"Resident memory at {numbers.count(len(phases), 'point')} of a launch, the median of "
            f"{numbers.count(phases[0].launches, 'launch', 'launches')}. The table below has every point."
        ),
        data=[_line(cell, after, resident, hover="%{x:.4~g}: %{y:.5~g} MiB<extra></extra>")],
        layout=theme.layout(
            height=240,
            xaxis=theme.axis("inferences", **scales.linear(after)),
            yaxis=theme.axis("resident, MiB", **scales.linear(resident, from_zero=False)),
        ),
        table=Table.of(MEMORY, "Memory over inferences", columns, phases),
    )


def _shapes(cell: Cell, phases: Sequence[CellPhase]) -> Figure:
    ordered = sorted(phases, key=lambda one: one.metrics["p50_ms"])
    p50s = [one.metrics["p50_ms"] for one in ordered]
    low, high = (f"{numbers.milliseconds(one.metrics['p50_ms'])} ms at {one.name}" for one in (ordered[0], ordered[-1]))
    columns: tuple[Column[CellPhase], ...] = (
        Column("shape", lambda one: Entry(one.name, is_name=True)),
        Number("p50, ms", lambda one: written(one.metrics["p50_ms"], numbers.milliseconds)),
        Number("inferences", lambda one: written(one.metrics.get("n"), _whole)),
    )
    return Figure(
        name=SHAPES,
        title=f"p50 from {low} to {high}",
        summary=f"p50 of {numbers.count(len(ordered), 'shape')}. The table below has every one.",
        data=[_line(cell, [one.name for one in ordered], p50s, hover="%{x}: %{y:.5~g} ms<extra></extra>")],
        layout=theme.layout(
            height=240, xaxis=theme.axis("shape", type="category"), yaxis=theme.axis("p50, ms", **scales.linear(p50s))
        ),
        table=Table.of(SHAPES, "Latency by shape", columns, ordered),
    )


def _rates(cell: Cell, phases: Sequence[CellPhase]) -> Figure:
    ordered = sorted(phases, key=lambda one: one.metrics["rate_per_s"])
    rates = [one.metrics["rate_per_s"] for one in ordered]
    p50s, p99s = ([one.metrics[name] for one in ordered] for name in ("p50_ms", "p99_ms"))
    bound = parsed(cell.scenario).bound_ms
    columns: tuple[Column[CellPhase], ...] = (
        Number("per s", lambda one: written(one.metrics["rate_per_s"], _three)),
        Number("p50, ms", lambda one: written(one.metrics["p50_ms"], numbers.milliseconds)),
        Number("p99, ms", lambda one: written(one.metrics["p99_ms"], numbers.milliseconds)),
        Number("goodput, per s", lambda one: written(one.metrics["goodput_per_s"], _three)),
        Number("processor, ms each", lambda one: written(one.metrics["cpu_ms"], numbers.milliseconds)),
        Number("generator late, ms", lambda one: written(one.metrics["late_ms"], numbers.milliseconds)),
    )
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "line": {"width": 1, "dash": "dot", "color": theme.SOFT}}
    hover = "%{x:.4~g} per s: %{y:.5~g} ms<extra></extra>"
    return Figure(
        name=RATES,
        title=cell.scenario_text.rstrip(".") or "Latency over the rate of arrivals",
        summary=(
            f"p50 and p99 of latency from the scheduled arrival at {numbers.count(len(ordered), 'rate')}, medians of "
            f"{numbers.count(ordered[0].launches, 'launch', 'launches')}. The table below has every rate."
        ),
        data=[
            {**_line(cell, rates, p50s, hover=hover), "name": "p50"},
            {**_line(cell, rates, p99s, hover=hover), "name": "p99", "line": {"width": 1.5, "dash": "dot"}},
        ],
        layout=theme.layout(
            height=260,
            xaxis=theme.axis("requests per s", **scales.linear(rates)),
            yaxis=theme.axis("latency, ms", **scales.logarithmic([*p50s, *p99s, *([bound] if bound else [])])),
            shapes=[{**line, "y0": bound, "y1": bound}] if bound else [],
        ),
        table=Table.of(RATES, "Latency over rates", columns, ordered),
        note=f"Upper line: p99; lower line: p50{'; dotted: the bound' if bound else ''}.",
    )


def _tokens(cell: Cell, phases: Sequence[CellPhase]) -> Figure:
    places = [one.metrics["position"] for one in phases]
    times = [one.metrics["tpot_ms"] for one in phases]
    columns: tuple[Column[CellPhase], ...] = (
        Column("tokens", lambda one: Entry(one.name)),
        Number("tokens before", lambda one: written(one.metrics["position"], _whole)),
        Number("time per token, ms", lambda one: written(one.metrics["tpot_ms"], numbers.milliseconds)),
    )
    first, last = (f"{numbers.milliseconds(one)} ms" for one in (times[0], times[-1]))
    return Figure(
        name=TOKENS,
        title=f"Time per token from {first} to {last} along the sequence",
        summary=f"In {numbers.count(len(phases), 'stretch', 'stretches')} of a launch. The table below has every one.",
        data=[_line(cell, places, times, hover="behind %{x:.4~g} tokens: %{y:.5~g} ms<extra></extra>")],
        layout=theme.layout(
            height=240,
            xaxis=theme.axis("tokens before", **scales.linear(places, from_zero=False)),
            yaxis=theme.axis("time per token, ms", **scales.linear(times)),
        ),
        table=Table.of(TOKENS, "Time per token", columns, phases),
    )


def _line(cell: Cell, x: Sequence[object], y: Sequence[float], *, hover: str) -> Json:
    colour = colours.runtime(cell.runtime)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": words.runtime(cell.runtime),
        "x": list(x),
        "y": list(y),
        "line": {"color": colour, "width": 1.5},
        "marker": {"color": colour, "size": 7},
        "hovertemplate": hover,
    }


def _whole(value: float | None) -> str:
    return "" if value is None else numbers.fixed(value, 0)


def _three(value: float | None) -> str:
    return "" if value is None else three_digits(value)


def _one_digit(value: float | None) -> str:
    return "" if value is None else numbers.fixed(value, 1)
