"""A model's graph as `alignment` and `node_origins` need it: nodes, their names, and the tensors between them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from farm.base.grouping import group_by

# operators that only pass their input on: no runtime executes them once it has optimised the graph
IDLE = frozenset({"Identity", "Dropout"})
# prefixes that ONNX Runtime gives a tensor that it converts to another precision, and the nodes named after it
_CONVERTED = re.compile(r"^(?:InsertedPrecisionFreeCast_|InsertedCast_)+")


@dataclass(frozen=True)
class GraphNode:
    """One node of a graph, or of a subgraph inside control flow."""

    # its name, or `OpType_index` where it has none; unique in the model
    label: str
    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    # its number among the nodes of its own graph without Constant nodes, as ONNX Runtime counts
    index: int
    # the labels of the control-flow nodes around it
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Nodes in stored (topological) order, without Constant nodes. `given` names graph inputs and initialisers.

    Nodes inside control flow are only in `nodes`, `by_label` and `nested`; everything else is about the main graph.
    """

    nodes: tuple[GraphNode, ...] = ()
    given: frozenset[str] = field(default_factory=frozenset)

    @cached_property
    def main_nodes(self) -> tuple[GraphNode, ...]:
        return tuple(node for node in self.nodes if not node.path)

    @cached_property
    def by_label(self) -> dict[str, GraphNode]:
        return {node.label: node for node in self.nodes}

    @cached_property
    def by_name(self) -> dict[str, GraphNode]:
        """Nodes of the main graph by their own name; names used twice are left out."""
        nodes: dict[str, GraphNode] = {}
        twice: set[str] = set()
        for node in self.main_nodes:
            if node.name in nodes:
                twice.add(node.name)
            nodes[node.name] = node
        return {name: node for name, node in nodes.items() if name and name not in twice}

    @cached_property
    def producer(self) -> dict[str, GraphNode]:
        return {output: node for node in self.main_nodes for output in node.outputs if output}

    def find_maker(self, tensor: str) -> GraphNode | None:
        """Return the node of the main graph that computes a tensor, skipping operators that only pass it on (IDLE).

        Return None for a tensor that no such node computes.
        """
        node = self.producer.get(tensor)
        while node is not None and node.op_type in IDLE:
            before = self.producer.get(next(iter(node.inputs), ""))
            # stop where the order is broken, so that a graph with a cycle does not loop for ever
            node = before if before is not None and before.index < node.index else None
        return node

    @cached_property
    def consumers(self) -> dict[str, list[GraphNode]]:
        """The nodes of the main graph that read each tensor; a tensor that none reads is missing."""
        consumers: dict[str, list[GraphNode]] = {}
        for node in self.main_nodes:
            for name in node.inputs:
                consumers.setdefault(name, []).append(node)
        return consumers

    @cached_property
    def known_tensors(self) -> frozenset[str]:
        return self.given | self.producer.keys()

    @cached_property
    def nested(self) -> dict[tuple[str, ...], list[GraphNode]]:
        # keyed by the labels of the control-flow nodes around them
        return group_by((node for node in self.nodes if node.path), lambda node: node.path)

    def find_by_prefix(self, name: str) -> GraphNode | None:
        """Return the node whose own name, or whose output's name, is the longest prefix of `name`; None without one.

        Prefixes are those of `list_beginnings`, of which the first is the whole name. Where none of them names a node,
        those of the name without marks of conversion are tried. ONNX Runtime and quantisers derive new names by adding
        to old ones (`…_nchwc`, `…_token_3`, `…/Fusion/`, `…_quant`), sometimes to a node's name and sometimes to its
        output's.
        """
        for part in (*list_beginnings(name), *list_beginnings(strip_conversion(name))):
            if part in self.by_name:
                return self.by_name[part]
            if part in self.producer:
                return self.producer[part]
        return None

    def restore_converted(self) -> "Graph":
        """Return the graph with the original names of tensors that a node outputs in another precision.

        The tensor that converts such an output back gets the converted name in exchange.
        """
        names: dict[str, str] = {}
        for tensor in self.producer:
            plain = strip_conversion(tensor)
            back = self.producer.get(plain)
            if plain != tensor and plain not in self.producer[tensor].inputs:
                names[tensor] = plain
                if back is not None:
                    names[plain] = tensor
        return replace(self, nodes=tuple(_rename_tensors(node, names) for node in self.nodes)) if names else self


def _rename_tensors(node: GraphNode, names: Mapping[str, str]) -> GraphNode:
    inputs, outputs = (tuple(names.get(name, name) for name in tensors) for tensors in (node.inputs, node.outputs))
    return replace(node, inputs=inputs, outputs=outputs)


def strip_conversion(name: str) -> str:
    return _CONVERTED.sub("", name)


def list_beginnings(name: str) -> Iterator[str]:
    """Yield the name and each prefix of it that ends before `_`, `/`, `.` or `:`, the longest first."""
    while name:
        yield name
        name = name[: max(0, *(name.rfind(mark) for mark in "_/.:"))]
