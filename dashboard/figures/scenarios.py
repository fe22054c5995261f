"""What a cell's scenario found, phase by phase: memory over inferences, latency by shape, latency over rates."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from dashboard.figures import cell_lines, generation, over_inferences, over_rates, scales, sustained, theme
from dashboard.figures.columns import rounded
from dashboard.figures.figure import Address, Figure
from farm.contract.document_cells import Cell, CellPhase
from farm.rules.presenting.tables import Column, Entry, Number, Table, written
from farm.rules.wording import numbers

SHAPES = "shapes"


@dataclass(frozen=True)
class Panel:
    """Figures side by side, or one with its table beside it."""

    figures: Sequence[Figure]
    table: Table | None = None


def figures_of(cell: Cell) -> list[Figure]:
    """The figures of the cell's scenario; none where it has no phases."""
    shapes = [phase for phase in cell.phases if "p50_ms" in phase.metrics and "rate_per_s" not in phase.metrics]
    found = [over_inferences.figure([cell])] if over_inferences.readings_of(cell) else []
    found += [_shapes(cell, shapes)] if shapes else []
    found += [draw([cell]) for draw in over_rates.FIGURES.values()] if over_rates.rates_of(cell) else []
    found += [generation.phases([cell])] if generation.has_parts(cell) else []
    return [*found, *([generation.tokens([cell])] if generation.stretches_of(cell) else [])]


def panels_of(cell: Cell) -> list[Panel]:
    """What the cell's page shows of its scenario. The figures of a load have one table."""
    lasting = [sustained.sustained(cell)] if cell.sustained else []
    found = [*lasting, *figures_of(cell)]
    beside = [figure for figure in found if figure.name in (over_rates.GOODPUT, over_rates.PROCESSOR)]
    panels = [Panel([figure], figure.table) for figure in found if figure not in beside]
    return [*panels, *([Panel(beside)] if beside else [])]


def of_run(cells: Iterable[Cell], address: Address) -> dict[str, Callable[[], Figure]]:
    """What draws each figure that cells of a run have together, by its name; those of the load first."""
    known = [cell for cell in cells if cell.twin_of is None]
    found: dict[str, Callable[[], Figure]] = {}
    for name, has_it, draw in _TOGETHER:
        if own := [cell for cell in known if has_it(cell)]:
            found[name] = partial(draw, own, address)
    parted = [cell for cell in known if generation.has_parts(cell)]
    if not generation.differ_in_prompts(parted):
        found.pop(generation.PROMPTS, None)
    return found


# of several cells: the name, which cells have it, what draws it
_TOGETHER: Sequence[tuple[str, Callable[[Cell], object], Callable[[Sequence[Cell], Address], Figure]]] = (
    (generation.PHASES, generation.has_parts, generation.phases),
    (generation.TOKENS, generation.has_parts, generation.tokens),
    (generation.PROMPTS, generation.has_parts, generation.prompts),
    *((name, over_rates.rates_of, draw) for name, draw in over_rates.FIGURES.items()),
    (over_inferences.NAME, over_inferences.readings_of, over_inferences.figure),
    (sustained.NAME, sustained.points_of, sustained.together),
)
# those that a page opens with
_LEADING = (over_rates.LATENCY, over_inferences.NAME, generation.PHASES, sustained.NAME)


def is_about(cells: Sequence[Cell], name: str) -> bool:
    """Whether every cell that was measured has the figure, so that a page opens with it."""
    measured = [cell for cell in cells if cell.p50_ms is not None and cell.twin_of is None]
    has_it = next(has_it for known, has_it, _ in _TOGETHER if known == name)
    return name in _LEADING and bool(measured) and all(map(has_it, measured))


def _shapes(cell: Cell, phases: Sequence[CellPhase]) -> Figure:
    ordered = sorted(phases, key=_p50_ms)
    p50s = [_p50_ms(phase) for phase in ordered]
    low, high = (f"{numbers.milliseconds(_p50_ms(end))} ms at {end.name}" for end in (ordered[0], ordered[-1]))
    columns: tuple[Column[CellPhase], ...] = (
        Column("shape", lambda phase: Entry(phase.name, is_name=True)),
        Number("p50, ms", lambda phase: written(_p50_ms(phase), numbers.milliseconds)),
        Number("inferences", lambda phase: rounded(phase.metrics["n"]) if "n" in phase.metrics else Entry()),
    )
    return Figure(
        name=SHAPES,
        title=f"p50 from {low} to {high}",
        summary=f"p50 of {numbers.counted(len(ordered), 'shape')}. The table below has every one.",
        data=[cell_lines.of_cell(cell, [phase.name for phase in ordered], p50s, hover="%{x}: %{y:.5~g} ms")],
        layout=theme.layout(
            height=240, xaxis=theme.axis("shape", type="category"), yaxis=theme.axis("p50, ms", **scales.linear(p50s))
        ),
        table=Table.of(SHAPES, "Latency by shape", columns, ordered),
    )


def _p50_ms(phase: CellPhase) -> float:
    return phase.metrics["p50_ms"]
