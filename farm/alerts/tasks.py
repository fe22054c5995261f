"""The watches' tick: what is due is noticed, measured, judged, looked into and told. Missing one costs seconds."""

import logging
from collections.abc import Callable

from celery import shared_task
from django.db import close_old_connections

from farm.alerts.services import causes, delivering, digests, index, investigating, judging, resolving

log = logging.getLogger(__name__)
DUTIES: tuple[Callable[[], int], ...] = (
    causes.notice_releases,
    causes.notice_versions,
    causes.notice_schedules,
    judging.advance_rounds,
    investigating.advance_investigations,
    resolving.wake_due_alerts,
    digests.send_due_digests,
    delivering.ring_due,
)


@shared_task(name="alerts.tick")  # type: ignore[untyped-decorator]
def tick() -> None:
    """Every duty; one that breaks is logged and does not keep the others from theirs."""
    for duty in DUTIES:
        try:
            duty()
        except Exception:
            log.exception("%s broke in this tick; the next one tries again", duty.__name__)


@shared_task(name="alerts.look_for_releases")  # type: ignore[untyped-decorator]
def look_for_releases() -> None:
    """Asks the package index where that is due."""
    index.look_if_due()


@shared_task(name="alerts.deliver")  # type: ignore[untyped-decorator]
def deliver(delivery_id: int) -> None:
    """Sends one message of the outbox."""
    delivering.deliver(delivery_id)
    close_old_connections()
