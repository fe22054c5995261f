"""Secrets that authenticate a person without a password: tokens for programs, one-time links for browsers.

Only SHA-256 digests are stored; 256 random bits need no slow hash.
"""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone


class Token(models.Model):
    """A bearer token of a person."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100, blank=True)
    # the public beginning, which tells tokens apart on a page
    hint = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    # the only team whose models the token may gate; None for other tokens
    team = models.ForeignKey("accounts.Team", models.CASCADE, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.hint}… of {self.user}"

    @property
    def is_valid(self) -> bool:
        """Whether it is neither revoked, expired nor dormant, and the account of its person is active."""
        return (
            not self.is_dormant and self.revoked_at is None and self.expires_at > timezone.now() and self.user.is_active
        )

    @property
    def is_dormant(self) -> bool:
        """Whether the person last signed in through the identity provider more than `token_days` ago.

        The token is refused until they sign in again, so that tokens of people who have left stop working. False for a
        person who has never signed in that way, and on a farm without a provider.
        """
        provider, vouched = settings.OPENID, self.user.vouched_at
        if provider is None or vouched is None:
            return False
        return bool(timezone.now() - vouched > timedelta(days=provider.token_days))


class SignInLink(models.Model):
    """A link that signs a person in once, before it expires.

    An emergency link is made on the farm's own machine while the identity provider is away. It works where other links
    are refused.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="sign_in_links")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    is_emergency = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"sign-in link of {self.user}"
