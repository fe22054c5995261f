"""Package indexes that an admin added to the default one, and the wheels that they were seen to offer."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.contract.blocks import WheelFile


class PackageIndex(models.Model):
    """A package index. `url` is the address of its simple pages, without a password."""

    name = models.CharField(max_length=10, unique=True)
    url = models.CharField(max_length=300)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class IndexedWheel(models.Model):
    """A wheel of an index, with the sha256 that it had when it was first seen, and the runtime version it holds."""

    index = models.ForeignKey(PackageIndex, models.CASCADE, related_name="wheels")
    distribution = models.CharField(max_length=64)
    version = models.CharField(max_length=32)
    name = models.CharField(max_length=200)
    url = models.CharField(max_length=1000)
    sha256 = models.CharField(max_length=64)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["index", "name"], name="one_row_per_wheel")]
        indexes = [models.Index(fields=["distribution", "version"])]

    def __str__(self) -> str:
        return f"{self.name} of {self.index}"

    @property
    def file(self) -> WheelFile:
        return WheelFile(name=self.name, url=self.url, sha256=self.sha256)
