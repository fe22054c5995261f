"""What a block's reports come to: cells and comparisons as documents have them. Each figure stands here once."""

from django.db import models

from farm.runs.models.block import Block
from farm.runs.models.cell import Arm
from farm.runs.models.run import Run


class CellDocument(models.Model):
    """An arm as the bench document has it, so that a document is put together without judging again.

    The one place of an arm's figures (farm.rules.cells.metrics), samples and parity. JSON texts, which are only ever
    parsed as a whole: `body` is all but its operators, which take most of the room and which few pages show.
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
    across the run once that is concluded. `is_tested`: it is one of the hypotheses that the run's verdicts allow for.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="comparisons")
    block = models.ForeignKey(Block, models.CASCADE, related_name="comparisons")
    baseline = models.ForeignKey(Arm, models.CASCADE, related_name="+")
    candidate = models.ForeignKey(Arm, models.CASCADE, related_name="+")
    axis = models.CharField(max_length=64, blank=True)
    is_tested = models.BooleanField(default=False, db_default=False)
    verdict = models.CharField(max_length=16)
    body = models.TextField(default="{}")
    operators = models.TextField(default="[]")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["baseline", "candidate"], name="one_comparison_per_pair")]
        indexes = [models.Index(fields=["run", "verdict"])]

    def __str__(self) -> str:
        return f"{self.axis}: {self.verdict}"
