"""Queued blocks: how long the queues are, which node may have which block now, and counts over the whole farm."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, cast

from django.db import models
from django.db.models import Count, Exists, FloatField, Min, OuterRef, Q, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast
from django.utils import timezone

from farm.accounts.selectors import Anyone
from farm.base.grouping import grouped
from farm.contract.cells import CellSpec
from farm.contract.version import node_queue
from farm.fleet.models import Node
from farm.fleet.selectors import offer_of
from farm.fleet.states import NodeState
from farm.registry.models import Blob, PartialUpload, Preparation, Variant, Version
from farm.rules.planning.resolution import takes
from farm.runs.models import Attempt, Beside, Block, Run
from farm.runs.selectors.evidence import UNMAKEABLE
from farm.runs.selectors.minutes import why_no_minutes
from farm.runs.states import OPEN_BLOCKS, BlockState


@dataclass(frozen=True, slots=True)
class Queue:
    """Open blocks of one hardware. `minutes`: what the plans expect of them, less the rounds that are measured.

    `nodes`: how many are online and take such blocks now, however busy they are; `machines`: on how many machines.
    `start_minutes`: until a block queued now may start, behind all that waits for these machines; 0 while one is free,
    None while no node takes it.
    """

    hardware: str
    waiting: int
    measuring: int
    minutes: float
    nodes: int
    machines: int
    start_minutes: float | None


class _Open(NamedTuple):
    """An open block. `asked`: the queues that it is rung on; `minutes`: what is left of its plan."""

    hardware: str
    is_measured: bool
    asked: frozenset[str]
    minutes: float


def takers(user: Anyone) -> list[Node]:
    """The user's nodes that are online, with what tells which blocks they take."""
    columns = ("id", "health", "tags", "owner_tags", "settings_json", "owner", "host")
    return list(Node.objects.visible_to(user).filter(state=NodeState.ONLINE).only(*columns))


def queues(user: Anyone, nodes: Sequence[Node]) -> list[Queue]:
    """The user's open blocks by hardware, the longest queue first; `nodes`: those of takers(). One query."""
    planned = Cast(KT("plan_json__minutes"), FloatField())
    rows = Block.objects.filter(run__in=Run.objects.visible_to(user).order_by(), state__in=OPEN_BLOCKS)
    columns = ("hardware", "state", "queues", "only_node", "rounds", "max_rounds", "minutes")
    every = []
    for hardware, state, names, only, rounds, most, minutes in (
        rows.order_by().annotate(minutes=planned).values_list(*columns)
    ):
        asked = names if only is None else [node_queue(str(only))]
        left = (minutes or 0.0) * max(0.0, 1.0 - rounds / most if most else 0.0)
        every.append(_Open(hardware, state == BlockState.LEASED, frozenset(asked), left))
    made = [_queue(blocks, every, nodes) for blocks in grouped(every, lambda block: block.hardware).values()]
    return sorted(made, key=lambda queue: (-queue.waiting, queue.hardware))


def _queue(blocks: Sequence[_Open], every: Sequence[_Open], nodes: Sequence[Node]) -> Queue:
    """That of blocks of one hardware. `every`: those of all, which may be ahead on the same machines."""
    asked = frozenset().union(*(block.asked for block in blocks))
    taking = [node.device for node in nodes if not asked.isdisjoint(node.queues)]
    machines, measuring = set(taking), sum(block.is_measured for block in blocks)
    taken = frozenset(queue for node in nodes if node.device in machines for queue in node.queues)
    ahead = [block for block in every if not taken.isdisjoint(block.asked)]
    is_free = all(block.is_measured for block in ahead) and len(ahead) < len(machines)
    start = 0.0 if is_free else sum(block.minutes for block in ahead) / max(1, len(machines))
    return Queue(
        hardware=blocks[0].hardware,
        waiting=len(blocks) - measuring,
        measuring=measuring,
        minutes=sum(block.minutes for block in blocks),
        nodes=len(taking),
        machines=len(machines),
        start_minutes=start if machines else None,
    )


def why_not(node: Node, block: Block, attempt: int) -> str:
    """Why the node may not claim the block now, in one sentence; empty when it may."""
    if block.state != BlockState.QUEUED or block.attempt != attempt:
        return f"Block {block.pk} is {block.state} at attempt {block.attempt}; attempt {attempt} is not available."
    if not node.may_take_blocks:
        return f"{node.name} may take no block now: it is {node.health}. {node.pause}".strip()
    if block.plan.minutes * 60 > node.settings.max_block_s:
        return (
            f"{node.name} takes blocks of at most {node.settings.max_block_s / 60:g} minutes; block {block.pk} is "
            f"planned for {block.plan.minutes:.1f}."
        )
    if block.only_node_id not in (None, node.pk) or (block.first_round and block.only_node_id is None):
        return f"Block {block.pk} continues on the node that started it."
    serving = _serving(node, block)
    if serving is None:
        return f"{node.name} does not measure for team “{block.run.team.name}”{_bare(node)}."
    if not can_take(node, _left_of(block)):
        return f"{node.name} lacks hardware or a provider that block {block.pk} asks for, or cores for its threads."
    busy = f"{node.name} is measuring another block, or another node of its machine is; it takes one at a time."
    return busy if serving.is_busy else why_no_minutes(block.run.team)


def _left_of(block: Block) -> list[CellSpec]:
    """What is asked for in a block, without the providers whose trial failed."""
    arms = block.plan.arms
    is_tried = any(arm.trial is not None for arm in arms)
    gone = set(block.arms.filter(UNMAKEABLE).values_list("number", flat=True)) if is_tried else set()
    return [arm.spec for arm in arms if arm.arm not in gone]


def serves(node: Node, block: Block) -> bool:
    """Whether the block's model may be given to the node: both teams agree, and its owner's word or its walls allow."""
    return _serving(node, block) is not None


class _Serving(Protocol):
    """A node that may have a block's model, and whether it measures another one now."""

    is_busy: bool


def _serving(node: Node, block: Block) -> "_Serving | None":
    measured = Block.objects.filter(Q(device=node.device) | Q(node=node.pk), state=BlockState.LEASED)
    if node.team_id == block.run.team_id and node.sandbox != "none":
        # it may have all of its team's, so that a claim, which mostly is its own team's, asks no more
        serving = Node.objects.vouched()
    else:
        # a node without walls takes its owner's models alone, each of them
        of_others = Beside.objects.filter(run=block.run_id).exclude(version__uploaded_by=OuterRef("owner"))
        serving = Node.objects.serving(block.run.team_id, uploader=block.run.version.uploaded_by_id)
        serving = serving.exclude(Q(sandbox="none") & Exists(of_others))
    serving = serving.filter(pk=node.pk)
    return cast("_Serving | None", serving.annotate(is_busy=Exists(measured)).only("pk").first())


def _bare(node: Node) -> str:
    return ", having no sandbox, what its owner did not upload" if node.sandbox == "none" else ""


def can_take(node: Node, specs: Iterable[CellSpec]) -> bool:
    """Whether the node has what all these cells ask for."""
    offer = offer_of(node)
    return all(takes(offer, spec) for spec in specs)


class Family(NamedTuple):
    """Counts of one kind of row by the values of some columns."""

    name: str
    words: str
    labels: tuple[str, ...]
    values: dict[tuple[str, ...], float]


COUNTED: Final[tuple[tuple[str, str, type[models.Model], tuple[str, ...]], ...]] = (
    ("nodes", "Nodes, by whether they are there and may work.", Node, ("state", "health")),
    ("runs", "Runs.", Run, ("state", "outcome")),
    ("blocks", "Blocks.", Block, ("state",)),
    ("attempts", "Attempts at blocks; lost ones had a node that fell silent.", Attempt, ("state",)),
    ("versions", "Uploaded versions; pending and inspecting ones wait for a prepare worker.", Version, ("state",)),
    ("variants", "Variants made or to be made.", Variant, ("state",)),
    ("preparations", "Inputs and references made or to be made.", Preparation, ("state",)),
)


def counts() -> list[Family]:
    """Every counted family."""
    found = [Family(name, words, labels, _by(model, labels)) for name, words, model, labels in COUNTED]
    waiting = PartialUpload.objects.filter(version=None).count()
    return [*found, Family("partial_uploads", "Uploads in pieces that are not complete.", (), {(): waiting})]


def oldest_queued_s() -> float:
    """Seconds that the block which has waited longest for a node has been queued; 0 when none is."""
    return _oldest_s(BlockState.QUEUED, "queued_at")


def oldest_reported_s() -> float:
    """Seconds since the block that has waited longest to be settled was measured; 0 when none waits."""
    return _oldest_s(BlockState.REPORTED, "ended_at")


def _oldest_s(state: BlockState, field: str) -> float:
    since = Block.objects.filter(state=state).aggregate(since=Min(field))["since"]
    return max(0.0, (timezone.now() - since).total_seconds()) if since else 0.0


def stored_bytes() -> int:
    """Bytes of all teams' files."""
    return int(Blob.objects.aggregate(total=Sum("bytes"))["total"] or 0)


def _by(model: type[models.Model], labels: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    found = model._default_manager.order_by().values_list(*labels).annotate(count=Count("pk"))
    return {tuple(str(value) for value in key): count for *key, count in found}
