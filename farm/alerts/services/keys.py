"""Signing secrets of webhooks: derived from the farm's secret key and the channel's salt, so that no row holds one."""

from django.utils.crypto import salted_hmac

from farm.alerts.models import Channel


def signing_secret(channel: Channel) -> bytes:
    """32 bytes; another salt, or another key of the farm, makes another secret."""
    return salted_hmac("farm.alerts.webhook", channel.salt, algorithm="sha256").digest()
