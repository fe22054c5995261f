"""Takes blocks from nodes that stopped sending heartbeats, and ends queued blocks that no node will ever take.

A block is taken only if two sweeps find its lease expired by the database's clock, at least SUSPECT_LEASES of a lease
apart by a monotonic clock, without a heartbeat in between. So a clock that jumps takes no block away: the node's next
heartbeat, due within a quarter of a lease, clears the suspicion. A lease that ends later than possible is suspect
too, since the clock must have gone back.
"""

import logging
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, Min, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from farm.contract.reasons import Reason, ReasonCode
from farm.contract.version import name_node_queue
from farm.fleet.models import Lending, Node
from farm.fleet.states import NodeHealth
from farm.runs import clocks
from farm.runs.models import Attempt, Block, Run
from farm.runs.services.endings import fail_block, finish_run_if_over, give_up_attempt, keep_earlier_rounds
from farm.runs.services.locks import lock_block, lock_run
from farm.runs.states import UNSETTLED_BLOCKS, AttemptState, BlockState, RunState

NODE_PREFIX = name_node_queue("")
# how many stranded blocks one sweep ends
MAX_AT_ONCE = 200
# blocks with the same values of these columns wait for the same nodes
ALIKE = ("only_node", "queues", "first_round", "run__team", "run__version__uploaded_by")
RELATED = ("run__team", "run__version__uploaded_by")
# long columns that are not needed here
UNREAD = ("plan_json", "run__matrix", "run__version__inspection")
log = logging.getLogger(__name__)

# a living node sends a heartbeat every quarter of a lease
SUSPECT_LEASES = 0.4
# a lease that seems to last this much longer than the limit was given before the clock went back
BACKWARD_S = 5.0


def end_stranded_blocks(*, at_once: int = MAX_AT_ONCE) -> int:
    """End queued blocks whose nodes have all left the farm or no longer measure for the team; return how many.

    At most `at_once` are ended: continued ones are done with their earlier rounds, and others fail. Of the blocks that
    wait for the same nodes only the oldest is checked, since this runs every second and most blocks wait for a node
    that is only busy or switched off.
    """
    bound, serving, ended = _select_bound(), _ServingNodes(), 0
    groups = list(bound.order_by().values(*ALIKE).annotate(eldest=Min("pk")))
    eldest = bound.in_bulk([group["eldest"] for group in groups])
    for group in groups:
        block = eldest.get(group.pop("eldest"))
        if block is None or serving.find_ids(block) & set(_list_nodes(block)):
            continue
        sentence = _explain_stranded(block)
        if sentence:
            for stranded in bound.filter(**group)[: at_once - ended]:
                ended += _end_stranded(stranded, sentence)
    return ended


class _ServingNodes:
    """Finds the nodes that may measure a team's models of an uploader, in one query for all of their blocks."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[int, int | None], frozenset[int]] = {}

    def find_ids(self, block: Block) -> frozenset[int]:
        run = block.run
        key = (run.team_id, run.version.uploaded_by_id)
        if key not in self._nodes:
            nodes = Node.objects.exclude(health=NodeHealth.RETIRED)
            serving = nodes.serving(run.team, uploader=run.version.uploaded_by)
            self._nodes[key] = frozenset(serving.values_list("pk", flat=True))
        return self._nodes[key]


def _explain_stranded(block: Block) -> str:
    """Say why none of the nodes that the block is bound to will ever take it; empty while one of them may."""
    numbers = _list_nodes(block)
    present = Node.objects.exclude(health=NodeHealth.RETIRED).filter(pk__in=numbers)
    if present.serving(block.run.team, uploader=block.run.version.uploaded_by).exists():
        return ""
    if present.exists():
        names = ", ".join(present.values_list("name", flat=True))
        return f"{names} no longer measures for team “{block.run.team.name}”."
    removed = ", ".join(Node.objects.filter(pk__in=numbers).values_list("name", flat=True))
    return f"{removed or 'Its node'} was removed from the farm."


def _select_bound() -> QuerySet[Block]:
    """Return the queued blocks that are bound to nodes: continued ones, and those whose matrix names nodes, no tag."""
    named = Q(only_node=None) & (Q(hardware__contains="node:") | Q(hardware__contains="|"))
    bound = ~Q(only_node=None) | Q(first_round__gt=0) | named
    blocks = Block.objects.filter(bound, state=BlockState.QUEUED)
    return blocks.select_related(*RELATED).defer(*UNREAD).order_by("queued_at", "pk")


def _list_nodes(block: Block) -> list[int]:
    if block.only_node_id is not None:
        return [block.only_node_id]
    if block.first_round:
        # its node was deleted, and rounds of another node cannot be compared with its earlier ones
        return []
    return [int(queue.removeprefix(NODE_PREFIX)) for queue in block.queues if queue.startswith(NODE_PREFIX)]


def _end_stranded(block: Block, sentence: str) -> bool:
    with transaction.atomic():
        current = lock_block(block.pk, run_id=block.run_id)
        if (current.state, current.attempt) != (BlockState.QUEUED, block.attempt):
            return False
        text = f"{sentence} To measure on another node, start a new run."
        reason = Reason(code=ReasonCode.NODE_LOST, text=text)
        log.info("Block %s waits for no node: %s", block.pk, text)
        if not current.first_round:
            fail_block(current, reason)
            return True
        keep_earlier_rounds(current, reason)
        finish_run_if_over(current.run)
        return True


def sweep(*, moment: clocks.MonotonicTime | None = None) -> int:
    """Take blocks from nodes that fell silent, were retired or no longer measure for the team; return how many.

    Stranded blocks are ended and runs without open blocks finished too, but not counted. `moment` is the time of the
    sweep; None is now.
    """
    count = _take_from_lost_nodes()
    end_stranded_blocks()
    for block in _list_overdue():
        count += _suspect_or_take(block, moment or clocks.now())
    _finish_forgotten_runs()
    return count


def _list_overdue() -> list[Block]:
    """Return leased blocks whose lease has expired, or ends later than is possible."""
    latest = Now() + timedelta(seconds=settings.LEASE_S + BACKWARD_S)
    over = Q(lease_expires_at__lt=Now()) | Q(lease_expires_at__gt=latest)
    return list(Block.objects.filter(over, state=BlockState.LEASED).select_related("run", "node"))


def _suspect_or_take(block: Block, moment: clocks.MonotonicTime) -> bool:
    """Mark the block as suspect, or take it if it has been suspect for long enough without a heartbeat."""
    is_suspected = block.suspected_beat == block.beats
    waited_s = moment.since(block.suspected_at_s, block.suspected_boot) if is_suspected else None
    if waited_s is None or waited_s < 0:
        Block.objects.filter(pk=block.pk, state=BlockState.LEASED, beats=block.beats).update(
            suspected_beat=F("beats"), suspected_at_s=moment.seconds, suspected_boot=moment.boot
        )
        return False
    if waited_s < settings.LEASE_S * SUSPECT_LEASES:
        return False
    name = block.node.name if block.node else "The node"
    text = f"{name} sent no heartbeat for a whole lease of {settings.LEASE_S:.0f} s."
    return _take_block(block, Reason(code=ReasonCode.NODE_LOST, text=text))


def _take_block(block: Block, reason: Reason) -> bool:
    with transaction.atomic():
        current = lock_block(block.pk, run_id=block.run_id)
        if (current.state, current.attempt, current.beats) != (BlockState.LEASED, block.attempt, block.beats):
            return False
        attempt = Attempt.objects.select_related("node").filter(block=current, number=current.attempt).first()
        if attempt is None:
            log.error("Block %s is leased without an attempt; it is queued again.", block.pk)
            return current.queue(came_from=BlockState.LEASED, text="The lease had no attempt.")
        return give_up_attempt(current, attempt, reason, state=AttemptState.LOST)


def _take_from_lost_nodes() -> int:
    """Take leased blocks from nodes that were retired or may not measure for the team any more; return how many."""
    lent = Lending.objects.in_force().filter(node=OuterRef("pk"), team=OuterRef(OuterRef("run__team")))
    serving = Node.objects.with_writing_owner().filter(
        Q(team=OuterRef("run__team")) | Exists(lent), pk=OuterRef("node")
    )
    leased = Block.objects.filter(state=BlockState.LEASED).select_related("node")
    count = 0
    for block in leased.filter(Q(node__health=NodeHealth.RETIRED) | ~Exists(serving)):
        is_there = block.node is not None and block.node.health != NodeHealth.RETIRED
        cause = "ceased to measure for this team" if is_there else "was removed from the farm"
        count += _take_block(block, Reason(code=ReasonCode.NODE_LOST, text=f"The node {cause} while it measured."))
    return count


def _finish_forgotten_runs() -> None:
    """Finish runs whose last block ended in a process that died before it could finish the run."""
    unsettled = Block.objects.filter(state__in=UNSETTLED_BLOCKS).values("run_id")
    for run in Run.objects.filter(state=RunState.RUNNING).exclude(pk__in=unsettled):
        with transaction.atomic():
            finish_run_if_over(lock_run(run.pk))
