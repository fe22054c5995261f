"""Celery's beat as a thread of a worker, scheduled by the monotonic clock.

So a wall clock that is set back an hour does not stop the farm for an hour: Celery itself compares the wall clock with
when a task was last sent. Those times are held in memory only (celery.beat:Scheduler): after a reboot the monotonic
clock starts anew, and a time read from a file would lie in the future.
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
    """Make a Celery schedule with this period, which ignores changes of the wall clock."""
    return schedule(run_every=timedelta(seconds=seconds), nowfun=_now)


class BeatThread(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
    """Worker step that runs beat in a thread of a worker started with --ticking.

    Celery's own --beat forks the worker instead, which costs 80 MB of memory for a process that sleeps.
    """

    conditional = True

    def __init__(self, worker: Any, *, ticking: bool = False, **words: Any) -> None:
        self.enabled = ticking
        super().__init__(worker, ticking=ticking, **words)

    def create(self, worker: Any) -> Any:
        """Make the service that the step starts and stops: beat in a thread, with its times in memory."""
        # not imported above: every process of the farm imports this module for its schedule
        from celery.beat import EmbeddedService

        return EmbeddedService(worker.app, thread=True, scheduler_cls=SCHEDULER)


def add_ticking_option(app: Celery) -> None:
    """Add the option --ticking to the app's workers; it starts BeatThread."""
    steps, options = cast(Any, app).steps, cast(Any, app).user_options
    steps["worker"].add(BeatThread)
    options["worker"].add(click.Option(("--ticking",), is_flag=True, help="Beats too: exactly one of a farm."))


def _now() -> datetime:
    """Return the monotonic clock as a datetime; only differences mean anything."""
    return _BEGIN + timedelta(seconds=time.monotonic())
