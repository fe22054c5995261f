"""One submission of a matrix."""

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import F
from django.utils import timezone
from django.utils.functional import cached_property

from farm.accounts.models import OwnedQuerySet, Team
from farm.contract.cells import Budget
from farm.runs.models.event import Event
from farm.runs.states import RUN_ARROWS, EventKind, RunOutcome, RunReason, RunState

if TYPE_CHECKING:
    from farm.registry.models import Version


class RunQuerySet(OwnedQuerySet["Run"]):
    """Queries for runs."""


class Run(models.Model):
    """A set of blocks that measure one matrix.

    `start` and `finish` return False, and change nothing, if RUN_ARROWS does not allow the change of state. They log
    nothing, and `started_at` stays empty until a block is claimed. `log` and `touch` raise the revision in the row
    only; this object keeps the revision that it had. The text of a log line and the sentence are cut at 1,000
    characters.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="runs")
    version = models.ForeignKey("registry.Version", models.PROTECT, related_name="runs")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="runs")
    # the token that started it, if that may only run gates
    gate = models.ForeignKey("accounts.Token", models.SET_NULL, null=True, blank=True, related_name="+")
    reason = models.CharField(
        max_length=12, choices=RunReason.choices, default=RunReason.ASKED, db_default="", blank=True
    )
    matrix = models.JSONField()
    seed = models.PositiveBigIntegerField(default=0)
    budget = models.CharField(max_length=10, choices=[(b.value, b.value) for b in Budget], default=Budget.QUICK)
    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.PLANNED)
    outcome = models.CharField(max_length=10, choices=RunOutcome.choices, default=RunOutcome.OPEN, blank=True)
    # how it ended
    sentence = models.CharField(max_length=1000, blank=True)
    # what it found; written together with `is_concluded`, a moment after it finished
    headline = models.TextField(blank=True, default="")
    # figures of the headline for lists (farm.rules.presenting.key_results.KeyResult); null until they are known
    lead = models.JSONField(null=True, blank=True)
    is_concluded = models.BooleanField(default=False)
    max_parallel = models.PositiveIntegerField(null=True, blank=True)
    fail_fast = models.BooleanField(default=False)
    minutes = models.FloatField(default=0.0)
    cell_count = models.PositiveIntegerField(default=0)
    # grows with every change, so that readers can ask cheaply whether there is anything new
    revision = models.PositiveBigIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # when its first block was claimed; for runs from before 26 November 2026, when they were asked for
    started_at = models.DateTimeField(null=True, blank=True)
    # when more rounds were asked for; from then on, this time decides its place in the queue
    resumed_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    # when the team's retention rule began to remove them; the removal may still be going on
    timings_removed_at = models.DateTimeField(null=True, blank=True, editable=False)
    traces_removed_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["state", "is_concluded"]),
            # the newest run of a version
            models.Index(fields=["version", "-id"], name="runs_of_a_version"),
            # the tick asks for these every second
            models.Index(
                fields=["id"], condition=models.Q(is_concluded=True, lead__isnull=True), name="runs_without_a_lead"
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @cached_property
    def versions(self) -> "list[Version]":
        """The versions that are measured side by side, in the order of the matrix, the run's own last."""
        related = ("version__model__team", "version__artifact__prompts", "version__evaluation")
        rows = self.beside.select_related(*related).order_by("number")
        return [*(row.version for row in rows), self.version]

    def log(self, kind: EventKind, text: str, *, block_id: int | None = None, **facts: object) -> None:
        self.touch()
        Event.objects.create(run=self, block_id=block_id, kind=kind, text=text[:1000], facts=facts)

    def touch(self) -> None:
        Run.objects.filter(pk=self.pk).update(revision=F("revision") + 1)

    def start(self) -> bool:
        return self._move(RunState.RUNNING)

    def resume(self) -> bool:
        """Set a finished run to running again; return False if it runs already.

        Outcome, sentence and headline are cleared; cells and comparisons stay.
        """
        return self._move(
            RunState.RUNNING, resumed_at=timezone.now(), finished_at=None, outcome=RunOutcome.OPEN, sentence="",
            headline="", lead=None, is_concluded=False,
        )  # fmt: skip

    def finish(self, outcome: RunOutcome, sentence: str) -> bool:
        return self._move(RunState.FINISHED, finished_at=timezone.now(), outcome=outcome, sentence=sentence[:1000])

    def _move(self, state: RunState, **changes: object) -> bool:
        moved = Run.objects.filter(pk=self.pk, state__in=RUN_ARROWS[state]).update(state=state, **changes)
        if moved:
            self.state = state
            for name, value in changes.items():
                setattr(self, name, value)
        return bool(moved)


class Beside(models.Model):
    """Another version that a run measures in the same blocks; `number` is its index among them."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="beside")
    version = models.ForeignKey("registry.Version", models.PROTECT, related_name="beside")
    number = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["run", "number"]
        constraints = [models.UniqueConstraint(fields=["run", "version"], name="one_version_beside_a_run")]

    def __str__(self) -> str:
        return f"{self.version} beside {self.run}"


class FinishedDocument(models.Model):
    """A cache of the bench document of a finished run at a revision, as gzipped JSON."""

    run = models.OneToOneField(Run, models.CASCADE, related_name="finished_document")
    revision = models.PositiveBigIntegerField()
    body = models.BinaryField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"document of {self.run}"
