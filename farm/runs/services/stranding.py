"""Queued blocks that wait for nodes which will never come: they end, and say so."""

import logging

from django.db import transaction
from django.db.models import Q, QuerySet

from farm.contract.reasons import Reason, ReasonCode
from farm.contract.version import node_queue
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth
from farm.runs.models import Block
from farm.runs.services.ending import fail_block
from farm.runs.services.finishing import finish_run_if_over
from farm.runs.services.locking import lock_block
from farm.runs.services.stopping import keep_earlier
from farm.runs.states import BlockState

log = logging.getLogger(__name__)
NODE_PREFIX = node_queue("")
# looked at in one sweep
MOST = 200


def end_stranded() -> int:
    """Ends queued blocks of named nodes that left the farm, or measure for the team no more; gives how many."""
    return sum(_end(block, why) for block in _bound_to_nodes()[:MOST] if (why := why_stranded(block)))


def why_stranded(block: Block) -> str:
    """Why none of the nodes that a block is bound to will take it, in one sentence; empty while one may."""
    numbers = _nodes_of(block)
    there = Node.objects.exclude(health=NodeHealth.RETIRED).filter(pk__in=numbers)
    if there.serving(block.run.team, uploader=block.run.version.uploaded_by).exists():
        return ""
    if there.exists():
        names = ", ".join(there.values_list("name", flat=True))
        return f"{names} does not measure for team “{block.run.team.name}” any more."
    gone = ", ".join(Node.objects.filter(pk__in=numbers).values_list("name", flat=True))
    return f"{gone or 'Its node'} was taken out of the farm."


def _bound_to_nodes() -> QuerySet[Block]:
    """Queued blocks that go on at their node, or whose matrix left them no hardware tag to wait for."""
    named = Q(only_node=None) & (Q(hardware__contains="node:") | Q(hardware__contains="|"))
    bound = ~Q(only_node=None) | Q(first_round__gt=0) | named
    related = ("run__team", "run__version__uploaded_by")
    return Block.objects.filter(bound, state=BlockState.QUEUED).select_related(*related).order_by("queued_at", "pk")


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
