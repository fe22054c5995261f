"""A stored file of a team, known by its digest. The bytes lie in the store; see farm.registry.storage."""

from django.db import models
from django.utils import timezone

from farm.accounts.models import Team


class Blob(models.Model):
    """A stored file. A team stores the same content once; two teams never share a file.

    With `swept_at` its bytes were deleted together with a branch's version; the row stays for the runs that used it.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="blobs")
    sha256 = models.CharField(max_length=64, db_index=True)
    bytes = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    swept_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["team", "sha256"], name="one_blob_per_team_and_digest")]

    def __str__(self) -> str:
        return f"{self.sha256[:12]} ({self.bytes} bytes)"
