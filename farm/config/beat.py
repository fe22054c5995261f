"""Runs Celery's beat in a thread of a worker, with schedules on the monotonic clock.

By default, Celery compares the wall clock with the time at which a task was last sent: if the wall clock were set back
an hour, the farm would do nothing for an hour.

The times of the last tasks are only stored in memory (celery.beat:Scheduler). The monotonic clock starts again after a
reboot, so times from a file would be in the future.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import click
from celery import Celery, bootsteps
from celery.schedules import schedule

SCHEDULER = "celery.beat:Scheduler"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def every(seconds: float) -> schedule:
    return schedule(run_every=timedelta(seconds=seconds), nowfun=_now)


class BeatThread(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
    """A step of Celery workers that runs beat in a thread, if the worker is started with --ticking.

    Celery's own option --beat forks the worker, and the forked process takes 80 MB of memory to sleep.
    """

    conditional = True

    def __init__(self, worker: Any, *, ticking: bool = False, **words: Any) -> None:
        self.enabled = ticking
        super().__init__(worker, ticking=ticking, **words)

    def create(self, worker: Any) -> Any:
        """Return the service that the step starts and stops: beat in a thread."""
        # imported here, because every process of the farm imports this module for `every`
        from celery.beat import EmbeddedService

        return EmbeddedService(worker.app, thread=True, scheduler_cls=SCHEDULER)


def add_ticking_option(app: Celery) -> None:
    """Add the option --ticking, which starts BeatThread, to the app's workers."""
    steps, options = cast(Any, app).steps, cast(Any, app).user_options
    steps["worker"].add(BeatThread)
    options["worker"].add(click.Option(("--ticking",), is_flag=True, help="Run beat too: only one worker of a farm."))


def _now() -> datetime:
    # only differences of these times mean anything
    return _EPOCH + timedelta(seconds=time.monotonic())
