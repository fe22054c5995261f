"""What waits for nodes, by the hardware that it asks for, and when a block queued now may be expected to start."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import FloatField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from farm.accounts.selectors import Anyone
from farm.contract.version import node_queue
from farm.fleet.models import Node
from farm.fleet.states import NodeState
from farm.runs.models import Block, Run
from farm.runs.states import OPEN_BLOCKS, BlockState


@dataclass(frozen=True, slots=True)
class Queue:
    """Open blocks of one hardware. `minutes`: what the plans expect of them, less the rounds that are measured.

    `nodes`: how many are online and take such blocks now, however busy they are.
    """

    hardware: str
    waiting: int
    measuring: int
    minutes: float
    nodes: int

    @property
    def start_minutes(self) -> float | None:
        """Minutes until a block queued now may start: 0 while a node is free, None while no node takes it."""
        if not self.nodes:
            return None
        return 0.0 if not self.waiting and self.measuring < self.nodes else self.minutes / self.nodes


def takers(user: Anyone) -> list[Node]:
    """The user's nodes that are online, with what tells which blocks they take."""
    columns = ("id", "health", "tags", "owner_tags", "settings_json")
    return list(Node.objects.visible_to(user).filter(state=NodeState.ONLINE).only(*columns))


def queues(user: Anyone, nodes: Sequence[Node]) -> list[Queue]:
    """The user's open blocks by hardware, the longest queue first; `nodes`: those of takers(). One query."""
    planned = Cast(KT("plan_json__minutes"), FloatField())
    rows = Block.objects.filter(run__in=Run.objects.visible_to(user).order_by(), state__in=OPEN_BLOCKS)
    columns = ("hardware", "state", "queues", "only_node", "rounds", "max_rounds", "minutes")
    found: dict[str, list[tuple[str, list[str], float]]] = {}
    for hardware, state, names, only, rounds, most, minutes in (
        rows.order_by().annotate(minutes=planned).values_list(*columns)
    ):
        asked = names if only is None else [node_queue(str(only))]
        left = (minutes or 0.0) * max(0.0, 1.0 - rounds / most if most else 0.0)
        found.setdefault(hardware, []).append((state, asked, left))
    served = [set(node.queues) for node in nodes]
    made = [_queue(hardware, blocks, served) for hardware, blocks in found.items()]
    return sorted(made, key=lambda one: (-one.waiting, one.hardware))


def _queue(hardware: str, blocks: Sequence[tuple[str, list[str], float]], served: Iterable[set[str]]) -> Queue:
    asked = {name for _, names, _ in blocks for name in names}
    measuring = sum(state == BlockState.LEASED for state, _, _ in blocks)
    return Queue(
        hardware=hardware,
        waiting=len(blocks) - measuring,
        measuring=measuring,
        minutes=sum(left for _, _, left in blocks),
        nodes=sum(not asked.isdisjoint(names) for names in served),
    )
