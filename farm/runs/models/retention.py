"""The retention rule of a team: how long it keeps files that its documents and verdicts do not need."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.accounts.models import Team

# days after which versions of branches are removed in a team without a rule
BRANCHES_DAYS = 30


class RetentionRule(models.Model):
    """Days after which raw timings, raw traces, models without a run and branches are removed; None keeps them.

    Compiled models are removed with the traces.
    """

    team = models.OneToOneField(Team, models.CASCADE, related_name="retention")
    timings_days = models.PositiveSmallIntegerField(null=True, blank=True)
    traces_days = models.PositiveSmallIntegerField(null=True, blank=True)
    models_days = models.PositiveSmallIntegerField(null=True, blank=True)
    branches_days = models.PositiveSmallIntegerField(null=True, blank=True, default=BRANCHES_DAYS, db_default=30)
    # nothing is removed before this time, so that the rule can still be changed
    acts_from = models.DateTimeField()
    # when the rule last finished removing everything that was due
    acted_at = models.DateTimeField(null=True, blank=True)
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"retention of {self.team}"
