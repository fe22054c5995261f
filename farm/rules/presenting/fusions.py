"""What was executed differently, in words: between two releases, and for an operator set alone.

Read off traces, so that it is deterministic: which of the model's own nodes ran where, fused with what.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.runtimes.order import release_order
from farm.rules.tracing.placement import cell_changes
from farm.rules.wording.numbers import counted

MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class Stamp:
    """One runtime at two opsets of a model. `lost`: the model's own nodes that run apart at `new` and not at `old`."""

    runtime: Runtime
    old: int
    new: int
    lost: tuple[str, ...]


def graph_changes(old: Cell, new: Cell) -> list[str]:
    """How two cells' executed graphs differ, worse first, or that they do not. Empty where one was not traced."""
    if not (old.operators and new.operators):
        return []
    found = cell_changes(old, new)
    # of providers, because a document names the slowest operators alone
    counts = [sum(provider.nodes for provider in cell.providers) or len(cell.operators) for cell in (old, new)]
    ran = f"{counted(counts[1], 'operator')} executed, {counts[0]} before."
    if not found:
        same = "The same nodes ran on the same provider, fused alike" if counts[0] == counts[1] else ran.rstrip(".")
        return [f"{same}."]
    return [*(change.sentence() for change in sorted(found, key=lambda change: not change.is_worse)), ran]


def stamps(document: Document) -> list[Stamp]:
    """Every comparison by opset whose sides were both traced, in order of releases."""
    cells = {cell.id: cell for cell in document.cells}
    pairs = [
        (cells[comparison.baseline], cells[comparison.candidate])
        for comparison in document.comparisons
        if comparison.axis == "opset"
    ]
    found = [stamp for old, new in pairs if (stamp := _stamp(old, new)) is not None]
    return sorted(found, key=lambda change: (change.old, change.new, release_order(change.runtime.version)))


def stamp_sentence(document: Document) -> str:
    """That an opset alone costs fusions, with which releases and with which not; empty when it costs none."""
    found = stamps(document)
    worst = max(found, key=lambda change: len(change.lost), default=None)
    if worst is None or not worst.lost:
        return ""
    alike = [change for change in found if (change.old, change.new) == (worst.old, worst.new)]
    losing = list(dict.fromkeys(change.runtime for change in alike if change.lost))
    keeping = list(dict.fromkeys(change.runtime for change in alike if change.runtime not in losing))
    more = f" and {len(worst.lost) - MAX_NAMED} more" if len(worst.lost) > MAX_NAMED else ""
    nodes = f"{counted(len(worst.lost), 'node')} ({', '.join(worst.lost[:MAX_NAMED])}{more})"
    text = f"For the opset stamp alone, {worst.new} instead of {worst.old}, {_releases(losing)} "
    text += f"lose{'s' if len(losing) == 1 else ''} fusions: {nodes} run apart that were fused"
    return f"{text}; {_releases(keeping)} keep{'s' if len(keeping) == 1 else ''} them." if keeping else f"{text}."


def _stamp(old: Cell, new: Cell) -> Stamp | None:
    is_traced = bool(old.operators and new.operators)
    if not is_traced or old.opset is None or new.opset is None or old.runtime != new.runtime:
        return None
    lost = [node for change in cell_changes(old, new) if change.kind == "fusion_gone" for node in change.nodes]
    return Stamp(new.runtime, old.opset, new.opset, tuple(sorted(lost)))


def _releases(runtimes: Sequence[Runtime]) -> str:
    """`ONNX Runtime 1.22.1, 1.23.2 and 1.24.4`; other distributions by their own name."""
    if any(runtime.distribution != "onnxruntime" for runtime in runtimes):
        names, head = [str(runtime) for runtime in runtimes], ""
    else:
        names, head = [runtime.version for runtime in runtimes], "ONNX Runtime "
    return head + (names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}")
