"""Attempts to measure a block on a node, with the reports and files that the node sent."""

from django.db import models
from django.utils import timezone

from farm.fleet.models import Node
from farm.registry.models import Blob
from farm.runs.models.block import Block
from farm.runs.states import AttemptState, ReadingState

# stored instead of NULL for "no arm" and "no round", since a unique constraint treats NULLs as different
NO_INDEX = -1


class Attempt(models.Model):
    """An attempt to measure a block on a node. `token_digest` is the sha256 of the lease's token."""

    block = models.ForeignKey(Block, models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    node = models.ForeignKey(Node, models.SET_NULL, null=True, related_name="attempts")
    state = models.CharField(max_length=10, choices=AttemptState.choices, default=AttemptState.LEASED)
    token_digest = models.CharField(max_length=64, unique=True)
    first_round = models.PositiveSmallIntegerField(default=0)
    # seconds of timed inference that were reported so far
    timed_s = models.FloatField(default=0.0)
    # when the attempt began by a monotonic clock, and the boot of the machine whose clock that was
    began_at_s = models.FloatField(default=0.0)
    began_boot = models.CharField(max_length=40, blank=True, default="")
    # characters of all its stored reports
    reported_bytes = models.PositiveBigIntegerField(default=0)
    reason_code = models.CharField(max_length=40, blank=True, default="")
    reason_text = models.TextField(blank=True, default="")
    claimed_at = models.DateTimeField(default=timezone.now, editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["block", "number"]
        constraints = [models.UniqueConstraint(fields=["block", "number"], name="one_attempt_per_number")]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.block}"

    def end(self, state: AttemptState, *, code: str = "", text: str = "") -> bool:
        """End a leased attempt with this state and reason; return False if it had ended already.

        Only the row changes; this object keeps the state that it had.
        """
        mine = Attempt.objects.filter(pk=self.pk, state=AttemptState.LEASED)
        return bool(mine.update(state=state, reason_code=code, reason_text=text, ended_at=timezone.now()))


class Report(models.Model):
    """An accepted report of an attempt. Kind, arm and round are unique, so that sending it twice changes nothing."""

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="reports")
    kind = models.CharField(max_length=8)
    arm = models.SmallIntegerField(default=NO_INDEX)
    round = models.SmallIntegerField(default=NO_INDEX)
    digest = models.CharField(max_length=64)
    # JSON texts of the report and of the farm's answer
    body = models.TextField()
    reply = models.TextField(default="{}")
    received_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["attempt", "kind", "arm", "round"], name="one_report_per_place")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.attempt}"


class Trace(models.Model):
    """A raw Chrome trace of one arm, gzipped in the store under the digest of those bytes."""

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="traces")
    arm = models.PositiveSmallIntegerField()
    trace_round = models.PositiveSmallIntegerField()
    sha256 = models.CharField(max_length=64)
    bytes = models.PositiveBigIntegerField()
    # None if the file was gone when the farm began to count references to files
    blob = models.ForeignKey(Blob, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["attempt", "arm", "trace_round"], name="one_trace_per_place")]

    def __str__(self) -> str:
        return f"trace {self.trace_round} of arm {self.arm}, {self.attempt}"


class Part(models.Model):
    """A zipped part of a model that a node sent for an arm, until its report names it, or the attempt is over."""

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="parts")
    arm = models.PositiveSmallIntegerField()
    blob = models.ForeignKey(Blob, models.PROTECT, related_name="+")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["attempt", "arm"], name="one_part_per_place")]

    def __str__(self) -> str:
        return f"part of arm {self.arm}, {self.attempt}"


class CompiledModel(models.Model):
    """A model that a provider compiled for an arm, as the node sent it. Nothing outside a sandbox reads it."""

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="compiled")
    arm = models.PositiveSmallIntegerField()
    blob = models.ForeignKey(Blob, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["attempt", "arm"], name="one_compiled_model_per_place")]

    def __str__(self) -> str:
        return f"compiled model of arm {self.arm}, {self.attempt}"


class TraceReading(models.Model):
    """A timeline of an inference in a raw trace, read in the workshop once somebody opens it; asked → read | failed."""

    trace = models.OneToOneField(Trace, models.CASCADE, related_name="reading")
    state = models.CharField(max_length=6, choices=ReadingState.choices, default=ReadingState.ASKED)
    tries = models.PositiveSmallIntegerField(default=0)
    asked_at = models.DateTimeField(default=timezone.now)
    # a farm.rules.tracing.timeline.Timeline as JSON text
    body = models.TextField(blank=True, default="")
    # why there is no timeline
    problem = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"reading of {self.trace}"
