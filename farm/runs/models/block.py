"""Blocks: the unit in which work is given to nodes; their rows are the queue of work."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.functional import cached_property

from farm.contract.node import MAX_DOING
from farm.contract.reasons import Reason
from farm.fleet.models import Node
from farm.rules.planning.plans import PlannedBlock
from farm.rules.wording.numbers import counted
from farm.runs.models.run import Run
from farm.runs.states import BLOCK_ARROWS, OPEN_BLOCKS, BlockState, EventKind

if TYPE_CHECKING:
    from farm.registry.models import Version

MAX_FAILURES = 3


class Block(models.Model):
    """Cells measured together on one node.

    A method that changes the state returns False, and changes nothing, if BLOCK_ARROWS does not allow the change. If it
    succeeds, it writes a line to the run's log. `fail` and `cancel` leave arms, attempts and the run as they are.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="blocks")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=BlockState.choices, default=BlockState.WAITING)
    # the fencing number: it grows each time the block is queued, and a node that holds an older one is refused
    attempt = models.PositiveIntegerField(default=0)
    failures = models.PositiveSmallIntegerField(default=0)
    # what its cells ask for, in words
    hardware = models.CharField(max_length=200)
    # the queues that get its messages, unless it is pinned to a node
    queues = models.JSONField(default=list)
    # the node that the matrix names, or that measured the earlier rounds
    only_node = models.ForeignKey(Node, models.SET_NULL, null=True, blank=True, related_name="+")
    node = models.ForeignKey(Node, models.SET_NULL, null=True, blank=True, related_name="blocks")
    device = models.CharField(max_length=64, blank=True, default="")
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    beats = models.PositiveIntegerField(default=0)
    # when a sweep found the lease expired: the count of beats, a monotonic clock's time, and that machine's boot
    suspected_beat = models.PositiveIntegerField(null=True, blank=True)
    suspected_at_s = models.FloatField(default=0.0)
    suspected_boot = models.CharField(max_length=40, blank=True, default="")
    # what its node does for it, in the node's words; not read after the lease is over
    doing = models.CharField(max_length=MAX_DOING, blank=True, default="", db_default="")
    rung_at = models.DateTimeField(null=True, blank=True)
    seed = models.PositiveBigIntegerField(default=0)
    max_rounds = models.PositiveSmallIntegerField(default=8)
    first_round = models.PositiveSmallIntegerField(default=0)
    rounds = models.PositiveSmallIntegerField(default=0)
    # a farm.rules.planning.plans.PlannedBlock: how long its arms may run, and how they are compared
    plan_json = models.JSONField(default=dict)
    reason_code = models.CharField(max_length=40, blank=True, default="")
    reason_text = models.TextField(blank=True, default="")
    queued_at = models.DateTimeField(null=True, blank=True)
    leased_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["run", "number"]
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="one_block_per_number"),
            # the database allows one measurement per device at a time, even if processes disagree
            models.UniqueConstraint(fields=["device"], condition=Q(state="leased"), name="one_leased_block_per_device"),
        ]
        indexes = [
            models.Index(fields=["state", "queued_at"]),
            models.Index(fields=["state", "lease_expires_at"]),
            # planning reads a node's next few blocks after its newest A/A pair
            models.Index(fields=["node", "id"], name="blocks_of_a_node"),
        ]

    def __str__(self) -> str:
        return f"block {self.pk}"

    @cached_property
    def plan(self) -> PlannedBlock:
        return PlannedBlock.model_validate(self.plan_json)

    @property
    def versions(self) -> "list[Version]":
        """The versions that the block measures side by side, the run's own last and usually the only one."""
        is_of_several = any("model" in arm.positions for arm in self.plan.arms)
        return self.run.versions if is_of_several else [self.run.version]

    @property
    def reason(self) -> Reason | None:
        """Why the block failed or was stopped early; None if neither happened."""
        if not self.reason_code:
            return None
        return Reason.model_validate({"code": self.reason_code, "text": self.reason_text})

    def log(self, kind: EventKind, text: str, **facts: object) -> None:
        self.run.log(kind, text, block_id=self.pk, **facts)

    def queue(
        self, kind: EventKind = EventKind.BLOCK_QUEUED, *, came_from: BlockState, text: str = "", **changes: Any
    ) -> bool:
        """Queue the block under the next attempt number, which fences off the node that held it; log an event.

        `changes` are further columns. Return False, with nothing changed, if its state is no longer `came_from`.
        """
        moved = self._move(
            BlockState.QUEUED,
            where=Q(state=came_from),
            attempt=F("attempt") + 1,
            queued_at=timezone.now(),
            lease_expires_at=None,
            ended_at=None,
            rung_at=None,
            suspected_beat=None,
            **changes,
        )
        if moved:
            self.attempt += 1
            self.log(kind, text or f"Block {self.number} waits for a node.", attempt=self.attempt)
        return moved

    def lease(self, *, node: Node, attempt: int, lease_s: float) -> bool:
        """Lease a queued block to a node by one conditional UPDATE; return False if it is no longer available.

        It is not available under another attempt number, or if only another node may continue it. Raises
        django.db.IntegrityError where the node's machine measures another block.
        """
        # a block with earlier rounds but no node has lost the node that measured them, so no node may continue it
        mine = Q(only_node=None, first_round=0) | Q(only_node=node)
        moved = self._move(
            BlockState.LEASED,
            where=Q(attempt=attempt) & mine,
            node=node,
            device=node.device,
            leased_at=timezone.now(),
            lease_expires_at=Now() + timedelta(seconds=lease_s),
            beats=0,
            doing="",
        )
        if moved:
            text = f"{node.name} measures block {self.number}."
            self.log(EventKind.BLOCK_LEASED, text, attempt=attempt, node=node.pk)
        return moved

    def extend(self, *, node: Node, attempt: int, lease_s: float, doing: str = "") -> bool:
        """Extend the lease at a heartbeat and store what the node does; return False if it has lost the block.

        Only the row changes, not this object; any suspicion that the node is lost is cleared.
        """
        leased = Block.objects.filter(pk=self.pk, state=BlockState.LEASED, attempt=attempt, node=node)
        expiry = Now() + timedelta(seconds=lease_s)
        return bool(leased.update(lease_expires_at=expiry, beats=F("beats") + 1, suspected_beat=None, doing=doing))

    def report(self, reason: Reason | None = None) -> bool:
        """Mark a leased block as reported, to be settled; return False if it is not leased under this attempt.

        `reason` says why it was stopped early; None means that it was measured to its end.
        """
        # overwrites the reason of an earlier stop
        reasons = {"reason_code": reason.code if reason else "", "reason_text": reason.text if reason else ""}
        where = Q(attempt=self.attempt)
        moved = self._move(BlockState.REPORTED, where=where, ended_at=timezone.now(), lease_expires_at=None, **reasons)
        if moved:
            rounds = counted(self.rounds, "round")
            text = f"was measured for {rounds}: {reason.text}" if reason is not None else "was measured."
            self.log(EventKind.BLOCK_REPORTED, f"Block {self.number} {text}", attempt=self.attempt)
        return moved

    def finish(self, *, attempt: int, rounds: int) -> bool:
        """Mark a reported block as done after this many rounds in all.

        Return False, with nothing changed, if it is not reported under this attempt.
        """
        where = Q(attempt=attempt, state=BlockState.REPORTED)
        moved = self._move(BlockState.DONE, where=where, rounds=rounds)
        if moved:
            text = f"Block {self.number} is done after {counted(rounds, 'round')}."
            self.log(EventKind.BLOCK_DONE, text, attempt=attempt, rounds=rounds)
        return moved

    def keep_rounds(self, text: str) -> bool:
        """Mark an open block that was to measure more rounds as done with its earlier ones; return False for any other.

        `text` is written to the run's log.
        """
        where = Q(first_round__gt=0, state__in=OPEN_BLOCKS)
        moved = self._move(
            BlockState.DONE, where=where, rounds=self.first_round, ended_at=timezone.now(), lease_expires_at=None
        )
        if moved:
            self.log(EventKind.BLOCK_DONE, text, attempt=self.attempt, rounds=self.first_round)
        return moved

    def fail(self, reason: Reason) -> bool:
        return self._end(BlockState.FAILED, EventKind.BLOCK_FAILED, reason)

    def cancel(self, reason: Reason) -> bool:
        return self._end(BlockState.CANCELLED, EventKind.BLOCK_CANCELLED, reason)

    def _end(self, state: BlockState, kind: EventKind, reason: Reason) -> bool:
        moved = self._move(
            state, reason_code=reason.code, reason_text=reason.text, ended_at=timezone.now(), lease_expires_at=None
        )
        if moved:
            self.log(kind, f"Block {self.number}: {reason.text}", code=reason.code, attempt=self.attempt)
        return moved

    def _move(self, state: BlockState, *, where: Q | None = None, **changes: object) -> bool:
        """Change the state as BLOCK_ARROWS allows, in one conditional UPDATE; return False if it does not."""
        rows = Block.objects.filter(where or Q(), pk=self.pk, state__in=BLOCK_ARROWS[state])
        if not rows.update(state=state, **changes):
            return False
        self.state = state
        for name, value in changes.items():
            if not hasattr(value, "resolve_expression"):
                setattr(self, name, value)
        return True
