"""Labelled data that came with a version, or was added to it later."""

from django.db import models

from farm.contract.cells import FileRef
from farm.contract.evaluation import EvaluationOrder, EvaluationRecipe
from farm.registry.models.artifact import Artifact
from farm.registry.models.blob import Blob
from farm.registry.models.model import Version
from farm.registry.models.products import Making
from farm.registry.states import MakingState


class EvaluationData(Making):
    """Inputs by name with their labels, and how outputs are judged: checked once, then sent to every node.

    New data for a version make a new row, so that a worker that still checks the old data cannot write to it.
    """

    version = models.OneToOneField(Version, models.CASCADE, related_name="evaluation")
    # the file as it was uploaded, and as the sandbox accepted it
    given = models.ForeignKey(Blob, models.PROTECT, related_name="+")
    data = models.ForeignKey(Blob, models.PROTECT, null=True, blank=True, related_name="+")
    recipe_json = models.JSONField(default=dict)
    output = models.CharField(max_length=200, blank=True, default="")
    samples = models.PositiveIntegerField(null=True, blank=True)
    classes = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["state", "asked_at"], name="evaluation_state_and_asked")]

    def __str__(self) -> str:
        return f"labelled data of {self.version}"

    @property
    def artifact(self) -> Artifact:
        return self.version.artifact

    @property
    def recipe(self) -> EvaluationRecipe:
        return EvaluationRecipe.model_validate(self.recipe_json)

    @property
    def order(self) -> EvaluationOrder | None:
        """The data as nodes get them; None until the sandbox has accepted them."""
        if self.state != MakingState.READY or self.data is None:
            return None
        ref = FileRef(name="evaluation.npz", sha256=self.data.sha256, bytes=self.data.bytes)
        return EvaluationOrder(data=ref, recipe=self.recipe)
