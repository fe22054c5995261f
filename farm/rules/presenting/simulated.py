"""Describes cells that ran on a simulator of their device: where nodes were placed, and whether outputs agree.

Placement and outputs are the device's own compiler's and are real; no latency of a simulator is.
"""

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.cells import label
from farm.rules.runtimes import providers
from farm.rules.wording.numbers import counted

# operators that are named before the rest is counted
MAX_NAMED = 5
_PARITY = {"pass": "its outputs agree with the reference", "fail": "its outputs differ from the reference"}
NOTE = "Simulated: placement and parity are the device's, its latencies are not and are compared with nothing."


def sentence(document: Document) -> str:
    """Describe placement and parity of the first simulated cell, and count the others; empty where none was
    simulated."""
    cells = [cell for cell in document.cells if cell.simulated]
    if not cells:
        return ""
    first = cells[0]
    parity = _PARITY.get(first.parity.verdict, "its outputs were not compared")
    rest = f" {counted(len(cells) - 1, 'further cell')} likewise, each with its own." if len(cells) > 1 else ""
    who = f"{first.id} ({label.workload_label(first)})"
    return (
        f"{who} ran on a simulator of {providers.title(first.provider)}: {_placement(first)}; {parity}.{rest} "
        "Latencies of a simulator say nothing about the device and are compared with nothing."
    )


def _placement(cell: Cell) -> str:
    own = sum(cell.executed.get(cell.provider, {}).values())
    elsewhere = {op for provider, ops in cell.executed.items() if provider != cell.provider for op in ops}
    if not cell.executed:
        return "its placement was not traced"
    took = f"it took {counted(own, 'part')} of the graph" if own else "it took nothing of the graph"
    if not elsewhere:
        return f"{took}, and nothing stays on the CPU"
    names = sorted(elsewhere)
    more = f" and {counted(len(names) - MAX_NAMED, 'other operator')}" if len(names) > MAX_NAMED else ""
    return f"{took}; {', '.join(names[:MAX_NAMED])}{more} {'stays' if len(names) == 1 else 'stay'} on the CPU"
