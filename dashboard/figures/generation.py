"""Charts of cells that generate: the parts of a generation's time, time to the first token, and time per token."""

from collections.abc import Callable, Sequence

from dashboard import axes
from dashboard.figures import figure, scales, theme
from dashboard.figures.cell_bars import CellBars, Part, format_ms
from dashboard.figures.cell_lines import CellLines, Curve, read_metric
from dashboard.figures.figure import Address, Figure, choose_bars, rounded_entry
from farm.contract.document_cells import Cell, CellPhase
from farm.rules.cells import scenarios
from farm.rules.cells.scenario_metrics import TPOT
from farm.rules.presenting.generations import first_token_ms, make_generation
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_number
from farm.rules.presenting.times import BY_CLOCK, Times, clock_title, metric_heading
from farm.rules.wording import numbers, titles

PHASES, PROMPTS, TOKENS = "phases", "first-token", "tokens"


def list_token_phases(cell: Cell) -> list[CellPhase]:
    return [phase for phase in cell.phases if TPOT in phase.metrics]


def draw_phases(cells: Sequence[Cell], address: Address | None = None, times: Times = BY_CLOCK) -> Figure:
    """Draw a bar for each cell, at most MAX_BARS: the time of a generation for the prompt, for the tokens, and outside
    the graph. There must be a cell. `address`: None on a cell's own page."""
    bars, times = CellBars(cells, address), times.with_same_clock(cells)
    known = {cell.id: make_generation(cell, times) for cell in cells}
    parts = (
        Part("prefill", "@accent", lambda cell: known[cell.id].prompt_ms),
        Part("decoding", "@accent/45", lambda cell: known[cell.id].decoding_ms),
        Part("outside the graph", theme.OTHER, lambda cell: known[cell.id].choosing_ms),
    )

    def total_ms(cell: Cell) -> float:
        return known[cell.id].total_ms

    shown, rest = choose_bars(cells, total_ms)
    first, kinds = known[cells[0].id], [each.is_processor for each in known.values()]
    by = clock_title(kinds, "time of the clock") if any(kinds) else ""
    of = f" of {by}" if by else ""
    of_prompt = numbers.share(first.prompt_ms / first.total_ms)
    columns: tuple[Column[Cell], ...] = (
        *([figure.name_column(bars.along, address)] if address else []),
        *(Number[Cell](f"{part.name}, ms", _make_entry(part.of), note=by) for part in parts),
        Number("together, ms", lambda cell: as_number(total_ms(cell)), note=by),
        Number(
            metric_heading("tokens/s", kinds) if by else "tokens/s",
            lambda cell: as_number(known[cell.id].tokens_per_s),
            note="new tokens of all sequences over the time together: waiting between the calls is left out",
        ),
    )
    return Figure(
        name=PHASES,
        title=f"{format_ms(first.total_ms)}{of} a generation, {of_prompt} of it the prompt"
        if len(cells) == 1
        else f"A generation takes {bars.extremes(total_ms, format_ms)}{of}",
        summary=(
            f"Prompt, tokens and choosing them in a generation of {numbers.counted(len(cells), 'cell')}, from medians "
            f"of launches.{rest} The table has every number."
        ),
        data=bars.stacked(parts, shown),
        layout=theme.make_bar_layout(
            len(shown),
            theme.make_axis(f"ms{of} of one generation", **scales.make_linear([total_ms(cell) for cell in shown])),
            is_stacked=True,
        ),
        table=Table.of(PHASES, "Where the time of a generation goes", columns, cells),
    )


def _make_entry(of: Callable[[Cell], float]) -> Callable[[Cell], Entry]:
    return lambda cell: as_number(of(cell))


def draw_prompts(cells: Sequence[Cell], address: Address | None = None, times: Times = BY_CLOCK) -> Figure:
    """Draw the time to the first token over the length of the prompt. Cells that differ only in their scenario share a
    line. There must be a cell, and all must generate."""
    ordered, times = sorted(cells, key=_prompt_tokens), times.with_same_clock(cells)
    along = [axis for axis in axes.varying_axes(ordered) if axis.name != "scenario"]
    alike: dict[str, list[Cell]] = {}
    for cell in ordered:
        name = axes.name_of(cell, along) if along else titles.runtime(cell.runtime)
        alike.setdefault(name, []).append(cell)
    lines = CellLines([some[0] for some in alike.values()], None)

    def first_ms(cell: Cell) -> float:
        return first_token_ms(cell, times)

    columns = (
        Column[Cell]("runtime", lambda cell: Entry(titles.runtime(cell.runtime), is_name=True)),
        Number[Cell]("tokens of the prompt", lambda cell: rounded_entry(float(_prompt_tokens(cell)))),
        Number[Cell]("to the first token, ms", lambda cell: as_number(first_ms(cell), numbers.milliseconds)),
    )
    first, last = (
        f"{numbers.milliseconds(first_ms(end))} ms behind {_prompt_tokens(end)}" for end in (ordered[0], ordered[-1])
    )
    return Figure(
        name=PROMPTS,
        title=f"First token after {first} tokens, {last}",
        summary=f"Time to the first token of {numbers.counted(len(cells), 'cell')}. The table has every one.",
        data=[
            {
                **lines.line(
                    some[0],
                    map(_prompt_tokens, some),
                    map(first_ms, some),
                    hover="%{x} tokens: %{y:.5~g} ms",
                    name=name,
                ),
                "customdata": [address(cell.id) for cell in some] if address else [],
            }
            for name, some in alike.items()
        ],
        layout=theme.make_layout(
            height=260,
            xaxis=theme.make_axis("tokens of the prompt", **scales.make_linear([*map(_prompt_tokens, ordered)])),
            yaxis=theme.make_axis("to the first token, ms", **scales.make_linear([*map(first_ms, ordered)])),
            showlegend=len(alike) > 1,
        ),
        table=Table.of(PROMPTS, "Time to the first token", columns, ordered),
    )


def differ_in_prompts(cells: Sequence[Cell]) -> bool:
    return len({_prompt_tokens(cell) for cell in cells}) > 1


def draw_tokens(cells: Sequence[Cell], address: Address | None = None, times: Times = BY_CLOCK) -> Figure:
    """Draw the time per token over the number of tokens before it, always by the clock, with a line for each cell. At
    least one cell must have token phases (see list_token_phases). `times`: decides only whether texts say “by the
    clock”."""
    lines, by = CellLines(cells, address), " by the clock" if times.by_processor else ""
    phases = [placed.row for placed in lines.rows(list_token_phases)]
    each_ms = [_tpot_ms(phase) for phase in phases]
    first, last, low, high = (
        f"{numbers.milliseconds(time)} ms" for time in (each_ms[0], each_ms[-1], min(each_ms), max(each_ms))
    )
    return lines.figure(
        CURVE,
        title=f"Time per token{by} from {first} to {last} along the sequence"
        if lines.is_alone
        else f"Time per token{by} along the sequence: {low} to {high}",
        summary=f"In {numbers.counted(len(each_ms), 'stretch', 'stretches')} of a launch. The table has every one.",
        xaxis=theme.make_axis("tokens before", **scales.make_linear(list(map(_position, phases)), from_zero=False)),
        yaxis=theme.make_axis(f"time per token{by}, ms", **scales.make_linear(each_ms)),
    )


_position, _tpot_ms = read_metric("position"), read_metric(TPOT)
CURVE = Curve(
    TOKENS,
    "Time per token",
    list_token_phases,
    _position,
    _tpot_ms,
    "behind %{x:.4~g} tokens: %{y:.5~g} ms",
    (
        Column("tokens", lambda phase: Entry(phase.name)),
        Number("tokens before", lambda phase: rounded_entry(_position(phase))),
        Number("time per token, ms", lambda phase: as_number(_tpot_ms(phase), numbers.milliseconds)),
    ),
)


def _prompt_tokens(cell: Cell) -> int:
    scenario = scenarios.parse_recorded(cell.scenario)
    return scenario.context_tokens - scenario.new_tokens
