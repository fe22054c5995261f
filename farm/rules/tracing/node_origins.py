"""Maps what ONNX Runtime executed back to the model's own nodes.

A `node_index` below the number of the graph's own non-Constant nodes is that node (MEASURING.md, "What really ran").
Any other node is traced back by the names and tensors of the saved optimised graph. The nodes of a variant are mapped
further, to those of the uploaded model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.rules.tracing.alignment import Origin, align
from farm.rules.tracing.graphs import IDLE, Graph, GraphNode

UNMAPPED = Origin(node=None)


@dataclass(frozen=True)
class Executed:
    """One executed node of a trace, named as in the profile."""

    name: str
    op_type: str
    provider: str
    index: int
    # the names of the control-flow events around it
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Assigned:
    """One subgraph that a provider compiled: the labels of the measured model's nodes in it, in order."""

    provider: str
    labels: tuple[str, ...]


def map_executed(
    executed: Sequence[Executed],
    *,
    source: Graph,
    model: Graph,
    optimized: Graph | None = None,
    assigned: Sequence[Assigned] = (),
) -> list[Origin]:
    """Return the origin of each executed node in `source`, in the same order; `UNMAPPED` where none is found.

    `model` is the graph that was loaded (equal to `source` unless it is a variant), `optimized` the one that ONNX
    Runtime saved, None when it could not be saved. `assigned` are the subgraphs that providers compiled. Nodes that
    only pass a tensor on (`graphs.IDLE`) are never listed as fused into another.
    """
    finder = _Finder(model=model, optimized=optimized, alignment=align(optimized, model) if optimized else {})
    order = sorted(range(len(executed)), key=lambda at: len(executed[at].path))
    by_place: dict[int, Origin] = {at: finder.find(executed[at]) for at in order}
    by_place |= _map_compiled(executed, found=by_place, assigned=assigned)
    onward = {} if model is source else align(model, source)
    origins = [_follow(by_place[at], onward, is_same=model is source) for at in range(len(executed))]
    idle = {node.label for node in source.nodes if node.op_type in IDLE}
    return [Origin(origin.node, tuple(label for label in origin.covers if label not in idle)) for origin in origins]


def compute_mapped_share(origins: Sequence[Origin]) -> float | None:
    return sum(origin.node is not None for origin in origins) / len(origins) if origins else None


class _Finder:
    """Finds the node of the measured model that an executed node stands for."""

    def __init__(self, *, model: Graph, optimized: Graph | None, alignment: Mapping[str, Origin]) -> None:
        self._model = model
        self._optimized = optimized
        self._alignment = alignment
        # labels of the control-flow nodes met so far, by the names in the trace
        self._labels: dict[tuple[str, ...], tuple[str, ...]] = {(): ()}

    def find(self, node: Executed) -> Origin:
        """Return the origin of a node; nodes inside control flow need the nodes around them to be found first."""
        origin = self._find_top(node) if not node.path else self._find_nested(node)
        around = self._labels.get(node.path)
        if origin.node is not None and around is not None:
            self._labels[(*node.path, node.name)] = (*around, origin.node)
        return origin

    def _find_top(self, node: Executed) -> Origin:
        """Find a node of the main graph: by the optimised graph and its index, or else by the prefix of its name."""
        at_index = self._find_by_index(node)
        optimized = self._find_in_optimized(node, at_index)
        if optimized is not None:
            origin = self._alignment[optimized.label]
            if at_index is None or origin.node == at_index.label:
                return origin
            covers = tuple(label for label in (origin.node, *origin.covers) if label and label != at_index.label)
            return Origin(node=at_index.label, covers=covers)
        if at_index is not None:
            return Origin(node=at_index.label)
        by_prefix = self._model.find_by_prefix(node.name)
        return Origin(node=by_prefix.label) if by_prefix else UNMAPPED

    def _find_by_index(self, node: Executed) -> GraphNode | None:
        """Return the model's node with this index, if its name, or without a name its operator type, is the same."""
        if not 0 <= node.index < len(self._model.main_nodes):
            return None
        candidate = self._model.main_nodes[node.index]
        is_it = candidate.name == node.name if candidate.name else candidate.op_type == node.op_type
        return candidate if is_it else None

    def _find_in_optimized(self, node: Executed, own: GraphNode | None) -> GraphNode | None:
        if self._optimized is None:
            return None
        if node.name in self._optimized.by_name:
            return self._optimized.by_name[node.name]
        # a node without a name is found by its outputs
        makers = [self._optimized.producer.get(name) for name in own.outputs] if own else []
        return next((maker for maker in makers if maker is not None and maker.op_type == node.op_type), None)

    def _find_nested(self, node: Executed) -> Origin:
        """Find a node inside control flow by its name and type, or else by the longest prefix of its name."""
        around = self._labels.get(node.path)
        if around is None:
            return UNMAPPED
        inside = self._model.nested.get(around, [])
        for candidate in inside:
            unnamed = f"{candidate.op_type}_{candidate.index}"
            if node.name == (candidate.name or unnamed) and node.op_type == candidate.op_type:
                return Origin(node=candidate.label)
        named = {candidate.name: candidate.label for candidate in inside if candidate.name}
        longest = max((name for name in named if node.name.startswith(name)), key=len, default=None)
        # a node that was rewritten inside its branch is mapped to the control-flow node around it, which is certain
        return Origin(node=named[longest] if longest else around[-1])


def _map_compiled(
    executed: Sequence[Executed], *, found: Mapping[int, Origin], assigned: Sequence[Assigned]
) -> dict[int, Origin]:
    """Map compiled subgraphs by order: executed nodes of a provider without an origin are its assigned groups."""
    result: dict[int, Origin] = {}
    for provider in {group.provider for group in assigned}:
        groups = [group.labels for group in assigned if group.provider == provider and group.labels]
        nowhere = [at for at, node in enumerate(executed) if node.provider == provider and found[at].node is None]
        if len(groups) != len(nowhere):
            # which executed node belongs to which group cannot be told
            continue
        for at, labels in zip(sorted(nowhere, key=lambda at: executed[at].index), groups, strict=True):
            # the last node computes the output of the subgraph
            result[at] = Origin(node=labels[-1], covers=tuple(labels[:-1]))
    return result


def _follow(origin: Origin, onward: Mapping[str, Origin], *, is_same: bool) -> Origin:
    """Map an origin in the measured model, and all that it covers, to the uploaded model."""
    if is_same or origin.node is None:
        return origin
    first = onward.get(origin.node, UNMAPPED)
    others = [onward.get(label, UNMAPPED) for label in origin.covers]
    labels = [label for part in (first, *others) for label in (part.node, *part.covers) if label is not None]
    if not labels:
        return UNMAPPED
    return Origin(node=labels[0], covers=tuple(dict.fromkeys(label for label in labels[1:] if label != labels[0])))
