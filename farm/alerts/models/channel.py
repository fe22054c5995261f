"""Channels to which messages are sent, and the outbox of messages."""

import base64
import secrets

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac

from farm.accounts.models import OwnedQuerySet, Team
from farm.alerts.models.alert import AlertEvent
from farm.alerts.states import DeliveryState, DigestEvery


class ChannelQuerySet(OwnedQuerySet["Channel"]):
    """Queries for channels."""


def new_salt() -> str:
    return secrets.token_urlsafe(32)


class Channel(models.Model):
    """An address to which a team's messages are sent. `secret` signs them.

    A new `salt`, or a new secret key of the farm, makes it another one.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="channels")
    name = models.CharField(max_length=100)
    # the name of a ChannelKind of farm.alerts.channels
    kind = models.CharField(max_length=32)
    # the address, which may hold secrets; pages show it only as its kind allows
    target = models.CharField(max_length=1000)
    # the signing secret is derived from it, so that no row holds the secret
    salt = models.CharField(max_length=64, default=new_salt, editable=False)
    digest = models.CharField(max_length=5, choices=DigestEvery.choices, default=DigestEvery.NEVER)
    digest_at = models.DateTimeField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ChannelQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="one_channel_per_team_and_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def secret(self) -> str:
        # a new salt, or a new secret key of the farm, changes the secret
        secret = salted_hmac("farm.alerts.webhook", self.salt, algorithm="sha256").digest()
        return "whsec_" + base64.b64encode(secret).decode()


class Delivery(models.Model):
    """A message to a channel, written in the transaction that accepts its cause."""

    channel = models.ForeignKey(Channel, models.CASCADE, related_name="deliveries")
    # identifies the cause of the message, so that a channel gets a message about it once
    cause = models.CharField(max_length=100)
    event = models.ForeignKey(AlertEvent, models.CASCADE, null=True, related_name="deliveries")
    # the same at every try, so that receivers can drop repetitions
    message_id = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=300)
    text = models.TextField()
    payload = models.JSONField(default=dict)
    state = models.CharField(max_length=8, choices=DeliveryState.choices, default=DeliveryState.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(default=timezone.now)
    problem = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["channel", "cause"], name="one_delivery_per_cause")]
        indexes = [models.Index(fields=["state", "due_at"])]

    def __str__(self) -> str:
        return f"{self.kind} to {self.channel}"

    def end_try(self, state: DeliveryState, **changes: object) -> bool:
        """Move from sending to sent, waiting or failed, in the database only, and write the columns `changes` too.

        Return False, with nothing written, where another try has begun since.
        """
        mine = Delivery.objects.filter(pk=self.pk, state=DeliveryState.SENDING, tries=self.tries)
        return bool(mine.update(state=state, **changes))
