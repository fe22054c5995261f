"""What lets a machine in: one-off codes to join, bearer secrets to talk. Only SHA-256 digests are stored."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.accounts.models import Team
from farm.fleet.models.node import Node


class EnrolmentCode(models.Model):
    """Lets one machine join a team, once, before it expires. `auto_approve`: for the farm's own machine."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="enrolment_codes")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    digest = models.CharField(max_length=64, unique=True)
    auto_approve = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    node = models.OneToOneField(Node, models.SET_NULL, null=True, blank=True, related_name="enrolment_code")

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"code for {self.team}"


class NodeSecret(models.Model):
    """A node's bearer secret. `hint` is its public beginning, to tell secrets apart on a page."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="secrets")
    hint = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.hint}… of {self.node}"
