"""Finds where two runs of one graph diverge, by bisecting the graph with as few comparisons as possible.

Comparing a tensor takes a run of both sides. If the tensor agrees, everything that it is computed from is cleared. If
it differs, the search narrows to what it is computed from. The result, after about log2(nodes) comparisons, is a tensor
that differs although no tensor above it was found to differ.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

# compares a tensor, by name, and says whether it is the same on both sides
Agrees = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One node of a graph: its name and type, and the tensors it reads and makes. Nodes stand in order of execution."""

    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first tensor that differs, and the node that makes it."""

    tensor: str
    node: GraphNode
    # (tensor, whether it agreed) of each comparison, in order
    compared: tuple[tuple[str, bool], ...]


class Graph:
    """Nodes and what each is computed from. A set of nodes is an integer in which the bit at a node's index is set."""

    def __init__(self, nodes: Sequence[GraphNode]) -> None:
        self.nodes = tuple(nodes)
        self._maker = {name: place for place, node in enumerate(nodes) for name in node.outputs if name}
        self._above: list[int] = []
        for node in nodes:
            makers = {self._maker[name] for name in node.inputs if name in self._maker}
            # in order of execution, whatever a node reads was made before it
            self._above.append(_unite(self._above[maker] | 1 << maker for maker in makers if maker < len(self._above)))

    def find_maker(self, tensor: str) -> GraphNode | None:
        place = self._maker.get(tensor)
        return None if place is None else self.nodes[place]

    def find_first_difference(self, bad: str, *, agrees: Agrees, visible: Collection[str]) -> FirstDifference:
        """Bisect what the tensor `bad`, which is known to differ, is computed from.

        Only `visible` tensors can be compared; where none above `bad` differs, it is the result. Raises KeyError where
        no node makes `bad`.
        """
        first, compared = bad, []
        suspects = self._find_suspects(bad, visible)
        while suspects:
            tensor, place = self._choose_split(suspects, visible)
            is_same = agrees(tensor)
            compared.append((tensor, is_same))
            if is_same:
                suspects &= ~(self._above[place] | 1 << place)
            else:
                first, suspects = tensor, suspects & self._above[place]
        return FirstDifference(first, self.nodes[self._maker[first]], tuple(compared))

    def nodes_around(self, tensor: str, steps: int) -> tuple[GraphNode, ...]:
        """Return the node that makes a tensor and those at most `steps` above or below it, in order of execution.

        Nodes below are included because a runtime decides how to compute a node by what reads its output. Raises
        KeyError where no node makes the tensor.
        """
        maker = self._maker[tensor]
        above, below = {maker}, {maker}
        for _ in range(steps):
            read = {name for place in above for name in self.nodes[place].inputs}
            above |= {self._maker[name] for name in read if name in self._maker}
            made = {name for place in below for name in self.nodes[place].outputs}
            below |= {place for place, node in enumerate(self.nodes) if made & set(node.inputs)}
        return tuple(self.nodes[place] for place in sorted(above | below))

    def outputs_of_part(self, part: Sequence[GraphNode]) -> tuple[str, ...]:
        """Return the tensors that a part makes and that are read outside it or nowhere, in the order of its nodes."""
        nodes = set(part)
        read_outside = {name for node in self.nodes if node not in nodes for name in node.inputs}
        read_inside = {name for node in part for name in node.inputs}
        made = [name for node in part for name in node.outputs if name]
        return tuple(name for name in made if name in read_outside or name not in read_inside)

    def _find_suspects(self, bad: str, visible: Collection[str]) -> int:
        makers = _unite(1 << self._maker[name] for name in visible if name in self._maker)
        return self._above[self._maker[bad]] & makers

    def _choose_split(self, suspects: int, visible: Collection[str]) -> tuple[str, int]:
        """Choose the suspect that leaves the fewest suspects in the worse case, as a visible tensor and its node."""
        total = suspects.bit_count()

        def count_remaining(place: int) -> int:
            above = (self._above[place] & suspects).bit_count() + 1
            return max(above, total - above)

        place = min((bit for bit in range(suspects.bit_length()) if suspects >> bit & 1), key=count_remaining)
        return next(name for name in self.nodes[place].outputs if name in visible), place


def inputs_of_part(part: Sequence[GraphNode], stored: Mapping[str, object] | Collection[str]) -> tuple[str, ...]:
    """Return the tensors that the nodes of a part read and do not make, without those `stored` in the model."""
    made = {name for node in part for name in node.outputs}
    read = dict.fromkeys(name for node in part for name in node.inputs if name)
    return tuple(name for name in read if name not in made and name not in stored)


def _unite(sets: Iterator[int]) -> int:
    total = 0
    for bits in sets:
        total |= bits
    return total
