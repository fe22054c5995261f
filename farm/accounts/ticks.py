"""Stores when each periodic task of farm.base.ticks last finished, and how long ago that was."""

import logging

from django.db import DatabaseError, IntegrityError
from django.utils import timezone

from farm.accounts.models import Tick

log = logging.getLogger(__name__)


def note_tick(*, name: str, took_s: float, **_: object) -> None:
    """Store that the task `name` has just finished. A failure to write the row is logged. Handles `tick_ended`."""
    values = {"ended_at": timezone.now(), "took_s": took_s}
    try:
        if not Tick.objects.filter(name=name).update(**values):
            Tick.objects.create(name=name, **values)
    except IntegrityError:
        return  # another machine's tick was the first of its name
    except DatabaseError as problem:
        log.warning("could not note that %s ended: %s", name, problem)


def tick_ages_s() -> dict[str, float]:
    now = timezone.now()
    return {tick.name: max(0.0, (now - tick.ended_at).total_seconds()) for tick in Tick.objects.order_by("name")}
