"""Finds where two runs of one graph diverge, by bisecting the graph with as few looks as possible.

A look at a tensor costs a run of both sides. A tensor that agrees clears everything it is computed from; one that does
not narrows the search to what it is computed from. The answer is a tensor that differs although nothing above it was
seen to differ, after about log2(nodes) looks.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

Looks = Callable[[str], bool]


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
    # the tensors that were compared, each with whether it agreed
    seen: tuple[tuple[str, bool], ...]


class Graph:
    """Nodes and what each is computed from. Sets of nodes are kept as bits of integers: the bit is the node's index."""

    def __init__(self, nodes: Sequence[GraphNode]) -> None:
        self.nodes = tuple(nodes)
        self._maker = {name: place for place, node in enumerate(nodes) for name in node.outputs if name}
        self._above: list[int] = []
        for node in nodes:
            makers = {self._maker[name] for name in node.inputs if name in self._maker}
            # in order of execution, whatever a node reads was made before it
            self._above.append(_unite(self._above[at] | 1 << at for at in makers if at < len(self._above)))

    def find_maker(self, tensor: str) -> GraphNode | None:
        place = self._maker.get(tensor)
        return None if place is None else self.nodes[place]

    def find_first_difference(self, bad: str, *, agrees: Looks, visible: Collection[str]) -> FirstDifference:
        """Bisect the tensors that `bad` is computed from; `bad` is known to differ.

        `agrees` looks at one tensor and says whether it is the same on both sides; only `visible` tensors can be looked
        at. Raises KeyError where no node makes `bad`.
        """
        worst, compared = bad, []
        suspects = self._find_suspects(worst, visible)
        while suspects:
            tensor, place = self._choose_split(suspects, visible)
            is_same = agrees(tensor)
            compared.append((tensor, is_same))
            if is_same:
                suspects &= ~(self._above[place] | 1 << place)
            else:
                worst, suspects = tensor, suspects & self._above[place]
        return FirstDifference(worst, self.nodes[self._maker[worst]], tuple(compared))

    def nodes_around(self, tensor: str, steps: int) -> tuple[GraphNode, ...]:
        """Return the node that makes a tensor and the nodes at most so many steps above or below it, in order.

        Nodes below belong to it because a runtime decides how to compute a node by what reads its output.
        """
        maker = self._maker[tensor]
        above, below = {maker}, {maker}
        for _ in range(steps):
            read = {name for place in above for name in self.nodes[place].inputs}
            above |= {self._maker[name] for name in read if name in self._maker}
            made = {name for place in below for name in self.nodes[place].outputs}
            below |= {place for place, node in enumerate(self.nodes) if made & set(node.inputs)}
        return tuple(self.nodes[place] for place in sorted(above | below))

    def outputs_leaving(self, part: Sequence[GraphNode]) -> tuple[str, ...]:
        """Return the tensors that the nodes of a part make and that are read outside it, or by no node."""
        inside = set(part)
        read_outside = {name for node in self.nodes if node not in inside for name in node.inputs}
        read_inside = {name for node in part for name in node.inputs}
        made = [name for node in part for name in node.outputs if name]
        return tuple(name for name in made if name in read_outside or name not in read_inside)

    def _find_suspects(self, bad: str, visible: Collection[str]) -> int:
        makers = _unite(1 << self._maker[name] for name in visible if name in self._maker)
        return self._above[self._maker[bad]] & makers

    def _choose_split(self, suspects: int, visible: Collection[str]) -> tuple[str, int]:
        """Choose the suspect that leaves the fewest suspects on either side when it is compared."""
        total = suspects.bit_count()

        def left(place: int) -> int:
            above = (self._above[place] & suspects).bit_count() + 1
            return max(above, total - above)

        place = min((bit for bit in range(suspects.bit_length()) if suspects >> bit & 1), key=left)
        return next(name for name in self.nodes[place].outputs if name in visible), place


def inputs_from_outside(part: Sequence[GraphNode], stored: Mapping[str, object] | Collection[str]) -> tuple[str, ...]:
    """Return the tensors that the nodes of a part read from outside, without those stored in the model."""
    made = {name for node in part for name in node.outputs}
    read = dict.fromkeys(name for node in part for name in node.inputs if name)
    return tuple(name for name in read if name not in made and name not in stored)


def _unite(sets: Iterator[int]) -> int:
    total = 0
    for bits in sets:
        total |= bits
    return total
