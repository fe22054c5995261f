"""Deletes expired browser sessions, without importing the modules of sign-in, which take 7 MB of memory."""

from typing import Final

from django.contrib.sessions.models import Session
from django.utils import timezone

MAX_AT_ONCE: Final = 1_000


def delete_expired_sessions() -> int:
    """Delete sessions that have expired, MAX_AT_ONCE at most; return how many."""
    expired = Session.objects.filter(expire_date__lt=timezone.now()).order_by("expire_date")
    keys = list(expired.values_list("pk", flat=True)[:MAX_AT_ONCE])
    return Session.objects.filter(pk__in=keys).delete()[0] if keys else 0
