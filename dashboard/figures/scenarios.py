"""The charts of scenarios: which there are, which a cell or a run has, and those of memory and shapes themselves."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from dashboard.figures import cell_lines, generation, over_rates, scales, sustained, theme
from dashboard.figures.cell_lines import CellLines, Curve, read_metric
from dashboard.figures.figure import Address, Figure, rounded_entry
from farm.contract.document_cells import Cell, CellPhase
from farm.contract.document_comparisons import Comparison
from farm.rules.cells import growth
from farm.rules.cells.scenario_metrics import GROWTH
from farm.rules.presenting.generations import has_generation_times
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_number
from farm.rules.presenting.times import BY_CLOCK, Times
from farm.rules.wording import numbers
from farm.rules.wording.numbers import MIB

NAME = "memory-course"
# the least height of the axis: processes of the same cell differ by up to 2 MiB, which should look small
MIN_SPAN_MIB = 8.0
SHAPES = "shapes"


def list_readings(cell: Cell) -> list[CellPhase]:
    return [phase for phase in cell.phases if "resident_bytes" in phase.metrics]


def draw_memory(cells: Sequence[Cell], address: Address | None = None) -> Figure:
    """Draw resident memory over inferences, with a line for each cell. At least one cell must have readings (see
    list_readings)."""
    lines = CellLines(cells, address)
    readings = [placed.row for placed in lines.rows(list_readings)]
    launches = max(reading.launches for reading in readings)
    resident = [_resident_mib(reading) for reading in readings]
    # widen a narrow axis, so that the usual fluctuation of a process looks small
    room = max(0.0, MIN_SPAN_MIB - (max(resident) - min(resident))) / 2
    reached = [min(resident) - room, *resident, max(resident) + room]
    return lines.figure(
        CURVE,
        title=_write_finding(lines),
        summary=(
            f"Resident memory of {numbers.counted(len(cells), 'cell')} at {numbers.counted(len(readings), 'point')}, "
            f"the median of {numbers.counted(launches, 'launch', 'launches')}. The table has every point."
        ),
        xaxis=theme.make_axis("inferences", **scales.make_linear([_inferences(reading) for reading in readings])),
        yaxis=theme.make_axis("resident, MiB", **scales.make_linear(reached, from_zero=False)),
    )


_inferences, _p50_ms = read_metric("inferences"), read_metric("p50_ms")


def _resident_mib(reading: CellPhase) -> float:
    return reading.metrics["resident_bytes"] / MIB


def _write_finding(lines: CellLines) -> str:
    """For a single cell, return its scenario's sentence; for several, say in how many memory grows."""
    if lines.is_alone:
        return lines.cells[0].scenario_text.rstrip(".") or "Memory over inferences"
    known = [(cell, cell.figures[GROWTH]) for cell in lines.cells if GROWTH in cell.figures]
    growing = [cell for cell, figure in known if growth.is_growing(figure)]
    of = f"of {numbers.counted(len(lines.cells), 'cell')}"
    if growing:
        return f"Memory grows in {len(growing)} {of}: {', '.join(lines.name(cell) for cell in growing[:3])}"
    return f"Memory settles in {sum(growth.is_settled(figure) for _, figure in known)} {of}"


CURVE = Curve(
    NAME,
    "Memory over inferences",
    list_readings,
    _inferences,
    _resident_mib,
    "%{x:.4~g}: %{y:.5~g} MiB",
    (
        Number("inferences", lambda reading: rounded_entry(_inferences(reading))),
        Number("resident, MiB", lambda reading: rounded_entry(_resident_mib(reading), 1)),
    ),
)


@dataclass(frozen=True)
class Panel:
    """A panel of the cell's page: one figure with its table, or figures side by side without a table."""

    figures: Sequence[Figure]
    table: Table | None = None


def draw_figures(cell: Cell, times: Times = BY_CLOCK) -> list[Figure]:
    """Draw the figures of the cell's scenario; empty where it recorded none. Sustained work is not included."""
    shapes = [phase for phase in cell.phases if "p50_ms" in phase.metrics and "rate_per_s" not in phase.metrics]
    found = [draw_memory([cell])] if list_readings(cell) else []
    found += [_draw_shapes(cell, shapes)] if shapes else []
    found += [draw([cell]) for draw in over_rates.FIGURES.values()] if over_rates.list_rates(cell) else []
    found += [generation.draw_phases([cell], None, times)] if has_generation_times(cell) else []
    return [*found, *([generation.draw_tokens([cell], None, times)] if generation.list_token_phases(cell) else [])]


def make_panels(cell: Cell, times: Times) -> list[Panel]:
    """Make the panels of the cell's page, sustained work first. For a cell under load, goodput and processor time share
    the last panel, without a table, because the table of latency has all their numbers."""
    lasting = [sustained.draw_sustained(cell)] if cell.sustained else []
    found = [*lasting, *draw_figures(cell, times)]
    beside = [figure for figure in found if figure.name in (over_rates.GOODPUT, over_rates.PROCESSOR)]
    panels = [Panel([figure], figure.table) for figure in found if figure not in beside]
    return [*panels, *([Panel(beside)] if beside else [])]


def list_run_figures(
    cells: Iterable[Cell], address: Address, comparisons: Iterable[Comparison] = ()
) -> dict[str, Callable[[], Figure]]:
    """Return the functions that draw the scenario charts of a run, by the chart's name, in the order of CHARTS. A chart
    is included if any cell has its data, and shows all such cells except A/A twins; that of first tokens only if their
    prompts differ in length. Nothing is drawn until a function is called."""
    known = [cell for cell in cells if cell.twin_of is None]
    times = Times.of(known, comparisons)
    # several charts share a condition, which is evaluated only once for each cell
    having = {is_of: [cell for cell in known if is_of(cell)] for is_of in {chart.is_of for chart in CHARTS}}
    found: dict[str, Callable[[], Figure]] = {
        chart.name: partial(chart.draw, having[chart.is_of], address, *([times] if chart.is_by_times else []))
        for chart in CHARTS
        if having[chart.is_of]
    }
    if not generation.differ_in_prompts(having[has_generation_times]):
        found.pop(generation.PROMPTS, None)
    return found


class Chart(NamedTuple):
    """A scenario's chart: its name in the address and the label of its tab. `is_of`: returns something true for a cell
    that has the chart's data; `draw`: takes the cells and the address of their pages, and with `is_by_times` the shown
    times as third argument; `leads`: a run opens with the chart where all its cells have the data."""

    name: str
    label: str
    is_of: Callable[[Cell], object]
    draw: Callable[..., Figure]
    leads: bool = False
    is_by_times: bool = False


CHARTS = (
    Chart(over_rates.LATENCY, "Load", over_rates.list_rates, over_rates.draw_latency, leads=True),
    Chart(over_rates.GOODPUT, "Goodput", over_rates.list_rates, over_rates.draw_goodput),
    Chart(over_rates.PROCESSOR, "Processor time", over_rates.list_rates, over_rates.draw_processor),
    Chart(NAME, "Memory over inferences", list_readings, draw_memory, leads=True),
    Chart(sustained.NAME, "Over minutes", sustained.list_points, sustained.draw_together, leads=True),
    Chart(
        generation.PHASES,
        "Prefill and decoding",
        has_generation_times,
        generation.draw_phases,
        leads=True,
        is_by_times=True,
    ),
    Chart(generation.TOKENS, "Time per token", has_generation_times, generation.draw_tokens, is_by_times=True),
    Chart(generation.PROMPTS, "First token", has_generation_times, generation.draw_prompts, is_by_times=True),
)


def is_about(cells: Sequence[Cell], name: str) -> bool:
    """Whether a page of these cells opens with the chart of this name: the chart has `leads`, and every measured cell
    except A/A twins has its data. `name` must be that of a chart in CHARTS."""
    measured = [cell for cell in cells if cell.p50_ms is not None and cell.twin_of is None]
    chart = next(chart for chart in CHARTS if chart.name == name)
    return chart.leads and bool(measured) and all(map(chart.is_of, measured))


def _draw_shapes(cell: Cell, phases: Sequence[CellPhase]) -> Figure:
    ordered = sorted(phases, key=_p50_ms)
    p50s = [_p50_ms(phase) for phase in ordered]
    low, high = (f"{numbers.milliseconds(_p50_ms(end))} ms at {end.name}" for end in (ordered[0], ordered[-1]))
    columns: tuple[Column[CellPhase], ...] = (
        Column("shape", lambda phase: Entry(phase.name, is_name=True)),
        Number("p50, ms", lambda phase: as_number(_p50_ms(phase), numbers.milliseconds)),
        Number("inferences", lambda phase: rounded_entry(phase.metrics["n"]) if "n" in phase.metrics else Entry()),
    )
    return Figure(
        name=SHAPES,
        title=f"p50 from {low} to {high}",
        summary=f"p50 of {numbers.counted(len(ordered), 'shape')}. The table below has every one.",
        data=[cell_lines.single_line(cell, [phase.name for phase in ordered], p50s, hover="%{x}: %{y:.5~g} ms")],
        layout=theme.make_layout(
            height=240,
            xaxis=theme.make_axis("shape", **scales.make_categories([phase.name for phase in ordered])),
            yaxis=theme.make_axis("p50, ms", **scales.make_linear(p50s)),
        ),
        table=Table.of(SHAPES, "Latency by shape", columns, ordered),
    )
