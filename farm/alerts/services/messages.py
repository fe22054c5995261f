"""Hints to the worker that sends messages. The rows are the outbox: the tick repeats a hint that was lost."""

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
    """Ask a worker to send a message now. Where the broker is away, the tick asks again later."""
    try:
        current_app.send_task(DELIVER, args=[delivery_id], queue=DELIVERY_QUEUE, retry=False)
    except (OperationalError, OSError) as problem:
        log.warning("could not ask for delivery %s, the tick will: %s", delivery_id, problem)
