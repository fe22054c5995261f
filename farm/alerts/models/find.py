"""A race for the settings to ship, on one kind of hardware."""

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.accounts.models import Team
from farm.alerts.models.moving import Moving
from farm.alerts.states import OPEN_FINDS, FindState

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

    from farm.accounts.models import User


class FindQuerySet(models.QuerySet["Find"]):
    """Which searches a person may see."""

    def visible_to(self, user: "User | AnonymousUser") -> Self:
        return self.filter(version__model__team__in=Team.objects.visible_to(user))


class Find(Moving):
    """One race, which the tick drives: each block is a run. Races for several kinds of hardware that were asked for
    together are rows of their own; all but the first name the first.

    `question`: goal, limits, minutes, matrix and contenders, as they were first planned. `steps`: what each run
    measured, with its rounds, settings and minutes; `asked`: the same of the current run. `answer`: the document
    `onnxfarm.find/1`, the best so far while it goes on. `minutes`: of machines, so far.
    """

    version = models.ForeignKey("registry.Version", models.CASCADE, related_name="finds")
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    first = models.ForeignKey("self", models.CASCADE, null=True, blank=True, related_name="others")
    hardware = models.CharField(max_length=200, blank=True, default="")
    state = models.CharField(max_length=10, choices=FindState.choices, default=FindState.WAITING)
    question = models.JSONField()
    run = models.ForeignKey("runs.Run", models.SET_NULL, null=True, blank=True, related_name="+")
    asked = models.JSONField(null=True)
    steps = models.JSONField(default=list)
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
        return float(sum(step["minutes"] for step in self.steps))
