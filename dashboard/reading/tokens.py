"""What a cell generated, beside what the first cell of its block did: the tokens around the first that differs."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.figures.figure import Address
from dashboard.reading.cell import COVERS, NODE, RAN_ON, TYPE, figure_columns
from farm.contract.document_cells import Cell
from farm.rules.generation import streams
from farm.rules.presenting.tables import Table

# tokens shown before the first that differs, and from it on
BEFORE, FROM = 12, 12
# … and of a stream that differs nowhere
SHOWN = 24


@dataclass(frozen=True)
class Line:
    """One stream as text: what is alike, the first token that is not, and what follows it."""

    name: str
    href: str
    alike: str
    other: str
    after: str


@dataclass(frozen=True)
class Generated:
    """What the page says: sentences, and the streams, one below the other. `place`: from 1, of the first difference."""

    text: str
    lines: tuple[Line, ...]
    place: int | None
    shown: str


def generated(cells: Sequence[Cell], cell: Cell, address: Address) -> Generated | None:
    """None for a cell that generated nothing."""
    if not cell.tokens:
        return None
    first = next((one for one in cells if one.block == cell.block and one.tokens), cell)
    place = streams.first_difference(first.tokens, cell.tokens)
    sides = [cell] if first.id == cell.id else [first, cell]
    start = 0 if place is None else max(0, place - 1 - BEFORE)
    end = SHOWN if place is None else place - 1 + FROM
    shown = f"Tokens {start + 1} to {min(end, len(cell.tokens))} of {len(cell.tokens)}"
    return Generated(
        text=cell.scenario_text,
        lines=tuple(_line(one, address, start=start, end=end, place=place) for one in sides),
        place=place,
        shown=shown,
    )


def _line(cell: Cell, address: Address, *, start: int, end: int, place: int | None) -> Line:
    at = end if place is None else place - 1
    return Line(
        name=cell.id,
        href=address(cell.id),
        alike=_written(cell.tokens[start:at]),
        other=_written(cell.tokens[at : at + 1]) if place is not None else "",
        after=_written(cell.tokens[at + 1 : end]),
    )


def _written(tokens: Sequence[int]) -> str:
    return " ".join(map(str, tokens))


def of_prompt(cell: Cell) -> Table | None:
    """The operators executed over the prompt, by time; None where it was not traced apart."""
    if cell.prompt is None:
        return None
    whole = sum(one.time_us for one in cell.prompt.operators) + (cell.prompt.unaccounted_us or 0.0)
    figures = figure_columns(cell.prompt.operators, whole, "µs per prompt")
    title = f"Executed operators over a prompt of {cell.prompt.tokens}, from a trace"
    return Table.of("prompt-operators", title, (NODE, TYPE, RAN_ON, *figures, COVERS), cell.prompt.operators)
