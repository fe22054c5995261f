"""What a cell's scenario found, phase by phase: memory over inferences, latency by shape, latency over rates."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from dashboard.figures import colours, generation, over_inferences, over_rates, scales, sustained, theme
from dashboard.figures.figure import Address, Figure
from dashboard.figures.theme import Json
from farm.contract.document_cells import Cell, CellPhase
from farm.rules.presenting.tables import Column, Entry, Number, Table, written
from farm.rules.wording import numbers, titles

SHAPES = "shapes"
OVER_RATES = (over_rates.LATENCY, over_rates.GOODPUT, over_rates.PROCESSOR)


@dataclass(frozen=True)
class Panel:
    """Figures side by side, or one with its table beside it."""

    figures: Sequence[Figure]
    table: Table | None = None


def figures_of(cell: Cell) -> list[Figure]:
    """The figures of the cell's scenario; none where it has no phases."""
    shapes = [one for one in cell.phases if "p50_ms" in one.metrics and "rate_per_s" not in one.metrics]
    found = [over_inferences.figure([cell])] if over_inferences.readings_of(cell) else []
    found += [_shapes(cell, shapes)] if shapes else []
    found += over_rates.figures([cell]) if over_rates.rates_of(cell) else []
    found += [generation.phases([cell])] if generation.has_parts(cell) else []
    return [*found, *([generation.tokens([cell])] if generation.stretches_of(cell) else [])]


def panels_of(cell: Cell) -> list[Panel]:
    """What the cell's page shows of its scenario. The figures of a load have one table."""
    lasting = [sustained.sustained(cell)] if cell.sustained else []
    found = [*lasting, *figures_of(cell)]
    beside = [one for one in found if one.name in OVER_RATES[1:]]
    panels = [Panel([one], one.table) for one in found if one not in beside]
    return [*panels, *([Panel(beside)] if beside else [])]


def of_run(cells: Iterable[Cell], address: Address) -> dict[str, Callable[[], Figure]]:
    """What draws each figure that cells of a run have together, by its name; those of the load first."""
    known = [cell for cell in cells if cell.twin_of is None]
    loaded = [cell for cell in known if over_rates.rates_of(cell)]
    read = [cell for cell in known if over_inferences.readings_of(cell)]
    lasting = [cell for cell in known if cell.sustained is not None and cell.sustained.points]
    found: dict[str, Callable[[], Figure]] = _of_generation(known, address)
    for place, name in enumerate(OVER_RATES if loaded else ()):
        found[name] = partial(_nth_over_rates, loaded, address, place)
    if read:
        found[over_inferences.NAME] = partial(over_inferences.figure, read, address)
    if lasting:
        found[sustained.NAME] = partial(sustained.together, lasting, address)
    return found


def _of_generation(cells: Sequence[Cell], address: Address) -> dict[str, Callable[[], Figure]]:
    parted = [cell for cell in cells if generation.has_parts(cell)]
    found: dict[str, Callable[[], Figure]] = {}
    if parted:
        found[generation.PHASES] = partial(generation.phases, parted, address)
        found[generation.TOKENS] = partial(generation.tokens, parted, address)
    if generation.differ_in_prompts(parted):
        found[generation.PROMPTS] = partial(generation.prompts, parted, address)
    return found


def is_about(cells: Sequence[Cell], name: str) -> bool:
    """Whether every cell that was measured has the figure, so that a page opens with it."""
    of: dict[str, Callable[[Cell], object]] = {
        over_rates.LATENCY: over_rates.rates_of,
        over_inferences.NAME: over_inferences.readings_of,
        generation.PHASES: generation.has_parts,
        sustained.NAME: lambda cell: cell.sustained is not None and cell.sustained.points,
    }
    measured = [cell for cell in cells if cell.p50_ms is not None and cell.twin_of is None]
    return name in of and bool(measured) and all(of[name](cell) for cell in measured)


def _nth_over_rates(cells: Sequence[Cell], address: Address, place: int) -> Figure:
    return over_rates.figures(cells, address)[place]


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
        summary=f"p50 of {numbers.counted(len(ordered), 'shape')}. The table below has every one.",
        data=[_line(cell, [one.name for one in ordered], p50s, hover="%{x}: %{y:.5~g} ms<extra></extra>")],
        layout=theme.layout(
            height=240, xaxis=theme.axis("shape", type="category"), yaxis=theme.axis("p50, ms", **scales.linear(p50s))
        ),
        table=Table.of(SHAPES, "Latency by shape", columns, ordered),
    )


def _line(cell: Cell, x: Sequence[object], y: Sequence[float], *, hover: str) -> Json:
    colour = colours.runtime(cell.runtime)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": titles.runtime(cell.runtime),
        "x": list(x),
        "y": list(y),
        "line": {"color": colour, "width": 1.5},
        "marker": {"color": colour, "size": 7},
        "hovertemplate": hover,
    }


def _whole(value: float | None) -> str:
    return "" if value is None else numbers.fixed(value, 0)
