"""What a block's reports come to: measurements, parity reports, comparisons."""

from django.db import models

from farm.runs.models.block import Block
from farm.runs.models.cell import Arm
from farm.runs.models.run import Run


class Measurement(models.Model):
    """A metric of an arm, with its unit and direction. `low`, `high`: its interval where there is one."""

    arm = models.ForeignKey(Arm, models.CASCADE, related_name="measurements")
    metric = models.CharField(max_length=32)
    unit = models.CharField(max_length=16)
    lower_is_better = models.BooleanField(default=True)
    value = models.FloatField()
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    samples = models.JSONField(default=list)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["arm", "metric"], name="one_measurement_per_metric")]

    def __str__(self) -> str:
        return f"{self.metric} {self.value:g} {self.unit}"


class ParityReport(models.Model):
    """An arm's outputs against the reference. `outputs`: per-output differences."""

    arm = models.OneToOneField(Arm, models.CASCADE, related_name="parity_report")
    verdict = models.CharField(max_length=14)
    reference = models.CharField(max_length=200, blank=True)
    text = models.TextField(blank=True)
    atol = models.FloatField(null=True)
    rtol = models.FloatField(null=True)
    outputs = models.JSONField(default=list)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"parity {self.verdict}"


class CellDocument(models.Model):
    """An arm as the bench document has it, so that a document is put together without judging again.

    JSON texts, which are only ever parsed as a whole: `body` is all but its operators, which take most of the room and
    which few pages show.
    """

    arm = models.OneToOneField(Arm, models.CASCADE, related_name="document")
    body = models.TextField()
    operators = models.TextField(default="[]")

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"document of {self.arm}"


class Comparison(models.Model):
    """Two arms of one block, paired by round.

    `body` is the comparison as its own block says it, all but its operators, both JSON texts; `verdict` is what holds
    across the run once that is concluded.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="comparisons")
    block = models.ForeignKey(Block, models.CASCADE, related_name="comparisons")
    baseline = models.ForeignKey(Arm, models.CASCADE, related_name="+")
    candidate = models.ForeignKey(Arm, models.CASCADE, related_name="+")
    axis = models.CharField(max_length=64, blank=True)
    ratio = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    verdict = models.CharField(max_length=16)
    body = models.TextField(default="{}")
    operators = models.TextField(default="[]")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["baseline", "candidate"], name="one_comparison_per_pair")]
        indexes = [models.Index(fields=["run", "verdict"])]

    def __str__(self) -> str:
        return f"{self.axis}: {self.verdict}"
