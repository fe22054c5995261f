"""Cells of a run and their places in blocks."""

from django.db import models

from farm.contract.cells import CellSpec
from farm.contract.reasons import CellStatus, Reason
from farm.rules.planning.blocks import TWIN
from farm.runs.models.block import Block
from farm.runs.models.run import Beside, Run

STATUSES = [(status.value, status.value) for status in CellStatus]


# the name of a twin, which the farm adds itself, is its cell's name with this suffix
TWIN_SUFFIX = f".{TWIN}"


def match_arms(run: "Run | int", *names: str, of: str = "") -> models.Q:
    """Make the filter for the arms of a run with these names; `of` is the lookup path to the arm, such as `arm__`.

    The filter includes the names of their cells, since the index is on run and cell name. Many runs have a cell `c1`:
    by the names of arms alone, PostgreSQL would read millions of arms.
    """
    cells = {name.removesuffix(TWIN_SUFFIX) for name in names}
    return models.Q(
        (f"{of}cell__run", run), (f"{of}cell__name__in", sorted(cells)), (f"{of}name__in", sorted(set(names)))
    )


class Ending(models.Model):
    """How a cell or arm ended. While `status` is empty, it has not ended."""

    status = models.CharField(max_length=10, choices=STATUSES, blank=True, default="")
    reason_code = models.CharField(max_length=40, blank=True, default="")
    reason_text = models.TextField(blank=True, default="")

    class Meta:
        abstract = True

    @property
    def reason(self) -> Reason | None:
        """Why it has no result; None while it is open, or if it is done."""
        if not self.reason_code:
            return None
        return Reason.model_validate({"code": self.reason_code, "text": self.reason_text})


class Cell(Ending):
    """A point of the matrix, measured or refused.

    Many columns repeat parts of the spec, so that pages group and filter without parsing it.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="cells")
    # the version that the cell measures, if not the run's own; only pages of the run itself show such a cell
    beside = models.ForeignKey(Beside, models.CASCADE, null=True, blank=True, related_name="cells", db_index=False)
    number = models.PositiveIntegerField()
    # its id in the run
    name = models.CharField(max_length=32)
    digest = models.CharField(max_length=64)
    # a CellSpec
    spec_json = models.JSONField()
    # the indices of its values on the axes of the matrix, and these values in words
    positions = models.JSONField(default=dict)
    labels = models.JSONField(default=dict)
    variant = models.ForeignKey("registry.Variant", models.PROTECT, null=True, related_name="+")
    preparation = models.ForeignKey("registry.Preparation", models.PROTECT, null=True, related_name="+")
    # the trial of its provider that the cell waits for
    trial = models.ForeignKey("fleet.Trial", models.SET_NULL, null=True, blank=True, related_name="+")
    runtime = models.CharField(max_length=100)
    provider = models.CharField(max_length=64)
    batch = models.PositiveIntegerField(null=True)
    precision = models.CharField(max_length=20)
    opset = models.CharField(max_length=16, blank=True)
    threads = models.PositiveIntegerField(null=True)
    hardware = models.CharField(max_length=64)
    # a WayOut for a refused cell; null if none was known, or the cell was planned before 26 November 2026
    way_out = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ["run", "number"]
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="one_cell_per_name")]
        indexes = [
            models.Index(fields=["beside"], condition=models.Q(beside__isnull=False), name="cells_of_other_versions")
        ]

    def __str__(self) -> str:
        return f"cell {self.name} of {self.run}"

    @property
    def spec(self) -> CellSpec:
        return CellSpec.model_validate(self.spec_json)


class Arm(Ending):
    """A place in a block: a cell, or its A/A twin. What it measured is only in its CellDocument."""

    block = models.ForeignKey(Block, models.CASCADE, related_name="arms")
    cell = models.ForeignKey(Cell, models.CASCADE, related_name="arms")
    number = models.PositiveSmallIntegerField()
    # unique in the run
    name = models.CharField(max_length=40)
    # the number of the arm that it repeats; None for a cell itself
    twin_of = models.PositiveSmallIntegerField(null=True, blank=True)
    # whether it has an accuracy on labelled data
    is_evaluated = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ["block", "number"]
        constraints = [models.UniqueConstraint(fields=["block", "number"], name="one_arm_per_number")]
        indexes = [models.Index(fields=["block"], condition=models.Q(is_evaluated=True), name="evaluated_arms")]

    def __str__(self) -> str:
        return f"arm {self.number} of {self.block}"
