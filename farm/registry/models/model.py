"""Models: named lines of versions."""

from typing import Self

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.accounts.models import OwnedQuerySet, Team
from farm.registry.models.artifact import Artifact
from farm.registry.states import VersionState


class ModelQuerySet(OwnedQuerySet["Model"]):
    """Queries for models."""

    def not_removed(self) -> Self:
        return self.filter(removed_at=None)


class Model(models.Model):
    """A named line of versions of a team. With `removed_at` it was deleted, but stays for the runs that name it."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="models")
    name = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    labels = models.JSONField(default=list, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    removed_at = models.DateTimeField(null=True, blank=True)

    objects = ModelQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "name"], condition=models.Q(removed_at__isnull=True), name="one_model_per_team_and_name"
            )
        ]

    def __str__(self) -> str:
        return self.name


class VersionQuerySet(OwnedQuerySet["Version"]):
    """Queries for versions. Those on the main line were not uploaded for a branch."""

    team_path = "model__team"

    def not_removed(self) -> Self:
        return self.filter(removed_at=None)

    def on_main_line(self) -> Self:
        return self.filter(branch="")


class Version(models.Model):
    """One upload of a model."""

    model = models.ForeignKey(Model, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    artifact = models.ForeignKey(Artifact, models.PROTECT, related_name="versions")
    note = models.CharField(max_length=500, blank=True)
    # where a gate uploaded it: the branch and the commit; empty otherwise
    branch = models.CharField(max_length=255, blank=True, default="", db_default="")
    commit = models.CharField(max_length=64, blank=True, default="", db_default="")
    # when a gate last uploaded it; retention counts from then
    sent_at = models.DateTimeField(null=True, blank=True)
    # whether retention leaves it alone
    is_kept = models.BooleanField(default=False, db_default=False)
    state = models.CharField(max_length=12, choices=VersionState.choices, default=VersionState.PENDING)
    # the result of the inspection; null until it is accepted
    inspection = models.JSONField(null=True, blank=True)
    # why it was rejected
    problem = models.TextField(blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    # when the current inspection was last ordered or began; the sweep orders it again when this is long ago
    asked_at = models.DateTimeField(default=timezone.now)
    uploaded_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # a removed version stays for the runs that measured it
    removed_at = models.DateTimeField(null=True, blank=True)

    objects = VersionQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["model", "number"], name="one_version_per_number")]
        indexes = [models.Index(fields=["state", "asked_at"])]

    def __str__(self) -> str:
        return f"{self.model.name} v{self.number}"
