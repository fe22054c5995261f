"""Orders of plans. A constraint of the database allows each person one open order at a time."""

import zlib

from django.conf import settings
from django.db import models

from farm.registry.models.model import Version
from farm.registry.models.products import Making
from farm.registry.states import MakingState

OPEN = (MakingState.PENDING, MakingState.MAKING)


class PlanOrder(Making):
    """An order to plan a matrix for a person. A small plan is made in the request itself, a large one by `prepare`.

    `is_open`: the plan is neither ready nor failed. `plan_json` raises zlib.error before the plan is ready.
    """

    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    version = models.ForeignKey(Version, models.CASCADE, related_name="+")
    # the matrix as plain values, the seed, and the known releases
    order_json = models.JSONField()
    order_sha256 = models.CharField(max_length=64)
    # how many points the matrix has
    points = models.PositiveIntegerField()
    # the plan as compressed JSON, once it is ready
    body = models.BinaryField(default=bytes)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["asked_by"], condition=models.Q(state__in=OPEN), name="one_open_plan_per_person"
            )
        ]
        indexes = [models.Index(fields=["state", "asked_at"], name="plan_order_state_and_asked")]

    def __str__(self) -> str:
        return f"plan of {self.version}"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def plan_json(self) -> bytes:
        return zlib.decompress(self.body)
