"""What a trace executed: how often each operator ran on each provider, and which kernels execute a node of the model.

Copies are left out. A copy between layouts (ReorderInput, ReorderOutput, a Transpose next to the operator that needs
it) only gives a kernel its preferred layout: it is neither work of the model nor a fusion. Copies between host and
device are evidence of a fallback, and are counted separately.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from farm.contract.document_cells import OperatorTime
from farm.contract.reports import Operator

COPY_TO_HOST = "MemcpyToHost"
COPY_TO_DEVICE = "MemcpyFromHost"
DEVICE_COPIES = frozenset({COPY_TO_HOST, COPY_TO_DEVICE})
COPIES = DEVICE_COPIES | {"ReorderInput", "ReorderOutput"}
TRANSPOSE = "Transpose"
# A change is explained only by at least this many traces of each arm.
MIN_TRACES = 5


# an executed node of a trace, in a report or in a document
Executed = Operator | OperatorTime


@dataclass(frozen=True, order=True, slots=True)
class Kernel:
    """An operator type, as one provider executes it."""

    provider: str
    op_type: str


Histogram = Counter[Kernel]


def count_kernels(executed: Iterable[Executed]) -> Histogram:
    return Counter(Kernel(execution.provider, execution.op_type) for execution in select_computing(executed))


def histogram_to_counts(counted: Histogram) -> dict[str, dict[str, int]]:
    """Convert a histogram to the form of documents: provider → operator → count."""
    counts: dict[str, dict[str, int]] = {}
    for kernel in sorted(counted):
        counts.setdefault(kernel.provider, {})[kernel.op_type] = counted[kernel]
    return counts


def counts_to_histogram(counts: Mapping[str, Mapping[str, int]]) -> Histogram:
    return Counter({Kernel(provider, op): n for provider, operators in counts.items() for op, n in operators.items()})


def select_computing(executed: Iterable[Executed]) -> list[Executed]:
    """Return the executed nodes that compute something, without copies.

    A Transpose is left out where another operator was executed for the same node. So are rows without an operator type:
    they are sums over further nodes.
    """
    rows = [execution for execution in executed if execution.op_type and execution.op_type not in COPIES]
    worked = {row.node for row in rows if row.op_type != TRANSPOSE}
    return [row for row in rows if row.op_type != TRANSPOSE or row.node not in worked]


@dataclass(frozen=True, slots=True)
class NodeKernels:
    """Which kernels execute each of the model's own nodes."""

    by_node: Mapping[str, frozenset[Kernel]]
    # the kernel of each node that is fused with others; of several, the first by provider and type
    fused: Mapping[str, Kernel]

    @classmethod
    def of(cls, executed: Sequence[Executed]) -> Self:
        """Collect the kernels of each own node, from all rows of that node in any order."""
        by_node: dict[str, set[Kernel]] = {}
        fused: dict[str, set[Kernel]] = {}
        around = _find_covered(executed)
        for row in select_computing(executed):
            kernel = Kernel(row.provider, row.op_type)
            covers = around[row.node]
            for covered in (row.node, *covers):
                by_node.setdefault(covered, set()).add(kernel)
                if covers:
                    fused.setdefault(covered, set()).add(kernel)
        return cls(
            by_node={node: frozenset(kernels) for node, kernels in by_node.items()},
            fused={node: min(kernels) for node, kernels in fused.items()},
        )


def join_groups(*sides: Sequence[Executed]) -> dict[str, str]:
    """Map each own node to the name of its group, which is one of the group's nodes.

    Nodes that are executed as one on any side share a group.
    """
    parent: dict[str, str] = {}

    def root(node: str) -> str:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for row in (row for side in sides for row in side):
        first = root(row.node)
        for covered in row.covers:
            parent[root(covered)] = first
    return {node: root(node) for node in parent}


def _find_covered(executed: Iterable[Executed]) -> dict[str, frozenset[str]]:
    """Return the nodes covered by all rows of each node: the copy that ends a fused kernel has its last tensor's
    name."""
    around: dict[str, frozenset[str]] = {}
    for row in executed:
        around[row.node] = around.get(row.node, frozenset()) | frozenset(row.covers)
    return around
