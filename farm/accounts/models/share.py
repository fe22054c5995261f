"""Public links, which expire. Only a link's SHA-256 digest is stored."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.accounts.states import ShareKind


class Share(models.Model):
    """A public link to one page, which shows what the link's creator may see there at that moment, and no more."""

    team = models.ForeignKey("accounts.Team", models.CASCADE, related_name="shares")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="shares")
    kind = models.CharField(max_length=10, choices=ShareKind.choices)
    # a run `12`, a cell `12:c5`, a model `7` (as a page or across hardware), or cells `12:c1,12:c5`
    subject = models.CharField(max_length=400)
    title = models.CharField(max_length=200)
    hint = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_opened_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"share of {self.title}"

    @property
    def by(self) -> str:
        """The user name of the link's creator."""
        return self.created_by.username

    @property
    def is_open(self) -> bool:
        """Whether it is neither revoked nor expired, and its creator's account is active."""
        return self.revoked_at is None and self.expires_at > timezone.now() and self.created_by.is_active
