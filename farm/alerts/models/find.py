"""Races that search for the settings to ship, each on one kind of hardware."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.accounts.models import OwnedQuerySet
from farm.alerts.models.stateful import StatefulModel
from farm.alerts.states import OPEN_FINDS, FindState


class FindQuerySet(OwnedQuerySet["Find"]):
    """Queries for searches for the best settings."""

    team_path = "version__model__team"


class Find(StatefulModel):
    """One race on one kind of hardware. The tick advances it; each block of the race is one run.

    A search on several kinds of hardware has one row for each. `is_open`: the race is neither answered, failed nor
    cancelled.
    """

    version = models.ForeignKey("registry.Version", models.CASCADE, related_name="finds")
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    # the first of the races that were asked for together; None in the first itself
    first = models.ForeignKey("self", models.CASCADE, null=True, blank=True, related_name="others")
    hardware = models.CharField(max_length=200, blank=True, default="")
    state = models.CharField(max_length=10, choices=FindState.choices, default=FindState.WAITING)
    # the goal, limits, minutes, matrix and contenders of the race, as they were planned at its start
    question = models.JSONField()
    run = models.ForeignKey("runs.Run", models.SET_NULL, null=True, blank=True, related_name="+")
    # what the current run measures, with its rounds, settings and minutes
    asked = models.JSONField(null=True)
    # the finished steps: what each run measured, with its rounds, settings and minutes
    steps = models.JSONField(default=list)
    # the document `onnxfarm.find/1`; while the race goes on, the best so far
    answer = models.JSONField(null=True)
    sentence = models.CharField(max_length=2000, blank=True, default="")
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = FindQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["state"])]

    def __str__(self) -> str:
        return f"find {self.pk} of {self.version}"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_FINDS

    @property
    def minutes(self) -> float:
        """How many minutes the finished steps took on nodes; a step that reused an earlier run took 0."""
        return float(sum(step["minutes"] for step in self.steps))
