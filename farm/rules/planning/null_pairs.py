"""Decides which blocks contain an A/A pair: one in eight of each node's, and every one on a node's first day."""

from collections.abc import Sequence

from farm.rules.planning.plans import NodeOffer

NULL_PAIR_EVERY = 8
# the machine that measures where there is no fleet
_ANY = NodeOffer(id="")


class NullPairs:
    """Decides which planned blocks get an A/A pair, by counting each node's blocks since its last pair.

    A block that n nodes may take counts as 1/n on each. It gets a pair if one is due on any of them, or if any of them
    is in its first day. An empty list of nodes stands for the machine that measures by itself.
    """

    def __init__(self, fleet: Sequence[NodeOffer] | None) -> None:
        self._since: dict[str, float] = {
            node.id: float(NULL_PAIR_EVERY if node.blocks_since_pair is None else node.blocks_since_pair)
            for node in (*(fleet or ()), _ANY)
        }

    def is_due(self, nodes: Sequence[NodeOffer]) -> bool:
        is_eighth = any(self._since[node.id] >= NULL_PAIR_EVERY - 1 for node in nodes or (_ANY,))
        return is_eighth or self.is_first_day(nodes)

    def is_first_day(self, nodes: Sequence[NodeOffer]) -> bool:
        return any(node.is_first_day for node in nodes)

    def record_block(self, nodes: Sequence[NodeOffer], *, has_pair: bool) -> None:
        """Count a planned block on each node that may take it; a block with a pair sets the count to 0."""
        taking = nodes or (_ANY,)
        for node in taking:
            self._since[node.id] = 0.0 if has_pair else self._since[node.id] + 1.0 / len(taking)
