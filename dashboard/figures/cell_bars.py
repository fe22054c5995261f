"""Charts with a bar for each cell: its cold start in parts, its peak memory, or its time by execution provider."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dashboard import axes
from dashboard.figures import colours, figure, scales, theme, traces
from dashboard.figures.cell_lines import Placed, place_column
from dashboard.figures.figure import Address, Figure, choose_bars, empty_figure
from farm.contract.document_cells import Cell, ProviderTime
from farm.contract.document_comparisons import Comparison
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_count, as_number
from farm.rules.presenting.times import Times
from farm.rules.wording import numbers, titles
from farm.rules.wording.numbers import MIB

COLD_START, MEMORY, PROVIDERS = "cold-start", "memory", "providers"
# the edge between the parts of a bar
EDGE: theme.Json = {"color": "@paper", "width": 1}
PROVIDER_COLUMNS: tuple[Column[ProviderTime], ...] = (
    Column("Provider", lambda part: Entry(part.name, is_name=True)),
    Number("share of time", lambda part: Entry(numbers.share(part.time_share), part.time_share, share=part.time_share)),
    Number("executed nodes", lambda part: as_count(part.nodes)),
)


@dataclass(frozen=True)
class Part:
    """A part of every bar. `of`: returns the length of the part for a cell, in ms."""

    name: str
    colour: str
    of: Callable[[Cell], float]


@dataclass(frozen=True)
class CellBars:
    """The names and links of the bars of these cells. `address`: links a cell by its id; None on a cell's own page.
    `along`: the axes in which all these cells differ, by which `names` names some of them."""

    cells: Sequence[Cell]
    address: Address | None

    @cached_property
    def along(self) -> Sequence[axes.Axis]:
        return axes.varying_axes(self.cells)

    def names(self, cells: Sequence[Cell]) -> list[str]:
        return [axes.name_of(cell, self.along) for cell in cells]

    def stacked(self, parts: Sequence[Part], shown: Sequence[Cell]) -> list[theme.Json]:
        """Make a series for each part, in ms, with a value for each cell in `shown`. Stacked, they form the bars."""
        return [
            traces.make_bars(
                [float(f"{part.of(cell):.4g}") for cell in shown],
                self.names(shown),
                name=part.name,
                marker={"color": part.colour, "line": EDGE},
                customdata=[self.address(cell.id) for cell in shown] if self.address else [],
                hover="%{y}<br>%{fullData.name}: %{x:.4~g} ms",
            )
            for part in parts
        ]

    def extremes(self, of: Callable[[Cell], float], write: Callable[[float], str]) -> str:
        """Write the smallest and the largest value with their cells' names: `4 ms (1.29.0) to 6 ms (1.31.1)`."""
        ends = [pick(self.cells, key=of) for pick in (min, max)]
        return " to ".join(f"{write(of(cell))} ({axes.name_of(cell, self.along)})" for cell in ends)


def format_ms(value: float) -> str:
    return f"{numbers.plain(value)} ms"


START = (
    Part("import", theme.OTHER, lambda cell: cell.import_ms or 0.0),
    Part("session creation", "@accent/45", lambda cell: cell.session_ms or 0.0),
    Part("first inference", "@accent", lambda cell: cell.first_ms or 0.0),
)


def draw_cold_start(cells: Sequence[Cell], address: Address, comparisons: Sequence[Comparison] = ()) -> Figure:
    """Draw the time of a fresh process until its first answer: import, session creation, first inference. At most
    MAX_BARS cells have a bar, among them the fastest and the slowest. A/A twins and cells without the time of session
    creation or first inference are left out, and an unknown import counts as 0; without any cell the chart is empty and
    says so."""
    times = Times.of(cells, comparisons)
    known = [cell for cell in cells if cell.twin_of is None and None not in (cell.session_ms, cell.first_ms)]
    bars = CellBars([times.with_compared_time(cell) for cell in known], address)
    then = figure.p50_column(times, known)
    table = _make_table(
        bars,
        COLD_START,
        "Cold start of each cell",
        Number("import, ms", lambda cell: as_number(cell.import_ms), note="of ONNX Runtime, in a fresh process"),
        Number("session creation, ms", lambda cell: as_number(cell.session_ms)),
        Number("first inference, ms", lambda cell: as_number(cell.first_ms)),
        Number("together, ms", lambda cell: as_number(_start_ms(cell))),
        replace(then, text=f"then {then.text}"),
    )
    if not known:
        return empty_figure(COLD_START, "No cell has created a session yet.", table)
    shown, rest = choose_bars(known, _start_ms)
    reached = scales.make_linear([_start_ms(cell) for cell in shown])
    return Figure(
        name=COLD_START,
        title=f"{format_ms(_start_ms(known[0]))} until the first answer"
        if len(known) == 1
        else f"Until the first answer: {bars.extremes(_start_ms, format_ms)}",
        summary=(
            f"Import, session creation and first inference of {numbers.counted(len(known), 'cell')}, each in one fresh "
            f"process, so without an interval.{rest} The table below has every number."
        ),
        data=bars.stacked(START, shown),
        layout=theme.make_bar_layout(
            len(shown), theme.make_axis("ms until the first answer, in one fresh process", **reached), is_stacked=True
        ),
        table=table,
    )


def draw_memory(cells: Sequence[Cell], address: Address) -> Figure:
    """Draw the peak memory of each cell's process. At most MAX_BARS cells have a bar, among them those with least and
    most. A/A twins and cells without a figure are left out; without any cell the chart is empty and says so."""
    known = [cell for cell in cells if cell.twin_of is None and cell.peak_memory_bytes]
    bars = CellBars(known, address)
    table = _make_table(
        bars,
        MEMORY,
        "Peak memory of each cell's process",
        figure.RUNTIME,
        Number(
            "peak, MiB",
            lambda cell: Entry(numbers.plain(_peak_bytes(cell) / MIB), _peak_bytes(cell)),
            note="of a process that runs the model once: Python, ONNX Runtime, model, inputs and outputs",
        ),
        Number(
            "model, MiB",
            lambda cell: Entry(numbers.plain(cell.model_bytes / MIB if cell.model_bytes else None), cell.model_bytes),
        ),
    )
    if not known:
        return empty_figure(MEMORY, "No cell has reported its memory yet.", table)
    shown, rest = choose_bars(known, _peak_bytes)
    reached = scales.make_linear([_peak_bytes(cell) / MIB for cell in shown], room=scales.FOR_LABELS)
    colour_of = colours.choose_cell_colour(shown)
    return Figure(
        name=MEMORY,
        title=f"At most {numbers.memory(_peak_bytes(known[0]))}"
        if len(set(map(_peak_bytes, known))) == 1
        else f"From {bars.extremes(_peak_bytes, numbers.memory)}",
        summary=(
            f"Peak memory of the process of {numbers.counted(len(known), 'cell')}, measured in one process each, so "
            f"without an interval.{rest} The table below has every number."
        ),
        data=[
            traces.make_bars(
                [round(_peak_bytes(cell) / MIB, 2) for cell in shown],
                bars.names(shown),
                **traces.make_bar_labels(numbers.memory(_peak_bytes(cell)) for cell in shown),
                marker={"color": [colour_of(cell) for cell in shown]},
                customdata=[[address(cell.id), titles.runtime(cell.runtime)] for cell in shown],
                hover="%{y}, %{customdata[1]}<br>%{x:.4~g} MiB",
            )
        ],
        layout=theme.make_bar_layout(len(shown), theme.make_axis("peak memory of the process, MiB", **reached)),
        table=table,
    )


def draw_providers(cells: Sequence[Cell], address: Address) -> Figure:
    """Draw a stacked bar of time shares by provider for every traced cell except A/A twins. Without any traced cell the
    chart is empty and says so."""
    traced = [cell for cell in cells if cell.providers and cell.twin_of is None]
    bars = CellBars(traced, address)
    name = figure.name_column(bars.along, address)
    table = Table.of(
        PROVIDERS,
        "Time and executed nodes by provider",
        (Column("Cell", lambda placed: name.entry(placed.cell)), *map(place_column, PROVIDER_COLUMNS)),
        [Placed(cell, part) for cell in traced for part in cell.providers],
    )
    if not traced:
        return empty_figure(PROVIDERS, "No cell has been traced yet.", table)
    names = list(dict.fromkeys(part.name for cell in traced for part in cell.providers))
    return Figure(
        name=PROVIDERS,
        title=_write_placement_finding(bars),
        summary=(
            f"Share of inference time of {numbers.listed([titles.provider(name) for name in names])} in "
            f"{numbers.counted(len(traced), 'cell')}, from a trace of each. The table below has every number."
        ),
        data=[_draw_shares(name, bars, address) for name in names],
        layout=theme.make_bar_layout(
            len(traced),
            theme.make_axis("share of inference time, %", range=[0, 100], tickvals=[0, 25, 50, 75, 100]),
            is_stacked=True,
        ),
        table=table,
        note="Shares are from traces, which add some time to every node.",
    )


def _start_ms(cell: Cell) -> float:
    return sum(part.of(cell) for part in START)


def _peak_bytes(cell: Cell) -> float:
    return float(cell.peak_memory_bytes or 0)


def _make_table(bars: CellBars, name: str, caption: str, *own: Column[Cell]) -> Table:
    assert bars.address is not None
    return Table.of(name, caption, (figure.name_column(bars.along, bars.address), *own), bars.cells)


def _write_placement_finding(bars: CellBars) -> str:
    """Name the cell that spends most time on other providers than the requested one, or say that none does."""
    shares = [sum(part.time_share for part in cell.providers if part.name != cell.provider) for cell in bars.cells]
    elsewhere, worst = max(zip(shares, bars.cells, strict=True), key=lambda pair: pair[0])
    if not elsewhere:
        asked = sorted({titles.provider(cell.provider) for cell in bars.cells})
        return f"All time is spent where it was asked for: {numbers.listed(asked)}"
    wished = titles.provider(worst.provider)
    return f"{axes.name_of(worst, bars.along)} spends {numbers.share(elsewhere)} of its time outside {wished}"


def _draw_shares(provider: str, bars: CellBars, address: Address) -> theme.Json:
    parts = [next((part for part in cell.providers if part.name == provider), None) for cell in bars.cells]
    return traces.make_bars(
        [100 * part.time_share if part else 0 for part in parts],
        bars.names(bars.cells),
        name=titles.provider(provider),
        text=[numbers.share(part.time_share) if part and part.time_share >= 0.08 else "" for part in parts],
        textposition="inside",
        insidetextanchor="middle",
        textfont={"color": "@paper"},
        marker={"color": colours.provider_colour(provider), "line": EDGE},
        customdata=[
            [address(cell.id), part.nodes if part else 0] for cell, part in zip(bars.cells, parts, strict=True)
        ],
        hover="%{fullData.name}, %{y}<br>%{x:.3~g} % of the time, %{customdata[1]} nodes",
    )
