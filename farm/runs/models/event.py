"""What happened in a run, append-only."""

from django.db import models
from django.utils import timezone

from farm.runs.states import EventKind


class Event(models.Model):
    """A line of a run's log; every change of state of a run or block writes one."""

    run = models.ForeignKey("runs.Run", models.CASCADE, related_name="events")
    block = models.ForeignKey("runs.Block", models.CASCADE, null=True, blank=True, related_name="events")
    at = models.DateTimeField(default=timezone.now, editable=False)
    kind = models.CharField(max_length=20, choices=EventKind.choices)
    text = models.CharField(max_length=1000, blank=True)
    facts = models.JSONField(default=dict)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["run", "id"])]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"
