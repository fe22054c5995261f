"""Beat: a thread of the worker, and when it ticks.

By the monotonic clock, so that a wall clock set back an hour does not stop the farm for an hour.

Celery compares the wall clock with when a task was last sent. These times are kept in memory alone
(celery.beat:Scheduler): after a reboot the monotonic clock starts anew, and a time kept in a file would lie ahead.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import click
from celery import Celery, bootsteps
from celery.schedules import schedule

SCHEDULER = "celery.beat:Scheduler"
_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)


def every(seconds: float) -> schedule:
    """So many seconds after the time before, whatever the wall clock does."""
    return schedule(run_every=timedelta(seconds=seconds), nowfun=_now)


class Beating(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
    """Beat in a thread of the worker that is started with --ticking.

    Celery's own --beat forks the worker: a second copy of it, 80 MB once its counters are written to, that sleeps.
    """

    conditional = True

    def __init__(self, worker: Any, *, ticking: bool = False, **words: Any) -> None:
        self.enabled = ticking
        super().__init__(worker, ticking=ticking, **words)

    def create(self, worker: Any) -> Any:
        # not above: every process of the farm reads this module for its schedule
        from celery.beat import EmbeddedService

        return EmbeddedService(worker.app, thread=True, scheduler_cls=SCHEDULER)


def let_beat(app: Celery) -> None:
    """Gives the app's workers the option --ticking."""
    steps, options = cast(Any, app).steps, cast(Any, app).user_options
    steps["worker"].add(Beating)
    options["worker"].add(click.Option(("--ticking",), is_flag=True, help="Beats too: exactly one of a farm."))


def _now() -> datetime:
    """A time of day that nobody sets; only differences of it mean anything."""
    return _BEGIN + timedelta(seconds=time.monotonic())
