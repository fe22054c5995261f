"""Describes what was executed differently between two releases, and for an operator set alone.

It is read from traces, so that it is deterministic: which of the model's own nodes ran where, fused with what.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from farm.base.grouping import group_by
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.runtimes.order import release_order
from farm.rules.tracing.executions import DEVICE_COPIES
from farm.rules.tracing.placement import Kind, cell_changes
from farm.rules.wording.numbers import counted, signed
from farm.rules.wording.vocabulary import Sign

MAX_NAMED = 3
_SIGNS: Mapping[Kind, tuple[str, str]] = {
    "fusion_gone": ("−", "fusion lost"),
    "fusion_new": ("+", "fusion new"),
    "moved": ("≠", "other provider"),
    "copies": ("+", "copies"),
}
ADDED, GONE = Sign("+", "node added", "slower"), Sign("−", "node gone", "quiet")


@dataclass(frozen=True, slots=True)
class Stamp:
    """One runtime at two opsets of a model. `lost`: the model's own nodes that run apart at `new` and not at `old`."""

    runtime: Runtime
    old: int
    new: int
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphChange:
    """`moved_us`: how much longer what it is about takes; None where that is not known."""

    sign: Sign
    text: str
    moved_us: float | None

    @property
    def sentence(self) -> str:
        return self.text if self.moved_us is None else f"{self.text.rstrip('.')}: {signed(self.moved_us)} µs."


# own nodes that were executed together, and how much longer they take, in µs
Moved = Sequence[tuple[Collection[str], float]]


def graph_diff(old: Cell, new: Cell, moved: Moved = ()) -> list[GraphChange]:
    """Return the changes between two cells' executed graphs, the worse first; empty where one was not traced.

    `moved` says how much longer groups of own nodes take.
    """
    if not (old.operators and new.operators):
        return []
    known: set[str] = set()
    found = []
    for change in sorted(cell_changes(old, new), key=lambda change: not change.is_worse):
        own = [(nodes, us) for nodes, us in moved if not set(change.nodes).isdisjoint(nodes)]
        known.update(change.nodes, *(nodes for nodes, _ in own))
        moved_us = sum(us for _, us in own) if own else None
        if change.kind == "copies":
            moved_us = _copied_us(new) - _copied_us(old)
        tone = "slower" if change.is_worse else "quiet"
        found.append(GraphChange(Sign(*_SIGNS[change.kind], tone), change.sentence(), moved_us))
    return [*found, *_count_changes(old, new, known)]


def _copied_us(cell: Cell) -> float:
    return sum(row.time_us for row in cell.operators if row.op_type in DEVICE_COPIES)


def _count_changes(old: Cell, new: Cell, known: Collection[str]) -> Iterator[GraphChange]:
    """Yield the types that are executed more or less often, where both traces are listed whole; without nodes in
    `known`."""
    if any(sum(provider.nodes for provider in cell.providers) > len(cell.operators) for cell in (old, new)):
        return
    before, after = (
        group_by(
            (row for row in cell.operators if row.node not in known and row.op_type not in DEVICE_COPIES),
            lambda row: row.op_type,
        )
        for cell in (old, new)
    )
    for op_type in sorted(before.keys() | after.keys()):
        was, now = before.get(op_type, []), after.get(op_type, [])
        if len(was) != len(now):
            sign, word = (ADDED, "more") if len(now) > len(was) else (GONE, "fewer")
            moved_us = sum(row.time_us for row in now) - sum(row.time_us for row in was)
            text = f"{counted(abs(len(now) - len(was)), f'{word} {op_type} node')} executed."
            yield GraphChange(sign, text, moved_us)


def describe_graph_changes(old: Cell, new: Cell, moved: Moved = ()) -> list[str]:
    """Describe in sentences how two cells' executed graphs differ, or that they do not; empty where one was not
    traced."""
    if not (old.operators and new.operators):
        return []
    found = graph_diff(old, new, moved)
    # of providers, because a document names the slowest operators alone
    counts = [sum(provider.nodes for provider in cell.providers) or len(cell.operators) for cell in (old, new)]
    ran = f"{counted(counts[1], 'operator')} executed, {counts[0]} before."
    if not found:
        same = "The same nodes ran on the same provider, fused alike" if counts[0] == counts[1] else ran.rstrip(".")
        return [f"{same}."]
    return [*(change.sentence for change in found), ran]


def find_stamps(document: Document) -> list[Stamp]:
    """Return every comparison by opset whose sides were both traced, in order of opsets and releases."""
    cells = {cell.id: cell for cell in document.cells}
    pairs = [
        (cells[comparison.baseline], cells[comparison.candidate])
        for comparison in document.comparisons
        if comparison.axis == "opset"
    ]
    found = [stamp for old, new in pairs if (stamp := _stamp(old, new)) is not None]
    return sorted(found, key=lambda change: (change.old, change.new, release_order(change.runtime.version)))


def stamp_sentence(document: Document) -> str:
    """Say that an opset alone costs fusions, with which releases and with which not; empty where it costs none."""
    found = find_stamps(document)
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
