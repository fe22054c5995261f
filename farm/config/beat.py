"""When beat ticks: by the monotonic clock, so that a wall clock set back an hour does not stop the farm for an hour.

Celery compares the wall clock with when a task was last sent. These times are kept in memory alone
(celery.beat:Scheduler): after a reboot the monotonic clock starts anew, and a time kept in a file would lie ahead.
"""

import time
from datetime import UTC, datetime, timedelta

from celery.schedules import schedule

SCHEDULER = "celery.beat:Scheduler"
_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)


def every(seconds: float) -> schedule:
    """So many seconds after the time before, whatever the wall clock does."""
    return schedule(run_every=timedelta(seconds=seconds), nowfun=_now)


def _now() -> datetime:
    """A time of day that nobody sets; only differences of it mean anything."""
    return _BEGIN + timedelta(seconds=time.monotonic())
