"""Questions about measured cells: where in the model their outputs begin to differ from another cell's."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.contract.divergence import DivergenceDocument
from farm.registry.models import Blob
from farm.runs.models.cell import Arm
from farm.runs.states import OPEN_BLOCKS, DivergenceState


class Divergence(models.Model):
    """A question: where an arm begins to differ from another arm, or from the CPU without optimisations.

    `is_open` is true while it waits for an answer and its block is open, so that the node can still answer. `document`
    is the answer, or None.
    """

    arm = models.ForeignKey(Arm, models.CASCADE, related_name="divergences")
    # the other arm; None means the CPU without optimisations
    against = models.ForeignKey(Arm, models.CASCADE, null=True, blank=True, related_name="+")
    state = models.CharField(max_length=8, choices=DivergenceState.choices, default=DivergenceState.ASKED)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    asked_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    # the answer: a farm.contract.divergence.DivergenceDocument as JSON text
    body = models.TextField(blank=True, default="")
    # why there is no answer
    problem = models.TextField(blank=True, default="")
    # a zip with the part of the model that shows the difference
    part = models.ForeignKey(Blob, models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["arm", "against"], name="one_divergence_per_pair"),
            models.UniqueConstraint(fields=["arm"], condition=models.Q(against=None), name="one_divergence_per_arm"),
        ]

    def __str__(self) -> str:
        return f"divergence of {self.arm}"

    @property
    def document(self) -> DivergenceDocument | None:
        return DivergenceDocument.model_validate_json(self.body) if self.body else None

    @property
    def is_open(self) -> bool:
        return self.state == DivergenceState.ASKED and self.arm.block.state in OPEN_BLOCKS

    @property
    def words(self) -> str:
        """The answer in a sentence, or why there is none: the problem, or that the node has not answered."""
        found = self.document
        if found is not None:
            return found.sentence
        if self.problem:
            return self.problem
        return "Waiting for the node." if self.is_open else "The node did not answer: try again."
