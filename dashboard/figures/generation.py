"""Cells that generate: where a generation's time goes, the first token over the prompt, the next ones over position."""

from collections.abc import Sequence

from dashboard import axes
from dashboard.figures import figure, theme
from dashboard.figures.cell_bars import CellBars, Part, ms
from dashboard.figures.cell_lines import CellLines, Curve
from dashboard.figures.figure import Address, Figure, barred, rounded
from farm.contract.document_cells import Cell, CellPhase
from farm.rules.cells import scenarios
from farm.rules.cells.scenario_metrics import OUTSIDE, OUTSIDE_CPU, TPOT, TTFT
from farm.rules.presenting.tables import Column, Entry, Number, Table, written
from farm.rules.wording import numbers, titles

PHASES, PROMPTS, TOKENS = "phases", "first-token", "tokens"


def has_parts(cell: Cell) -> bool:
    """Whether launches told the prompt, the tokens behind it and the time outside the graph."""
    return {TPOT, TTFT, OUTSIDE} <= {metric.name for metric in cell.metrics} and bool(_prefill_ms(cell))


def stretches_of(cell: Cell) -> list[CellPhase]:
    """The time per token along the sequence, stretch by stretch."""
    return [phase for phase in cell.phases if TPOT in phase.metrics]


def phases(cells: Sequence[Cell], address: Address | None = None) -> Figure:
    """A bar for each cell: what a generation takes in the prompt, in the tokens behind it, and outside the graph."""
    bars = CellBars(cells, address)
    shown, rest = barred(cells, _whole_ms)
    prompt = numbers.share(_prefill_ms(cells[0]) / _whole_ms(cells[0]))
    own: tuple[Column[Cell], ...] = (
        Number("prefill, ms", lambda cell: written(_prefill_ms(cell))),
        Number("decoding, ms", lambda cell: written(_decode_ms(cell))),
        Number("outside the graph, ms", lambda cell: written(_outside_ms(cell)), note="choosing the tokens"),
        Number("together, ms", lambda cell: written(_whole_ms(cell))),
    )
    return Figure(
        name=PHASES,
        title=f"{ms(_whole_ms(cells[0]))} a generation, {prompt} of it the prompt"
        if len(cells) == 1
        else f"A generation takes {bars.extremes(_whole_ms, ms)}",
        summary=(
            f"Prompt, tokens and choosing them in a generation of {numbers.counted(len(cells), 'cell')}, from medians "
            f"of launches.{rest} The table has every number."
        ),
        data=bars.stacked(PARTS, shown),
        layout=theme.row_layout(
            len(shown),
            theme.axis("ms of one generation", **theme.linear([_whole_ms(cell) for cell in shown])),
            barmode="stack",
            showlegend=True,
        ),
        table=Table.of(
            PHASES,
            "Where the time of a generation goes",
            (figure.name_column(bars.along, address), *own) if address else own,
            cells,
        ),
    )


def prompts(cells: Sequence[Cell], address: Address | None = None) -> Figure:
    """The time to the first token over the length of the prompt: a line of cells that differ in nothing else."""
    ordered = sorted(cells, key=_prompt)
    along = [axis for axis in axes.varying(ordered) if axis.name != "scenario"]
    alike: dict[str, list[Cell]] = {}
    for cell in ordered:
        name = axes.name_of(cell, along) if along else titles.runtime(cell.runtime)
        alike.setdefault(name, []).append(cell)
    lines = CellLines([some[0] for some in alike.values()], None)
    columns = (
        Column[Cell]("runtime", lambda cell: Entry(titles.runtime(cell.runtime), is_name=True)),
        Number[Cell]("tokens of the prompt", lambda cell: rounded(float(_prompt(cell)))),
        Number[Cell]("to the first token, ms", lambda cell: written(_first_ms(cell), numbers.milliseconds)),
    )
    first, last = (
        f"{numbers.milliseconds(_first_ms(end))} ms behind {_prompt(end)}" for end in (ordered[0], ordered[-1])
    )
    return Figure(
        name=PROMPTS,
        title=f"First token after {first} tokens, {last}",
        summary=f"Time to the first token of {numbers.counted(len(cells), 'cell')}. The table has every one.",
        data=[
            {
                **lines.line(
                    some[0], map(_prompt, some), map(_first_ms, some), hover="%{x} tokens: %{y:.5~g} ms", name=name
                ),
                "customdata": [address(cell.id) for cell in some] if address else [],
            }
            for name, some in alike.items()
        ],
        layout=theme.layout(
            height=260,
            xaxis=theme.axis("tokens of the prompt", **theme.linear([float(_prompt(cell)) for cell in ordered])),
            yaxis=theme.axis("to the first token, ms", **theme.linear([_first_ms(cell) for cell in ordered])),
            showlegend=len(alike) > 1,
        ),
        table=Table.of(PROMPTS, "Time to the first token", columns, ordered),
    )


def differ_in_prompts(cells: Sequence[Cell]) -> bool:
    """Whether there is a length to draw over."""
    return len({_prompt(cell) for cell in cells}) > 1


def tokens(cells: Sequence[Cell], address: Address | None = None) -> Figure:
    """A line for each cell: the time per token over the tokens before it."""
    lines = CellLines(cells, address)
    stretches = [placed.row for placed in lines.rows(stretches_of)]
    times = [_tpot_ms(stretch) for stretch in stretches]
    first, last, low, high = (
        f"{numbers.milliseconds(time)} ms" for time in (times[0], times[-1], min(times), max(times))
    )
    return lines.figure(
        CURVE,
        title=f"Time per token from {first} to {last} along the sequence"
        if lines.is_alone
        else f"Time per token along the sequence: {low} to {high}",
        summary=f"In {numbers.counted(len(times), 'stretch', 'stretches')} of a launch. The table has every one.",
        xaxis=theme.axis("tokens before", **theme.linear(list(map(_position, stretches)), from_zero=False)),
        yaxis=theme.axis("time per token, ms", **theme.linear(times)),
    )


def _position(stretch: CellPhase) -> float:
    return stretch.metrics["position"]


def _tpot_ms(stretch: CellPhase) -> float:
    return stretch.metrics[TPOT]


CURVE = Curve(
    TOKENS,
    "Time per token",
    stretches_of,
    _position,
    _tpot_ms,
    "behind %{x:.4~g} tokens: %{y:.5~g} ms",
    (
        Column("tokens", lambda stretch: Entry(stretch.name)),
        Number("tokens before", lambda stretch: rounded(_position(stretch))),
        Number("time per token, ms", lambda stretch: written(_tpot_ms(stretch), numbers.milliseconds)),
    ),
)


def _tokens(cell: Cell) -> int:
    return scenarios.of_text(cell.scenario).tokens


def _prompt(cell: Cell) -> int:
    return scenarios.of_text(cell.scenario).context - _tokens(cell)


def _first_ms(cell: Cell) -> float:
    return cell.figures[TTFT].value


def _prefill_ms(cell: Cell) -> float:
    return next((phase.metrics["prefill_ms"] for phase in cell.phases if "prefill_ms" in phase.metrics), 0.0)


def _decode_ms(cell: Cell) -> float:
    """In the graph: where the call chooses the token too, launches say what of it that is by processor time besides."""
    choosing = cell.figures[OUTSIDE].value if OUTSIDE_CPU in cell.figures else 0.0
    return max(0.0, cell.figures[TPOT].value - choosing) * (_tokens(cell) - 1)


def _outside_ms(cell: Cell) -> float:
    return cell.figures[OUTSIDE].value * _tokens(cell)


PARTS = (
    Part("prefill", "@accent", _prefill_ms),
    Part("decoding", "@accent/45", _decode_ms),
    Part("outside the graph", theme.OTHER, _outside_ms),
)


def _whole_ms(cell: Cell) -> float:
    return sum(part.of(cell) for part in PARTS)
