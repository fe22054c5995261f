"""Hints to the worker that tells channels. The rows are the outbox: a hint that is lost is sent again by the tick."""

import logging

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from farm.contract.version import DELIVERY_QUEUE

log = logging.getLogger(__name__)
DELIVER = "alerts.deliver"


def hint_delivery(delivery_id: int) -> None:
    transaction.on_commit(lambda: send_hint(delivery_id))


def send_hint(delivery_id: int) -> None:
    """Ring now. A broker that is away costs time, never the message."""
    try:
        current_app.send_task(DELIVER, args=[delivery_id], queue=DELIVERY_QUEUE, retry=False)
    except (OperationalError, OSError) as problem:
        log.warning("could not ring for delivery %s, the tick will: %s", delivery_id, problem)
