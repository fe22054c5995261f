"""Queued blocks that wait for nodes which will never come: they end, and say so."""

import logging

from django.db import transaction
from django.db.models import Min, Q, QuerySet

from farm.contract.reasons import Reason, ReasonCode
from farm.contract.version import node_queue
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth
from farm.runs.models import Block
from farm.runs.services.completion import finish_run_if_over
from farm.runs.services.endings import fail_block
from farm.runs.services.locks import lock_block
from farm.runs.services.stops import keep_earlier
from farm.runs.states import BlockState

log = logging.getLogger(__name__)
NODE_PREFIX = node_queue("")
# ended in one sweep
MOST = 200
# blocks alike in these wait for the same nodes, and in vain for the same reason
ALIKE = ("only_node", "queues", "first_round", "run__team", "run__version__uploaded_by")
RELATED = ("run__team", "run__version__uploaded_by")
# what may be long and is not looked at
UNREAD = ("plan_json", "run__matrix", "run__version__inspection")


def end_stranded(*, at_once: int = MOST) -> int:
    """Ends queued blocks of named nodes that left the farm, or measure for the team no more; gives how many.

    The eldest of those that are alike is looked at for all of them: this is asked every second, and most blocks wait
    rightly, for a node that is busy or switched off.
    """
    bound, takers, ended = _bound_to_nodes(), _Takers(), 0
    groups = list(bound.order_by().values(*ALIKE).annotate(eldest=Min("pk")))
    eldest = bound.in_bulk([group["eldest"] for group in groups])
    for group in groups:
        block = eldest.get(group.pop("eldest"))
        if block is None or takers.of(block) & set(_nodes_of(block)):
            continue
        why = why_stranded(block)
        ended += sum(_end(one, why) for one in bound.filter(**group)[: at_once - ended]) if why else 0
    return ended


class _Takers:
    """Which nodes may have a team's models of one uploader, asked once for all of their blocks."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int | None], frozenset[int]] = {}

    def of(self, block: Block) -> frozenset[int]:
        run = block.run
        key = (run.team_id, run.version.uploaded_by_id)
        if key not in self._known:
            nodes = Node.objects.exclude(health=NodeHealth.RETIRED)
            serving = nodes.serving(run.team, uploader=run.version.uploaded_by)
            self._known[key] = frozenset(serving.values_list("pk", flat=True))
        return self._known[key]


def why_stranded(block: Block) -> str:
    """Why none of the nodes that a block is bound to will take it, in one sentence; empty while one may."""
    numbers = _nodes_of(block)
    there = Node.objects.exclude(health=NodeHealth.RETIRED).filter(pk__in=numbers)
    if there.serving(block.run.team, uploader=block.run.version.uploaded_by).exists():
        return ""
    if there.exists():
        names = ", ".join(there.values_list("name", flat=True))
        return f"{names} no longer measures for team “{block.run.team.name}”."
    gone = ", ".join(Node.objects.filter(pk__in=numbers).values_list("name", flat=True))
    return f"{gone or 'Its node'} was removed from the farm."


def _bound_to_nodes() -> QuerySet[Block]:
    """Queued blocks that go on at their node, or whose matrix left them no hardware tag to wait for."""
    named = Q(only_node=None) & (Q(hardware__contains="node:") | Q(hardware__contains="|"))
    bound = ~Q(only_node=None) | Q(first_round__gt=0) | named
    blocks = Block.objects.filter(bound, state=BlockState.QUEUED)
    return blocks.select_related(*RELATED).defer(*UNREAD).order_by("queued_at", "pk")


def _nodes_of(block: Block) -> list[int]:
    if block.only_node_id is not None:
        return [block.only_node_id]
    if block.first_round:
        # its node's row is gone; another node's rounds would not stand beside those it has
        return []
    return [int(queue.removeprefix(NODE_PREFIX)) for queue in block.queues if queue.startswith(NODE_PREFIX)]


def _end(block: Block, why: str) -> bool:
    with transaction.atomic():
        current = lock_block(block.pk, run_id=block.run_id)
        if (current.state, current.attempt) != (BlockState.QUEUED, block.attempt):
            return False
        text = f"{why} To measure on another node, start a new run."
        reason = Reason(code=ReasonCode.NODE_LOST, text=text)
        log.info("Block %s waits for no node: %s", block.pk, text)
        if not current.first_round:
            fail_block(current, reason)
            return True
        keep_earlier(current, reason)
        finish_run_if_over(current.run)
        return True
