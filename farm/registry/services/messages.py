"""Sends hints by which the `prepare` workers learn of a waiting row. The sweep sends a lost hint again."""

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
# this task is in farm.runs, which may not be imported here
MAKE_PLAN = "runs.make_plan"


def send_hint_on_commit(task: str, row_id: int) -> None:
    transaction.on_commit(lambda: send_hint(task, row_id))


def send_hint(task: str, row_id: int) -> None:
    """Send a task that names a row. Where the broker does not answer it is only logged: the sweep sends it again."""
    try:
        current_app.send_task(task, args=[row_id], queue=PREPARE_QUEUE, retry=False)
    except (OperationalError, OSError) as problem:
        log.warning("could not send %s for row %s, the sweep will: %s", task, row_id, problem)
