"""The sweep: blocks whose node fell silent go elsewhere.

A lease has to be found expired by the database's clock in two sweeps, SUSPECT_LEASES apart by a monotonic clock,
without a heartbeat in between. So a clock that jumps re-queues nothing: a living node's next heartbeat, due within a
quarter of a lease, clears the suspicion. A lease that ends later than any could is suspect too: then the clock went
back.
"""

import logging
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from farm.contract.reasons import Reason, ReasonCode
from farm.fleet.models import Lending, Node
from farm.fleet.states import NodeHealth
from farm.runs import clocks
from farm.runs.models import Attempt, Block, Run
from farm.runs.services.completion import finish_run_if_over
from farm.runs.services.endings import give_up_attempt
from farm.runs.services.locks import lock_block, lock_run
from farm.runs.services.stranded_blocks import end_stranded
from farm.runs.states import UNSETTLED_BLOCKS, AttemptState, BlockState, RunState

log = logging.getLogger(__name__)

# a living node sends a heartbeat every quarter of a lease
SUSPECT_LEASES = 0.4
# a lease that seems to last this much longer than it can was given before the clock went back
BACKWARD_S = 5.0


def sweep(*, moment: clocks.Moment | None = None) -> int:
    """Takes blocks from nodes that fell silent, were taken out or serve the team no more; gives how many."""
    taken = _take_from_others()
    end_stranded()
    for block in _overdue():
        taken += _look_at(block, moment or clocks.now())
    _finish_forgotten_runs()
    return taken


def _overdue() -> list[Block]:
    """Leased blocks whose lease is over, or ends later than it can."""
    latest = Now() + timedelta(seconds=settings.LEASE_S + BACKWARD_S)
    over = Q(lease_expires_at__lt=Now()) | Q(lease_expires_at__gt=latest)
    return list(Block.objects.filter(over, state=BlockState.LEASED).select_related("run", "node"))


def _look_at(block: Block, moment: clocks.Moment) -> bool:
    """Suspects the block, or takes it when it has been suspect for long enough without a heartbeat."""
    is_suspected = block.suspected_beat == block.beats
    waited_s = moment.since(block.suspected_at_s, block.suspected_boot) if is_suspected else None
    if waited_s is None or waited_s < 0:
        _suspect(block, moment)
        return False
    if waited_s < settings.LEASE_S * SUSPECT_LEASES:
        return False
    name = block.node.name if block.node else "The node"
    text = f"{name} sent no heartbeat for a whole lease of {settings.LEASE_S:.0f} s."
    return _take(block, Reason(code=ReasonCode.NODE_LOST, text=text))


def _suspect(block: Block, moment: clocks.Moment) -> None:
    Block.objects.filter(pk=block.pk, state=BlockState.LEASED, beats=block.beats).update(
        suspected_beat=F("beats"), suspected_at_s=moment.seconds, suspected_boot=moment.boot
    )


def _take(block: Block, reason: Reason) -> bool:
    with transaction.atomic():
        current = lock_block(block.pk, run_id=block.run_id)
        if (current.state, current.attempt, current.beats) != (BlockState.LEASED, block.attempt, block.beats):
            return False
        attempt = Attempt.objects.select_related("node").filter(block=current, number=current.attempt).first()
        if attempt is None:
            log.error("Block %s is leased without an attempt; it is queued again.", block.pk)
            return current.queue(text="The lease had no attempt.")
        return give_up_attempt(current, attempt, reason, state=AttemptState.LOST)


def _take_from_others() -> int:
    """Blocks of nodes that were revoked meanwhile, or that the team or their owner does not stand for any more."""
    lent = Lending.objects.in_force().filter(node=OuterRef("pk"), team=OuterRef(OuterRef("run__team")))
    serving = Node.objects.vouched().filter(Q(team=OuterRef("run__team")) | Exists(lent), pk=OuterRef("node"))
    leased = Block.objects.filter(state=BlockState.LEASED).select_related("node")
    held = leased.filter(Q(node__health=NodeHealth.RETIRED) | ~Exists(serving))
    return sum(_take(block, _why_taken(block)) for block in held)


def _why_taken(block: Block) -> Reason:
    is_there = block.node is not None and block.node.health != NodeHealth.RETIRED
    why = "ceased to measure for this team" if is_there else "was removed from the farm"
    return Reason(code=ReasonCode.NODE_LOST, text=f"The node {why} while it measured.")


def _finish_forgotten_runs() -> None:
    """Runs whose last block ended in a process that died before it could say so."""
    unsettled = Block.objects.filter(state__in=UNSETTLED_BLOCKS).values("run_id")
    for run in Run.objects.filter(state=RunState.RUNNING).exclude(pk__in=unsettled):
        with transaction.atomic():
            finish_run_if_over(lock_run(run.pk))
