"""The log of a node. Old lines of routine events are deleted, and no line is changed."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.fleet.states import NodeEventKind


class NodeEvent(models.Model):
    """One line of a node's log. By default the newest comes first."""

    node = models.ForeignKey("fleet.Node", models.CASCADE, related_name="events")
    at = models.DateTimeField(default=timezone.now, editable=False)
    kind = models.CharField(max_length=20, choices=NodeEventKind.choices)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    text = models.CharField(max_length=1000, blank=True)
    facts = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"
