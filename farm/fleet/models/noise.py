"""A/A history of a node: how much identical launches differ on it."""

from django.db import models
from django.utils import timezone

from farm.fleet.models.node import Node


class NullEstimate(models.Model):
    """One A/A comparison: the same cell in two arms of one block."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="null_estimates")
    cell_class = models.CharField(max_length=100)
    # numbers of the block and the two arms, so that a continued block replaces its own estimate
    block = models.PositiveBigIntegerField()
    arm = models.PositiveSmallIntegerField()
    twin = models.PositiveSmallIntegerField()
    # the number of rounds after which the verdict was reached, and the estimate at that moment
    rounds = models.PositiveSmallIntegerField()
    estimate = models.FloatField()
    # dᵢ = ln(twin / original), one for each round
    log_ratios = models.JSONField(default=list)
    verdict = models.CharField(max_length=16)
    # the estimates of further metrics, by name
    metrics = models.JSONField(default=dict, db_default={})
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["block", "arm", "twin"], name="one_null_estimate_per_pair")]
        indexes = [models.Index(fields=["node", "cell_class", "rounds"])]

    def __str__(self) -> str:
        return f"{self.cell_class} on {self.node}: {self.estimate:+.4f}"
