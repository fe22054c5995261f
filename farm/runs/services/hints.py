"""Sends hints: Celery messages by which nodes, or workers that settle, learn of a waiting block; ticks repeat them.

With each hint, and when a machine becomes free, the gateways are woken, so that the long polls of its nodes look again.
`hint_on_commit` and `wake_others_on_machine` send nothing unless the open transaction commits.
"""

import logging
from datetime import timedelta
from functools import partial

from celery import current_app
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from kombu.exceptions import OperationalError

from farm.contract.version import MEASURE_TASK, SETTLE_QUEUE, name_node_queue
from farm.fleet.models import Node
from farm.runs import broker
from farm.runs.models import Block, Run
from farm.runs.states import BlockState, RunState

log = logging.getLogger(__name__)

SETTLE_TASK = "runs.settle"
# the hint for a block that is neither claimed nor settled is sent again after this time
SEND_AGAIN_AFTER = timedelta(seconds=3)
# how many queued and reported blocks are examined at a time
MAX_LATE = 500
# how many runs are marked as changed when a node says what it waits for
MAX_TOUCHED = 20


def queues_of(block: Block) -> list[str]:
    """List the queues that get the block's hint.

    A reported block has the settle queue, a block that is pinned to a node has that node's, and others their plan's.
    """
    if block.state == BlockState.REPORTED:
        return [SETTLE_QUEUE]
    if block.only_node_id is not None:
        return [name_node_queue(str(block.only_node_id))]
    return list(block.queues)


def hint_on_commit(block: Block) -> None:
    transaction.on_commit(lambda: send_hint(block))


def send_hint(block: Block) -> bool:
    """Send the block's id and attempt to its queues, wake the gateways, and store the time in the block's row.

    Return False if the broker does not answer; the time is stored nevertheless.
    """
    task = SETTLE_TASK if block.state == BlockState.REPORTED else MEASURE_TASK
    hint = {"block": str(block.pk), "attempt": block.attempt}
    Block.objects.filter(pk=block.pk).update(rung_at=timezone.now())
    try:
        for queue in queues_of(block):
            current_app.send_task(task, kwargs=hint, queue=queue, retry=False, ignore_result=True)
            broker.notify_gateways(queue)
    except (OperationalError, OSError) as problem:
        log.warning("Block %s could not be rung: %s", block.pk, problem)
        return False
    return True


def send_due_hints() -> int:
    """Send the hints of late blocks again, unless enough messages wait in their queues; return for how many blocks.

    At most MAX_LATE blocks are examined, reported ones first. The rest wait once the broker does not answer.
    """
    open_runs = Q(run__state=RunState.RUNNING) | Q(state=BlockState.REPORTED)
    due = Block.objects.filter(open_runs, state__in=(BlockState.QUEUED, BlockState.REPORTED))
    # reported ones first: many others may be queued for nodes that are offline
    late = [block for block in due.order_by("-state", "queued_at", "pk")[:MAX_LATE] if _is_late(block)]
    waiting = broker.count_messages(sorted({queue for block in late for queue in queues_of(block)}))
    count = 0
    for block in late:
        queues = queues_of(block)
        if all(waiting[queue] > 0 for queue in queues):
            for queue in queues:
                waiting[queue] -= 1
            continue
        if not send_hint(block):
            break  # the broker does not answer for the others either
        count += 1
    return count


def _is_late(block: Block) -> bool:
    """Say whether a hint is due, also after the clock went back, when the last hint seems to lie in the future."""
    if block.rung_at is None:
        return True
    return not timedelta(0) <= timezone.now() - block.rung_at < SEND_AGAIN_AFTER


def wake_others_on_machine(node: Node) -> None:
    for key in node.others_on_machine.values_list("pk", flat=True):
        transaction.on_commit(partial(broker.notify_gateways, name_node_queue(str(key))))


def touch_waiting_runs(node: Node) -> None:
    """Mark the newest waiting runs of the node's team as changed, as their pages show what the node waits for.

    At most MAX_TOUCHED runs are marked.
    """
    waiting = Run.objects.filter(team=node.team_id, blocks__state=BlockState.QUEUED).order_by("-pk").distinct()
    for run in waiting[:MAX_TOUCHED]:
        run.touch()
