"""A release of ONNX Runtime Web that the farm fetched from npm for browsers that are nodes."""

from django.db import models

from farm.accounts.models import Team
from farm.contract.cells import FileRef
from farm.registry.models.products import Making


class WebRuntime(Making):
    """A release of ONNX Runtime Web. Its files belong to no team: they are what npm gives everybody."""

    version = models.CharField(max_length=32, unique=True)
    # the package's digest as npm writes it
    integrity = models.CharField(max_length=200, blank=True)
    # the files that browsers load; empty until they are fetched
    files_json = models.JSONField(default=list)
    # the team whose run first asked for it; None for releases that the farm knows by itself
    team = models.ForeignKey(Team, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["state", "asked_at"], name="web_runtime_state_and_asked")]

    def __str__(self) -> str:
        return f"onnxruntime-web {self.version}"

    @property
    def files(self) -> tuple[FileRef, ...]:
        return tuple(FileRef.model_validate(file) for file in self.files_json)
