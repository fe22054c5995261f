"""Immutable model bundles and their files."""

from django.db import models
from django.utils import timezone

from farm.accounts.models import OwnedQuerySet, Team
from farm.contract.cells import Bundle, FileRef
from farm.registry.models.blob import Blob
from farm.registry.states import BUNDLE_ROLES, FileRole


class ArtifactQuerySet(OwnedQuerySet["Artifact"]):
    """Queries for artifacts."""


class Artifact(models.Model):
    """An immutable set of files: a model with its external data, and optional reference data.

    `bundle` has the model and its external data alone, sorted by name. `blob_of` is the first file of a role, or None.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="artifacts")
    # digest of the bundle alone (farm.contract.cells.Bundle.digest), so that digests of cells do not depend on
    # reference data
    sha256 = models.CharField(max_length=64, db_index=True)
    # digest of the reference data; empty where there are none
    data_sha256 = models.CharField(max_length=64, blank=True, default="")
    main = models.CharField(max_length=128)
    bytes = models.PositiveBigIntegerField()
    # reference data as inspection accepted it, `.npz` by name; null where none was uploaded
    inputs = models.ForeignKey(Blob, models.PROTECT, null=True, blank=True, related_name="+")
    inputs_batch = models.PositiveIntegerField(null=True, blank=True)
    expected = models.ForeignKey(Blob, models.PROTECT, null=True, blank=True, related_name="+")
    # samples that static quantisation takes its ranges from, as accepted, or the problem of those that were uploaded
    calibration = models.ForeignKey(Blob, models.PROTECT, null=True, blank=True, related_name="+")
    calibration_samples = models.PositiveIntegerField(null=True, blank=True)
    calibration_problem = models.TextField(blank=True, default="")
    # token ids to generate from, as accepted, and their facts for planning
    prompts = models.ForeignKey(Blob, models.PROTECT, null=True, blank=True, related_name="+")
    prompts_json = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ArtifactQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["team", "sha256", "data_sha256"], name="one_artifact_per_team_and_digest")
        ]

    def __str__(self) -> str:
        return f"{self.main} {self.sha256[:12]}"

    @property
    def bundle(self) -> Bundle:
        files = (f.ref for f in self.files.all() if f.role in BUNDLE_ROLES)
        return Bundle(main=self.main, files=tuple(sorted(files, key=lambda ref: ref.name)))

    def files_of(self, role: FileRole) -> list["ArtifactFile"]:
        """Return the files of this role, sorted by name: one `.npz`, or ONNX's `test_data_set_N-input_M.pb`."""
        return sorted((f for f in self.files.all() if f.role == role), key=lambda file: file.name)

    def blob_of(self, role: FileRole) -> Blob | None:
        return next((file.blob for file in self.files_of(role)), None)


class ArtifactFile(models.Model):
    """A file of an artifact: its name in the artifact, its role and its content."""

    artifact = models.ForeignKey(Artifact, models.CASCADE, related_name="files")
    blob = models.ForeignKey(Blob, models.PROTECT, related_name="uses")
    name = models.CharField(max_length=128)
    role = models.CharField(max_length=12, choices=FileRole.choices)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["artifact", "name"], name="one_file_per_name")]

    def __str__(self) -> str:
        return f"{self.name} ({self.role})"

    @property
    def ref(self) -> FileRef:
        return FileRef(name=self.name, sha256=self.blob.sha256, bytes=self.blob.bytes)
