"""When the farm's own duties were last done, for those who keep it running."""

from django.db import models


class Tick(models.Model):
    """One kind of tick: when it last ran to its end, and for how long."""

    name = models.CharField(max_length=60, primary_key=True)
    ended_at = models.DateTimeField()
    took_s = models.FloatField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
