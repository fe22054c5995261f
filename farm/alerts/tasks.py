"""Celery tasks of watches and alerts. The tick opens rounds, advances searches and queues messages.

A missed tick only delays that by seconds.
"""

from collections.abc import Callable
from typing import Final

from celery import shared_task
from django.db import close_old_connections

from farm.alerts.services import causes, deliveries, digests, finds, index, investigations, judgements, openings
from farm.base.ticks import limit_concurrency, run_duties
from farm.base.ticks import tick as ticking

# deliveries of a process at the same time; receivers that hang must leave threads for the ticks
MAX_CONCURRENT_DELIVERIES: Final = 4
DUTIES: tuple[Callable[[], int], ...] = (
    causes.open_release_rounds,
    causes.open_version_rounds,
    causes.open_scheduled_rounds,
    judgements.advance_rounds,
    investigations.advance_investigations,
    finds.advance_finds,
    openings.wake_due_alerts,
    digests.send_due_digests,
    deliveries.send_due_hints,
)


@shared_task(name="alerts.tick")  # type: ignore[untyped-decorator]
@ticking("alerts.tick")
def tick() -> None:
    run_duties(DUTIES)


@shared_task(name="alerts.look_for_releases")  # type: ignore[untyped-decorator]
@ticking("alerts.look_for_releases")
def look_for_releases() -> None:
    index.poll_due_indexes()


@shared_task(name="alerts.deliver")  # type: ignore[untyped-decorator]
@limit_concurrency(MAX_CONCURRENT_DELIVERIES)
def deliver(delivery_id: int) -> None:
    """Send one message of the outbox."""
    try:
        deliveries.deliver(delivery_id)
    finally:
        close_old_connections()
