"""When each periodic task of the farm last ran, for its operators."""

from django.db import models


class Tick(models.Model):
    """A periodic task: when it last finished, and how many seconds it took."""

    name = models.CharField(max_length=60, primary_key=True)
    ended_at = models.DateTimeField()
    took_s = models.FloatField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
