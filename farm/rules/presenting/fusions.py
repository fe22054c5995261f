"""Describes how two cells executed a model differently: on which providers its own nodes ran, and what was fused.

This is read from traces, so the same cells always give the same answer.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from farm.base.grouping import group_by
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.runtimes.order import release_order
from farm.rules.tracing.executions import DEVICE_COPIES
from farm.rules.tracing.placement import Kind, compare_cell_placements
from farm.rules.wording.numbers import counted, listed, signed
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
class OpsetComparison:
    """One runtime with a model at two opsets. `lost` names the model's own nodes that were fused only at `old`."""

    runtime: Runtime
    old: int
    new: int
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphChange:
    """One change of the executed graph. `moved_us` is how much longer its nodes take; None where it is not known.

    `sentence` is the text followed by that time.
    """

    sign: Sign
    text: str
    moved_us: float | None

    @property
    def sentence(self) -> str:
        return self.text if self.moved_us is None else f"{self.text.rstrip('.')}: {signed(self.moved_us)} µs."


# groups of own nodes that were executed together, each with how many µs longer it takes
MovedGroups = Sequence[tuple[Collection[str], float]]


def find_graph_changes(old: Cell, new: Cell, moved: MovedGroups = ()) -> list[GraphChange]:
    """Return the changes between two cells' executed graphs; empty where a cell was not traced.

    Changes of placement come first, the worse ones before the others, and then changes in the number of nodes by type,
    unless a cell lists only some of its operators. `moved` is how many µs longer groups of nodes take; it becomes
    `moved_us` of the changes of placement that concern them. For copies and numbers of nodes, `moved_us` is the
    difference of both cells' traced times.
    """
    if not (old.operators and new.operators):
        return []
    # nodes whose change of placement is listed, and those measured together with them
    explained: set[str] = set()
    changes = []
    for change in sorted(compare_cell_placements(old, new), key=lambda change: not change.is_worse):
        groups = [(nodes, us) for nodes, us in moved if not set(change.nodes).isdisjoint(nodes)]
        explained.update(change.nodes, *(nodes for nodes, _ in groups))
        moved_us = sum(us for _, us in groups) if groups else None
        if change.kind == "copies":
            moved_us = _sum_copies_us(new) - _sum_copies_us(old)
        tone = "slower" if change.is_worse else "quiet"
        changes.append(GraphChange(Sign(*_SIGNS[change.kind], tone), change.sentence(), moved_us))
    return [*changes, *_find_count_changes(old, new, explained)]


def _sum_copies_us(cell: Cell) -> float:
    return sum(row.time_us for row in cell.operators if row.op_type in DEVICE_COPIES)


def _find_count_changes(old: Cell, new: Cell, explained: Collection[str]) -> Iterator[GraphChange]:
    """Yield a change for each operator type that is executed more or less often, without the explained nodes.

    Yield nothing where a cell lists only some of its operators.
    """
    if any(sum(provider.nodes for provider in cell.providers) > len(cell.operators) for cell in (old, new)):
        return
    before, after = (
        group_by(
            (row for row in cell.operators if row.node not in explained and row.op_type not in DEVICE_COPIES),
            lambda row: row.op_type,
        )
        for cell in (old, new)
    )
    for op_type in sorted(before.keys() | after.keys()):
        old_rows, new_rows = before.get(op_type, []), after.get(op_type, [])
        difference = len(new_rows) - len(old_rows)
        if difference:
            sign, word = (ADDED, "more") if difference > 0 else (GONE, "fewer")
            moved_us = sum(row.time_us for row in new_rows) - sum(row.time_us for row in old_rows)
            yield GraphChange(sign, f"{counted(abs(difference), f'{word} {op_type} node')} executed.", moved_us)


def describe_graph_changes(old: Cell, new: Cell, moved: MovedGroups = ()) -> list[str]:
    """Describe in sentences how two cells' executed graphs differ, or that they do not; empty without both traces.

    `moved` is as for `find_graph_changes`.
    """
    if not (old.operators and new.operators):
        return []
    changes = find_graph_changes(old, new, moved)
    # A document lists only the slowest operators, but all nodes of its providers.
    before, after = (sum(share.nodes for share in cell.providers) or len(cell.operators) for cell in (old, new))
    executed = f"{counted(after, 'operator')} executed, {before} before."
    if changes:
        return [*(change.sentence for change in changes), executed]
    return ["The same nodes ran on the same provider, fused alike." if before == after else executed]


def describe_lost_fusions(document: Document) -> str:
    """Say which fusions are lost by a change of the opset alone, and with which releases; empty where none are.

    Only the pair of opsets that loses most fusions is described.
    """
    comparisons = find_opset_comparisons(document)
    worst = max(comparisons, key=lambda comparison: len(comparison.lost), default=None)
    if worst is None or not worst.lost:
        return ""
    alike = [comparison for comparison in comparisons if (comparison.old, comparison.new) == (worst.old, worst.new)]
    losing = list(dict.fromkeys(comparison.runtime for comparison in alike if comparison.lost))
    keeping = list(dict.fromkeys(comparison.runtime for comparison in alike if comparison.runtime not in losing))
    more = f" and {len(worst.lost) - MAX_NAMED} more" if len(worst.lost) > MAX_NAMED else ""
    nodes = f"{counted(len(worst.lost), 'node')} ({', '.join(worst.lost[:MAX_NAMED])}{more})"
    text = f"For the opset stamp alone, {worst.new} instead of {worst.old}, {_list_releases(losing)} "
    text += f"lose{'s' if len(losing) == 1 else ''} fusions: {nodes} run apart that were fused"
    if not keeping:
        return f"{text}."
    return f"{text}; {_list_releases(keeping)} keep{'s' if len(keeping) == 1 else ''} them."


def find_opset_comparisons(document: Document) -> list[OpsetComparison]:
    """Return the comparisons by opset alone whose sides were both traced, sorted by opsets and then by release.

    Comparisons of two runtimes, and those of an unknown opset, are left out.
    """
    cells = {cell.id: cell for cell in document.cells}
    pairs = [
        (cells[comparison.baseline], cells[comparison.candidate])
        for comparison in document.comparisons
        if comparison.axis == "opset"
    ]
    comparisons = [comparison for old, new in pairs if (comparison := _compare_opsets(old, new)) is not None]
    return sorted(comparisons, key=lambda each: (each.old, each.new, release_order(each.runtime.version)))


def _compare_opsets(old: Cell, new: Cell) -> OpsetComparison | None:
    """Compare two cells by opset; None where a trace or an opset is missing, or the runtimes differ."""
    is_traced = bool(old.operators and new.operators)
    if not is_traced or old.opset is None or new.opset is None or old.runtime != new.runtime:
        return None
    lost = [
        node for change in compare_cell_placements(old, new) if change.kind == "fusion_gone" for node in change.nodes
    ]
    return OpsetComparison(new.runtime, old.opset, new.opset, tuple(sorted(lost)))


def _list_releases(runtimes: Sequence[Runtime]) -> str:
    """Join releases: `ONNX Runtime 1.22.1, 1.23.2 and 1.24.4`; other distributions by their own name."""
    if any(runtime.distribution != "onnxruntime" for runtime in runtimes):
        return listed([str(runtime) for runtime in runtimes], most=len(runtimes))
    return f"ONNX Runtime {listed([runtime.version for runtime in runtimes], most=len(runtimes))}"
