"""Browsers' sessions that are over. Apart from how people sign in, whose modules take 7 MB of memory."""

from typing import Final

from django.contrib.sessions.models import Session
from django.utils import timezone

CLEARED_AT_ONCE: Final = 1_000


def clear_ended() -> int:
    """Deletes sessions that are over, some at a time; answers how many."""
    ended = Session.objects.filter(expire_date__lt=timezone.now()).order_by("expire_date")
    keys = list(ended.values_list("pk", flat=True)[:CLEARED_AT_ONCE])
    return Session.objects.filter(pk__in=keys).delete()[0] if keys else 0
