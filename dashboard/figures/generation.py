"""Cells that generate: where a generation's time goes, the first token over the prompt, the next ones over position."""

from collections.abc import Callable, Sequence

from dashboard import axes
from dashboard.figures import columns, scales, theme
from dashboard.figures.cell_lines import CellLines
from dashboard.figures.excerpts import barred
from dashboard.figures.figure import Address, Figure
from dashboard.figures.theme import Json
from farm.contract.document_cells import Cell, CellPhase
from farm.rules.cells import scenarios
from farm.rules.cells.generations import Generation
from farm.rules.cells.scenario_metrics import OUTSIDE, OUTSIDE_CPU, TPOT, TTFT
from farm.rules.presenting.tables import Column, Entry, Number, Table, written
from farm.rules.wording import numbers, titles

PHASES, PROMPTS, TOKENS = "phases", "first-token", "tokens"
PREFILL = "prefill"

Part = tuple[str, str, Callable[[Cell], float]]


def has_parts(cell: Cell) -> bool:
    """Whether launches told the prompt, the tokens behind it and the time outside the graph."""
    return {TPOT, TTFT, OUTSIDE} <= cell.figures.keys() and bool(_prefill_ms(cell))


def stretches_of(cell: Cell) -> list[CellPhase]:
    """The time per token along the sequence, stretch by stretch."""
    return [one for one in cell.phases if TPOT in one.metrics]


def phases(cells: Sequence[Cell], address: Address | None = None) -> Figure:
    """A bar for each cell: what a generation takes in the prompt, in the tokens behind it, and outside the graph."""
    along = axes.varying(cells)
    shown, rest = barred(cells, _whole)
    return Figure(
        name=PHASES,
        title=_parts_found(cells, along),
        summary=(
            f"Prompt, tokens and choosing them in a generation of {numbers.counted(len(cells), 'cell')}, from medians "
            f"of launches.{rest} The table has every number."
        ),
        data=[_bars(part, shown, along, address) for part in PARTS],
        layout=theme.row_layout(
            len(shown),
            theme.axis("ms of one generation", **scales.linear([_whole(one) for one in shown])),
            barmode="stack",
            showlegend=True,
        ),
        table=_parts_table(cells, along, address),
    )


def prompts(cells: Sequence[Cell], address: Address | None = None) -> Figure:
    """The time to the first token over the length of the prompt: a line of cells that differ in nothing else."""
    ordered = sorted(cells, key=lambda cell: _told(cell).prompt)
    alike: dict[str, list[Cell]] = {}
    for cell in ordered:
        alike.setdefault(_without_scenario(cell, ordered), []).append(cell)
    lines = CellLines([some[0] for some in alike.values()], None)
    columns = (
        Column[Cell]("runtime", lambda cell: Entry(titles.runtime(cell.runtime), is_name=True)),
        Number[Cell]("tokens of the prompt", lambda cell: written(float(_told(cell).prompt), _whole_number)),
        Number[Cell]("to the first token, ms", lambda cell: written(cell.figures[TTFT].value, numbers.milliseconds)),
    )
    lengths, times = [_told(cell).prompt for cell in ordered], [cell.figures[TTFT].value for cell in ordered]
    return Figure(
        name=PROMPTS,
        title=(
            f"First token after {numbers.milliseconds(times[0])} ms behind {lengths[0]} tokens, "
            f"{numbers.milliseconds(times[-1])} ms behind {lengths[-1]}"
        ),
        summary=f"Time to the first token of {numbers.counted(len(cells), 'cell')}. The table has every one.",
        data=[
            {
                **lines.line(
                    some[0],
                    [_told(cell).prompt for cell in some],
                    [cell.figures[TTFT].value for cell in some],
                    hover="%{x} tokens: %{y:.5~g} ms",
                ),
                "name": name,
                "customdata": [address(cell.id) for cell in some] if address else [],
            }
            for name, some in alike.items()
        ],
        layout=theme.layout(
            height=260,
            xaxis=theme.axis("tokens of the prompt", **scales.linear([float(one) for one in lengths])),
            yaxis=theme.axis("to the first token, ms", **scales.linear(times)),
            showlegend=len(alike) > 1,
        ),
        table=Table.of(PROMPTS, "Time to the first token", columns, ordered),
    )


def differ_in_prompts(cells: Sequence[Cell]) -> bool:
    """Whether there is a length to draw over."""
    return len({_told(cell).prompt for cell in cells}) > 1


def tokens(cells: Sequence[Cell], address: Address | None = None) -> Figure:
    """A line for each cell: the time per token over the tokens before it."""
    lines = CellLines(cells, address)
    placed = lines.rows(stretches_of)
    places, times = ([one.row.metrics[name] for one in placed] for name in ("position", TPOT))
    columns = (
        Column[CellPhase]("tokens", lambda one: Entry(one.name)),
        Number[CellPhase]("tokens before", lambda one: written(one.metrics["position"], _whole_number)),
        Number[CellPhase]("time per token, ms", lambda one: written(one.metrics[TPOT], numbers.milliseconds)),
    )
    low, high = (f"{numbers.milliseconds(one)} ms" for one in (min(times), max(times)))
    alone = f"Time per token from {numbers.milliseconds(times[0])} ms to {numbers.milliseconds(times[-1])} ms"
    return Figure(
        name=TOKENS,
        title=f"{alone} along the sequence"
        if lines.is_alone
        else f"Time per token along the sequence: {low} to {high}",
        summary=f"In {numbers.counted(len(placed), 'stretch', 'stretches')} of a launch. The table has every one.",
        data=[
            lines.line(
                cell,
                [one.metrics["position"] for one in stretches_of(cell)],
                [one.metrics[TPOT] for one in stretches_of(cell)],
                hover="behind %{x:.4~g} tokens: %{y:.5~g} ms",
            )
            for cell in cells
        ],
        layout=theme.layout(
            height=240,
            xaxis=theme.axis("tokens before", **scales.linear(places, from_zero=False)),
            yaxis=theme.axis("time per token, ms", **scales.linear(times)),
            showlegend=not lines.is_alone,
        ),
        table=Table.of(TOKENS, "Time per token", lines.columns(columns), placed),
    )


def _told(cell: Cell) -> Generation:
    return scenarios.parsed(cell.scenario).generation


def _prefill_ms(cell: Cell) -> float:
    return next((one.metrics["prefill_ms"] for one in cell.phases if "prefill_ms" in one.metrics), 0.0)


def _decode_ms(cell: Cell) -> float:
    """In the graph: where the call chooses the token too, launches say what of it that is by processor time besides."""
    choosing = cell.figures[OUTSIDE].value if OUTSIDE_CPU in cell.figures else 0.0
    return max(0.0, cell.figures[TPOT].value - choosing) * (_told(cell).new - 1)


def _outside_ms(cell: Cell) -> float:
    return cell.figures[OUTSIDE].value * _told(cell).new


def _whole(cell: Cell) -> float:
    return sum(of(cell) for _, _, of in PARTS)


PARTS: tuple[Part, ...] = (
    (PREFILL, "@accent", _prefill_ms),
    ("decoding", "@accent/45", _decode_ms),
    ("outside the graph", theme.OTHER, _outside_ms),
)


def _parts_found(cells: Sequence[Cell], along: Sequence[axes.Axis]) -> str:
    slowest, fastest = max(cells, key=_whole), min(cells, key=_whole)
    share = numbers.share(_prefill_ms(slowest) / _whole(slowest))
    if len(cells) == 1:
        return f"{numbers.plain(_whole(slowest))} ms a generation, {share} of it the prompt"
    return (
        f"A generation takes {numbers.plain(_whole(fastest))} ms ({axes.name_of(fastest, along)}) to "
        f"{numbers.plain(_whole(slowest))} ms ({axes.name_of(slowest, along)})"
    )


def _bars(part: Part, cells: Sequence[Cell], along: Sequence[axes.Axis], address: Address | None) -> Json:
    name, colour, of = part
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [axes.name_of(cell, along) for cell in cells],
        "x": [float(f"{of(cell):.4g}") for cell in cells],
        "marker": {"color": colour, "line": {"color": "@paper", "width": 1}},
        "customdata": [address(cell.id) for cell in cells] if address else [],
        "hovertemplate": "%{y}<br>%{fullData.name}: %{x:.4~g} ms<extra></extra>",
    }


def _parts_table(cells: Sequence[Cell], along: Sequence[axes.Axis], address: Address | None) -> Table:
    named: tuple[Column[Cell], ...] = (columns.name(along, address),) if address else ()
    shown: tuple[Column[Cell], ...] = (
        *named,
        Number("prefill, ms", lambda cell: written(_prefill_ms(cell))),
        Number("decoding, ms", lambda cell: written(_decode_ms(cell))),
        Number("outside the graph, ms", lambda cell: written(_outside_ms(cell)), note="choosing the tokens"),
        Number("together, ms", lambda cell: written(_whole(cell))),
    )
    return Table.of(PHASES, "Where the time of a generation goes", shown, cells)


def _without_scenario(cell: Cell, cells: Sequence[Cell]) -> str:
    along = [axis for axis in axes.varying(cells) if axis.name != "scenario"]
    return axes.name_of(cell, along) if along else titles.runtime(cell.runtime)


def _whole_number(value: float | None) -> str:
    return "" if value is None else numbers.fixed(value, 0)
