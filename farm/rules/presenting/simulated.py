"""Describes cells that ran on a simulator of their device: where nodes were placed, and whether outputs agree.

Placement and outputs are those of the real device, since its own compiler is used. Latencies of a simulator are
meaningless.
"""

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.cells import label
from farm.rules.runtimes import providers
from farm.rules.wording.numbers import counted

# At most this many operators are named; the others are counted.
MAX_NAMED = 5
_PARITY = {"pass": "its outputs agree with the reference", "fail": "its outputs differ from the reference"}
NOTE = "Simulated: placement and parity are the device's, its latencies are not and are compared with nothing."


def describe_simulated(document: Document) -> str:
    """Describe placement and parity of the first simulated cell, and count the others; empty where none was
    simulated."""
    cells = [cell for cell in document.cells if cell.simulated]
    if not cells:
        return ""
    first = cells[0]
    parity = _PARITY.get(first.parity.verdict, "its outputs were not compared")
    others = f" {counted(len(cells) - 1, 'further cell')} likewise, each with its own." if len(cells) > 1 else ""
    name, provider = f"{first.id} ({label.workload_label(first)})", providers.title(first.provider)
    return (
        f"{name} ran on a simulator of {provider}: {_describe_placement(first)}; {parity}.{others} "
        "Latencies of a simulator say nothing about the device and are compared with nothing."
    )


def _describe_placement(cell: Cell) -> str:
    parts = sum(cell.executed.get(cell.provider, {}).values())
    elsewhere = {op for provider, ops in cell.executed.items() if provider != cell.provider for op in ops}
    if not cell.executed:
        return "its placement was not traced"
    took = f"it took {counted(parts, 'part')} of the graph" if parts else "it took nothing of the graph"
    if not elsewhere:
        return f"{took}, and nothing stays on the CPU"
    names = sorted(elsewhere)
    more = f" and {counted(len(names) - MAX_NAMED, 'other operator')}" if len(names) > MAX_NAMED else ""
    return f"{took}; {', '.join(names[:MAX_NAMED])}{more} {'stays' if len(names) == 1 else 'stay'} on the CPU"
