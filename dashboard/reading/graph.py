"""What the graph page says: where the time of a cell goes among the model's own nodes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from dashboard.reading.cell import COVERS, NODE, RAN_ON, TYPE, time_columns, whole_us
from farm.contract.document_cells import Cell, OperatorTime
from farm.rules.presenting.tables import Table
from farm.rules.wording import numbers, titles
from farm.runs.selectors.cells import TracedCell

# so much of the time is told by naming operators
MOST_OF = 0.8
SHOWN = 500
# shares from which a node gets the next darker step of the one hue for magnitudes
STEPS = (0.01, 0.03, 0.1, 0.25)

# the time stands beside the name: what a narrow window cuts off is what it is needed for least


@dataclass(frozen=True)
class Choice:
    """A cell to lay over the graph, as the address names it."""

    key: str
    label: str


def choices(cells: Sequence[TracedCell]) -> list[Choice]:
    """Cells to choose from, newest run first."""
    return [Choice(key_of(cell), f"run {cell.run_id}, {cell.name}: {titles.setting(cell)}") for cell in cells]


def key_of(cell: TracedCell) -> str:
    """`12:c5`."""
    return f"{cell.run_id}:{cell.name}"


def headline(cell: Cell) -> str:
    """How few operators have most of the time."""
    times = sorted((operator.time_us for operator in cell.operators), reverse=True)
    whole = sum(times)
    few = next((number for number, so_far in enumerate(accumulate(times), 1) if so_far >= MOST_OF * whole), len(times))
    executed = numbers.counted(len(times), "executed operator")
    share = numbers.share(sum(times[:few]) / (whole or 1))
    return f"{few} of {executed} {'has' if few == 1 else 'have'} {share} of the time"


def because(cell: Cell) -> str:
    """The operator at the top."""
    whole = whole_us(cell)
    top = max(cell.operators, key=lambda one: one.time_us)
    part = numbers.share(top.time_us / whole if whole else None)
    time_us, where = numbers.plain(top.time_us), titles.provider(top.provider)
    return f"{top.op_type} {top.node} takes {time_us} µs of an inference, {part} of it, on {where}."


def notes(cell: Cell) -> str:
    """What the frame writes on the model's nodes, as JSON that is safe inside a script element.

    Node → text, its tooltip and the step of its colour (1–5). Nodes fused into another say into which.
    """
    whole = whole_us(cell) or 1.0
    written: dict[str, dict[str, str | int]] = {operator.node: _note(operator, whole) for operator in cell.operators}
    for operator in cell.operators:
        for inner in operator.covers:
            written.setdefault(inner, _inside(operator))
    return notes_json(written)


def notes_json(written: Mapping[str, Mapping[str, str | int]]) -> str:
    """Notes as JSON, safe inside a script element."""
    text = json.dumps(written, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _note(one: OperatorTime, whole: float) -> dict[str, str | int]:
    share = one.time_us / whole
    text = f"{numbers.plain(one.time_us)} µs · {numbers.share(share)} · {titles.provider(one.provider)}"
    fused = f", with {numbers.listed(one.covers, most=4)} in it" if one.covers else ""
    more = f"ran as {one.op_type} on {one.provider}{fused}"
    return {"text": text, "more": more, "step": 1 + sum(share >= at for at in STEPS)}


def _inside(one: OperatorTime) -> dict[str, str | int]:
    return {"text": f"in {_end(one.node)}", "more": f"fused into {one.op_type} {one.node}", "step": 0}


def _end(name: str, most: int = 24) -> str:
    return name if len(name) <= most else f"…{name[-most + 1 :]}"


def table(cell: Cell) -> Table:
    """The list that stands beside the picture: the operators with most time."""
    whole = whole_us(cell) or 1.0
    longest = sorted(cell.operators, key=lambda one: -one.time_us)[:SHOWN]
    time, share = time_columns(whole, "µs")
    shown = (NODE, replace(time, note="per inference"), share, TYPE, RAN_ON, COVERS)
    return Table.of("operators", "The model's nodes by time", shown, longest)


def left_out(cell: Cell) -> str:
    """What the table does not show, in a sentence."""
    rest = len(cell.operators) - SHOWN
    if rest <= 0:
        return ""
    shortest = sorted((operator.time_us for operator in cell.operators), reverse=True)[SHOWN - 1]
    return (
        f"{numbers.counted(rest, 'more operator')} of at most {numbers.plain(shortest)} µs each: see the cell's page."
    )
