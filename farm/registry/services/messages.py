"""Sends hints, the Celery messages that tell workers of a waiting row. A sweep or a tick sends lost hints again."""

import logging

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from farm.contract.version import PREPARE_QUEUE

log = logging.getLogger(__name__)
INSPECT = "registry.inspect_version"
MAKE_VARIANT = "registry.make_variant"
PREPARE = "registry.prepare_inputs"
CHECK_EVALUATION = "registry.check_evaluation"
REPORT_VARIANT = "registry.report_variant"
OUTLINE = "registry.make_outline"
WEB_RUNTIME = "registry.fetch_web_runtime"
# these tasks are in farm.runs and farm.alerts, which may not be imported here
MAKE_PLAN = "runs.make_plan"
DELIVER = "alerts.deliver"


def send_hint_on_commit(task: str, row_id: int, *, queue: str = PREPARE_QUEUE) -> None:
    transaction.on_commit(lambda: send_hint(task, row_id, queue=queue))


def send_hint(task: str, row_id: int, *, queue: str = PREPARE_QUEUE) -> None:
    """Send a task with the id of a row. If the broker does not answer, only log that: the hint is sent again later."""
    try:
        current_app.send_task(task, args=[row_id], queue=queue, retry=False)
    except (OperationalError, OSError) as problem:
        log.warning("could not send %s for row %s, the sweep will: %s", task, row_id, problem)
