"""The results of settled blocks: cells and comparisons as the bench document has them. Each figure is stored once."""

from django.db import models

from farm.runs.models.block import Block
from farm.runs.models.cell import Arm
from farm.runs.models.run import Run


class CellDocument(models.Model):
    """An arm as the bench document has it, so that documents are made without judging the reports again.

    An arm's figures (farm.rules.cells.metrics), samples and parity are stored only here.
    """

    arm = models.OneToOneField(Arm, models.CASCADE, related_name="document")
    # JSON text of all but the operators
    body = models.TextField()
    # JSON text; it takes most of the space, and few pages show it
    operators = models.TextField(default="[]")

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"document of {self.arm}"


class Comparison(models.Model):
    """A comparison of two arms of one block, paired by round."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="comparisons")
    block = models.ForeignKey(Block, models.CASCADE, related_name="comparisons")
    baseline = models.ForeignKey(Arm, models.CASCADE, related_name="+")
    candidate = models.ForeignKey(Arm, models.CASCADE, related_name="+")
    axis = models.CharField(max_length=64, blank=True)
    # whether it counts among the hypotheses that the run tests
    is_tested = models.BooleanField(default=False, db_default=False)
    # once the run is concluded, the verdict that holds among all of its comparisons
    verdict = models.CharField(max_length=16)
    # JSON texts of the comparison as its own block judged it
    body = models.TextField(default="{}")
    operators = models.TextField(default="[]")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["baseline", "candidate"], name="one_comparison_per_pair")]
        indexes = [models.Index(fields=["run", "verdict"])]

    def __str__(self) -> str:
        return f"{self.axis}: {self.verdict}"
