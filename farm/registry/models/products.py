"""Rows that `prepare` workers make, once for each digest: variants, inputs and reference outputs, outlines, reports."""

from django.db import models
from django.utils import timezone

from farm.contract.cells import Bundle, FileRef, Recipe, Workload
from farm.contract.reasons import Reason
from farm.registry.models.artifact import Artifact
from farm.registry.models.blob import Blob
from farm.registry.states import MakingState


class Making(models.Model):
    """The base of rows that a `prepare` worker makes: pending → making → ready, or failed with a reason.

    `is_finished` is True for ready and failed rows.
    """

    state = models.CharField(max_length=8, choices=MakingState.choices, default=MakingState.PENDING)
    reason_code = models.CharField(max_length=40, blank=True)
    reason_text = models.TextField(blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    asked_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        abstract = True

    @property
    def is_finished(self) -> bool:
        return self.state in (MakingState.READY, MakingState.FAILED)

    @property
    def reason(self) -> Reason | None:
        """Why it failed; None unless it did."""
        if self.state != MakingState.FAILED:
            return None
        return Reason.model_validate({"code": self.reason_code, "text": self.reason_text})


class Variant(Making):
    """An artifact derived from another by a recipe; with the identity recipe it is the artifact itself.

    `bundle` has the files of the derived artifact; None until it is made.
    """

    artifact = models.ForeignKey(Artifact, models.CASCADE, related_name="variants")
    recipe_json = models.JSONField()
    recipe_sha256 = models.CharField(max_length=64)
    derived = models.ForeignKey(Artifact, models.PROTECT, null=True, blank=True, related_name="derived_by")
    # the steps of the conversion, in sentences, and the inspection of the derived model
    history = models.JSONField(default=list)
    inspection = models.JSONField(null=True, blank=True)
    # for an 8-bit variant, how many operators of each kind there are, and which of them still read floats
    coverage = models.JSONField(default=list)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["artifact", "recipe_sha256"], name="one_variant_per_recipe")]
        indexes = [models.Index(fields=["state", "asked_at"])]

    def __str__(self) -> str:
        return f"{self.artifact} as {self.recipe_json}"

    @property
    def recipe(self) -> Recipe:
        return Recipe.model_validate(self.recipe_json)

    @property
    def bundle(self) -> Bundle | None:
        return self.derived.bundle if self.derived else None


class VariantReport(Making):
    """What quantisation did to a variant: errors by tensor, scales by weight. It is made only when ordered."""

    variant = models.OneToOneField(Variant, models.CASCADE, related_name="report")
    report_json = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["state", "asked_at"], name="report_state_and_asked")]

    def __str__(self) -> str:
        return f"report on {self.variant}"

    @property
    def artifact(self) -> Artifact:
        return self.variant.artifact


class Outline(Making):
    """An artifact's graph without its large tensors, for a picture of it."""

    artifact = models.OneToOneField(Artifact, models.CASCADE, related_name="outline")
    blob = models.ForeignKey(Blob, models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["state", "asked_at"], name="outline_state_and_asked")]

    def __str__(self) -> str:
        return f"outline of {self.artifact}"


class Preparation(Making):
    """The inputs of an artifact for a workload, and the reference outputs that they should give.

    `inputs_ref` and `reference_ref` are their files for nodes; None where they are not made.
    """

    artifact = models.ForeignKey(Artifact, models.CASCADE, related_name="preparations")
    workload_json = models.JSONField()
    workload_sha256 = models.CharField(max_length=64)
    inputs = models.ForeignKey(Blob, models.PROTECT, null=True, blank=True, related_name="+")
    reference = models.ForeignKey(Blob, models.PROTECT, null=True, blank=True, related_name="+")
    # "expected" for uploaded outputs, or the runtime that made the reference
    reference_of = models.CharField(max_length=100, blank=True)
    # why there is no reference, or none for some outputs, whose parity is not measured then; empty: all is well
    reference_problem = models.TextField(blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["artifact", "workload_sha256"], name="one_preparation_per_workload")
        ]
        indexes = [models.Index(fields=["state", "asked_at"])]

    def __str__(self) -> str:
        return f"inputs of {self.artifact} for {self.workload_json}"

    @property
    def workload(self) -> Workload:
        return Workload.model_validate(self.workload_json)

    @property
    def inputs_ref(self) -> FileRef | None:
        return _npz("inputs.npz", self.inputs)

    @property
    def reference_ref(self) -> FileRef | None:
        return _npz("reference.npz", self.reference)


def _npz(name: str, blob: Blob | None) -> FileRef | None:
    return FileRef(name=name, sha256=blob.sha256, bytes=blob.bytes) if blob else None
