"""Decides which queued block has priority on a node.

Runs that a person asked for come before the farm's own, unless the node's team says otherwise; among equals, the run
that was created or resumed first comes first. Nodes that share a machine measure one at a time, in the same order. With
`people_first` False only the age of the runs counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import NamedTuple

from django.db.models import Case, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast, Coalesce
from django.utils import timezone

from farm.fleet.models import Lending, Node
from farm.fleet.states import NodeState
from farm.runs.models import Attempt, Block, Run
from farm.runs.selectors.backlog import explain_refused_claim
from farm.runs.selectors.minutes import teams_without_minutes
from farm.runs.states import BACKGROUND, BlockState

# how long a machine that has become free is reserved for its other nodes if their block has priority
MACHINE_RESERVATION = timedelta(seconds=20)
# how many of the blocks before the one that a message names are considered
MAX_CONSIDERED = 16
RELATED = ("run__team", "run__version")
NO_BLOCKS: Mapping[int, str] = MappingProxyType({})
_RANK = {True: Case(When(run__reason__in=BACKGROUND, then=Value(1)), default=Value(0)), False: Value(0)}


def order_by_priority(blocks: QuerySet[Block], *, people_first: bool) -> QuerySet[Block]:
    ranked = blocks.annotate(rank=_RANK[people_first], came_at=Coalesce("run__resumed_at", "run__created_at"))
    return ranked.order_by("rank", "came_at", "run_id", "number")


def priority_key(run: Run) -> tuple[bool, datetime, int]:
    """Return the key that sorts runs in Python as `order_by_priority` sorts blocks with `people_first`."""
    return run.reason in BACKGROUND, run.resumed_at or run.created_at, run.pk


def queued_for(nodes: Iterable[Node]) -> QuerySet[Block]:
    """Return the queued blocks that any of these nodes may measure, of teams that have minutes left.

    Only queues and teams are checked; `explain_refused_claim` checks a node's hardware and whether it is free.
    """
    for_nodes = reduce(or_, map(_filter_for_node, nodes), Q(pk=None))
    named = Block.objects.annotate(queue_names=Cast("queues", TextField()))
    return named.filter(for_nodes, state=BlockState.QUEUED).exclude(run__team__in=teams_without_minutes())


def _filter_for_node(node: Node) -> Q:
    in_queues = reduce(or_, (Q(queue_names__contains=f'"{queue}"') for queue in node.queues), Q(pk=None))
    lent = Lending.objects.in_force().filter(node=node.pk).values("team")
    of_teams = Q(run__team=node.team_id) | Q(run__team__in=lent)
    return of_teams & (Q(only_node=node.pk) | in_queues & Q(only_node=None))


def find_next_block(node: Node, block: Block, *, passed_over: Mapping[int, str] = NO_BLOCKS) -> Block | None:
    """Find the block with the highest priority that the node may claim; `block` itself if none comes before it.

    `block` must be one that the node may claim, and only the first MAX_CONSIDERED blocks of the queue are compared.
    Return None if the machine became free within MACHINE_RESERVATION and another online node on it may claim a block of
    higher priority. `passed_over` maps blocks that were just offered to other nodes to the machines of these nodes;
    those of other machines are skipped.
    """
    passed_elsewhere = [pk for pk, device in passed_over.items() if device != node.device]
    neighbours = list(node.others_on_machine.filter(state=NodeState.ONLINE)) if _is_machine_reserved(node) else []
    rows = queued_for([node, *neighbours]).exclude(pk__in=passed_elsewhere).select_related(*RELATED)
    for ahead in order_by_priority(rows, people_first=node.team.puts_people_first)[:MAX_CONSIDERED]:
        if ahead.pk == block.pk:
            break
        if not explain_refused_claim(node, ahead, ahead.attempt):
            return ahead
        if any(not explain_refused_claim(neighbour, ahead, ahead.attempt) for neighbour in neighbours):
            return None
    return block


class Claimant(NamedTuple):
    """A node and the block that it may claim now: the one that a message named, or one of higher priority."""

    node_id: int
    block: int
    attempt: int


def find_claimant(
    block_id: str, attempt: int, node_ids: Sequence[int], *, passed_over: Mapping[int, str] = NO_BLOCKS
) -> tuple[Claimant | None, bool]:
    """Find the first of these nodes that may now claim the block, or another block of higher priority.

    Return that node with its block, or None; and whether the named block is still queued under this attempt.
    `passed_over` is as in `find_next_block`.
    """
    block = Block.objects.select_related(*RELATED).filter(pk=block_id).first()
    if block is None or block.state != BlockState.QUEUED or block.attempt != attempt:
        return None, False
    nodes = Node.objects.select_related("team", "owner").defer("log_tail").in_bulk(list(node_ids))
    for node in (nodes[pk] for pk in node_ids if pk in nodes):
        if explain_refused_claim(node, block, attempt):
            continue
        first = find_next_block(node, block, passed_over=passed_over)
        if first is not None:
            return Claimant(node.pk, first.pk, first.attempt), True
    return None, True


def explain_not_next(node: Node, block: Block) -> str:
    """Say in one sentence why the node may not claim `block` before another block; empty if it may.

    Only two cases count: another node on its machine comes first, or `block` is of the farm's own and a run that a
    person asked for comes first. Among blocks of equal rank a later one may be claimed first, since a message may be
    late.
    """
    is_of_farm = block.run.reason in BACKGROUND and node.team.puts_people_first
    if not is_of_farm and not node.host:
        return ""
    first = find_next_block(node, block)
    if first is None:
        return f"It is the turn of another node on the machine of {node.name}."
    if is_of_farm and first.run.reason not in BACKGROUND:
        return f"A run that a person asked for comes first on {node.name}."
    return ""


def _is_machine_reserved(node: Node) -> bool:
    """Say whether the node's machine became free within MACHINE_RESERVATION, so that its other nodes may come first."""
    if not node.host:
        return False
    device = Node.objects.filter(owner=node.owner_id, host=node.host)
    ended_at = Attempt.objects.filter(node__in=device).order_by("-pk").values_list("ended_at", flat=True).first()
    return ended_at is not None and timezone.now() - ended_at < MACHINE_RESERVATION
