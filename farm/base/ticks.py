"""Ticks: functions that Celery's beat calls every few seconds. A process runs each of them once at a time.

This keeps a slow tick from occupying the threads of all others; nothing else depends on it. A tick may be lost, or run
on two machines at once, because it changes rows by conditional updates only.
"""

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final, ParamSpec

from django.dispatch import Signal

P = ParamSpec("P")
log = logging.getLogger(__name__)
# a tick that has run for this time hangs, for example on a half-open connection, and another may begin beside it
STUCK_AFTER_S: Final = 60.0

# sent with `name` and `took_s` after each tick that ran to its end; farm.accounts keeps the row
tick_ended = Signal()

_lock = threading.Lock()
# name of a running tick → when it began, by the monotonic clock
_running: dict[str, float] = {}


def tick(name: str, *, stuck_after_s: float = STUCK_AFTER_S) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Decorate a function as the tick of that name: a call does nothing while another one runs in this process.

    Sends `tick_ended` after it has returned, but not where it raises. A call that has run for `stuck_after_s` seconds
    counts as hung, which the log says, and no longer keeps others from running.
    """

    def decorate(work: Callable[[], None]) -> Callable[[], None]:
        @functools.wraps(work)
        def run_once() -> None:
            began = _begin(name, stuck_after_s)
            if began is None:
                return
            try:
                work()
            finally:
                with _lock:
                    # a tick that hung may end while its successor runs
                    if _running.get(name) == began:
                        del _running[name]
            tick_ended.send(sender=None, name=name, took_s=time.monotonic() - began)

        return run_once

    return decorate


def run_duties(duties: Iterable[Callable[[], int]]) -> None:
    """Call every duty of a tick in turn; a duty that raises is logged, and the others are still called.

    The numbers that they return are not used.
    """
    for duty in duties:
        try:
            duty()
        except Exception:
            log.exception("%s broke in this tick; the next one tries again", duty.__name__)


def limit_concurrency(count: int) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Decorate a function so that at most `count` calls run at once in a process; further calls return at once."""
    places = threading.BoundedSemaphore(count)

    def decorate(work: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(work)
        def run_if_free(*args: P.args, **keywords: P.kwargs) -> None:
            if places.acquire(blocking=False):
                try:
                    work(*args, **keywords)
                finally:
                    places.release()

        return run_if_free

    return decorate


def _begin(name: str, stuck_after_s: float) -> float | None:
    """Note that a tick begins, and return when; None while another of that name runs."""
    now = time.monotonic()
    with _lock:
        before = _running.get(name)
        if before is not None and now - before < stuck_after_s:
            return None
        _running[name] = now
    if before is not None:
        log.error("%s has not ended for %.0f s; another begins beside it", name, now - before)
    return now
