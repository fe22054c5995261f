"""The audit log: who did what to which object. Events are only added, never changed."""

from django.conf import settings
from django.db import models
from django.utils import timezone


class AuditEvent(models.Model):
    """One event of the audit log. `actor` is null for what the farm does by itself, and for strangers."""

    at = models.DateTimeField(default=timezone.now, editable=False, db_index=True)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="audit_events")
    team = models.ForeignKey("accounts.Team", models.CASCADE, null=True, related_name="audit_events")
    verb = models.CharField(max_length=60)
    subject = models.CharField(max_length=200, blank=True)
    facts = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.verb} {self.subject}"
