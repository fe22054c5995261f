"""Uploads that arrive in pieces."""

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.accounts.models import Team
from farm.registry.models.model import Version

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

    from farm.accounts.models import User


class PartialUploadQuerySet(models.QuerySet["PartialUpload"]):
    """Queries for unfinished uploads."""

    def visible_to(self, user: "User | AnonymousUser") -> Self:
        """Filter to the uploads that the user began; other members of the team do not see them."""
        return self.filter(user=user) if user.is_authenticated else self.none()

    def not_expired(self) -> Self:
        return self.filter(expires_at__gt=timezone.now())


class PartialUpload(models.Model):
    """One file that is sent in pieces; farm.registry.partial_files writes its bytes.

    `is_whole`: all of its bytes have arrived.
    """

    key = models.CharField(max_length=43, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="partial_uploads")
    team = models.ForeignKey(Team, models.CASCADE, related_name="partial_uploads")
    name = models.CharField(max_length=200)
    # size of the whole file, and how much of it is on the disk
    bytes = models.PositiveBigIntegerField()
    offset = models.PositiveBigIntegerField(default=0)
    # the digest of the whole file as the sender announced it; empty where the sender did not
    sha256 = models.CharField(max_length=64, blank=True)
    # set once the file has become part of a version; the bytes then belong to the store
    version = models.ForeignKey(Version, models.CASCADE, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()

    objects = PartialUploadQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["expires_at"], name="partial_upload_expires")]

    def __str__(self) -> str:
        return f"{self.name}: {self.offset} of {self.bytes} bytes"

    @property
    def is_whole(self) -> bool:
        return self.offset == self.bytes
