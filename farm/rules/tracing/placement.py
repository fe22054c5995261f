"""Finds what changed in placement between two cells. Placement is deterministic, so no statistics are needed.

The counts of executed operators per provider decide: where they are equal there is no change, however the model's own
nodes were mapped in the two traces. Each change names the nodes concerned: another provider executes them, a fusion is
gone or new, or copies between host and device were added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from farm.base.grouping import group_by
from farm.contract.document_cells import Cell
from farm.rules.tracing.executions import (
    Executed,
    Histogram,
    Kernel,
    NodeKernels,
    count_kernels,
    counts_to_histogram,
    join_groups,
    select_computing,
)

CPU = "CPUExecutionProvider"
Kind = Literal["moved", "fusion_gone", "fusion_new", "copies"]


class _Difference(NamedTuple):
    """How one node's placement differs. Of a fusion only one of the two sides is set."""

    kind: Kind
    before: str
    after: str

    @property
    def is_worse(self) -> bool:
        return self.kind == "fusion_gone" or (self.kind == "moved" and self.after == CPU)


@dataclass(frozen=True, slots=True)
class PlacementChange:
    """One difference in placement, and the nodes that it concerns; of copies there are none."""

    kind: Kind
    nodes: tuple[str, ...]
    # the providers of moved nodes, the numbers of copies, or the fused operator type on one side of a fusion, whose
    # other side is empty
    before: str
    after: str
    # whether copies were added, a fusion is gone, or a node fell back to the CPU
    is_worse: bool

    def sentence(self) -> str:
        """Say what changed, with three of the nodes by name and the number of the others."""
        named = ", ".join(self.nodes[:3]) + (f" and {len(self.nodes) - 3} more" if len(self.nodes) > 3 else "")
        if self.kind == "copies":
            return f"{self.after} copies between host and device an inference, {self.before} before."
        if self.kind == "moved":
            return f"{named} moved from {self.before} to {self.after}."
        when, run = "no longer" if self.kind == "fusion_gone" else "now", "runs" if len(self.nodes) == 1 else "run"
        return f"{named} {when} {run} fused as {self.before or self.after}."


def compare_cell_placements(old: Cell, new: Cell) -> list[PlacementChange]:
    """Return the placement changes from one traced cell of a document to another; empty where nothing changed.

    A number of copies that is not known counts as 0.
    """
    histograms = None
    if old.executed and new.executed:
        histograms = counts_to_histogram(old.executed), counts_to_histogram(new.executed)
    copies = (old.copies or 0, new.copies or 0)
    return compare_placements(old.operators, new.operators, copies=copies, histograms=histograms)


def compare_placements(
    old: Sequence[Executed],
    new: Sequence[Executed],
    *,
    copies: tuple[int, int] = (0, 0),
    histograms: tuple[Histogram, Histogram] | None = None,
) -> list[PlacementChange]:
    """Return the placement changes from `old` to `new`, sorted by kind, with that of the copies last.

    Nodes that change alike are one entry; nodes that only one side executed are left out. `copies` are the numbers of
    copies of old and new. `histograms` are those of the whole traces, where `old` and `new` hold only the slowest rows.
    """
    before, after = NodeKernels.of(old), NodeKernels.of(new)
    shown = _find_changed_kernels(old, new, histograms or (count_kernels(old), count_kernels(new)))
    groups: dict[_Difference, list[str]] = {}
    for node in before.by_node.keys() & after.by_node.keys():
        for difference in _compare_node(node, before, after, shown.get(node, {})):
            groups.setdefault(difference, []).append(node)
    changes = [
        PlacementChange(found.kind, tuple(sorted(nodes)), found.before, found.after, is_worse=found.is_worse)
        for found, nodes in sorted(groups.items())
    ]
    old_copies, new_copies = copies
    if old_copies != new_copies:
        is_worse = new_copies > old_copies
        changes.append(PlacementChange("copies", (), str(old_copies), str(new_copies), is_worse=is_worse))
    return changes


def _find_changed_kernels(
    old: Sequence[Executed], new: Sequence[Executed], histograms: tuple[Histogram, Histogram]
) -> dict[str, dict[Kernel, int]]:
    """Return, for each node, the kernels whose count changed in its group and, in the same direction, in the trace."""
    whole = _subtract(*histograms)
    if not whole:
        return {}
    group_of = join_groups(old, new)
    sides = [group_by(select_computing(rows), lambda row: group_of[row.node]) for rows in (old, new)]
    shown = {}
    for group in sides[0].keys() | sides[1].keys():
        moved = _subtract(*(count_kernels(side.get(group, ())) for side in sides))
        shown[group] = {kernel: change for kernel, change in moved.items() if change * whole.get(kernel, 0) > 0}
    return {node: shown.get(group, {}) for node, group in group_of.items()}


def _subtract(old: Histogram, new: Histogram) -> dict[Kernel, int]:
    return {kernel: new[kernel] - old[kernel] for kernel in old.keys() | new.keys() if new[kernel] != old[kernel]}


def _compare_node(node: str, old: NodeKernels, new: NodeKernels, shown: Mapping[Kernel, int]) -> list[_Difference]:
    """Return how a node's placement differs, where `shown`, the changed counts of its group's kernels, confirms it."""
    differences: list[_Difference] = []
    was_on, is_on = ({kernel.provider for kernel in side.by_node[node]} for side in (old, new))
    if was_on != is_on:
        came_from, went_to = min(was_on - is_on or was_on), min(is_on - was_on or is_on)
        if {kernel.provider for kernel in shown} & {came_from, went_to}:
            differences.append(_Difference("moved", came_from, went_to))
    was, now = old.fused.get(node), new.fused.get(node)
    # A fusion is gone where its kernel runs less often, or any kernel runs more often. It is new in the reverse cases.
    if was and not now and (shown.get(was, 0) < 0 or any(change > 0 for change in shown.values())):
        differences.append(_Difference("fusion_gone", was.op_type, ""))
    if now and not was and (shown.get(now, 0) > 0 or any(change < 0 for change in shown.values())):
        differences.append(_Difference("fusion_new", "", now.op_type))
    return differences
