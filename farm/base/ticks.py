"""Ticks: what beat rings for every few seconds. Each runs once at a time, and when it last ended can be read.

That no two run at once keeps a slow tick from taking the threads of all others; nothing else rests on it. A tick may be
lost, or run twice on two machines: what it changes, it changes by conditional updates, and the database decides.
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
# a tick that has run for so long hangs on something (a connection that is half open): another may begin beside it
STUCK_AFTER_S: Final = 60.0

# sent with `name` and `took_s` after each tick that ran to its end; farm.accounts keeps the row
tick_ended = Signal()

_lock = threading.Lock()
# name → when the one that runs began, by the monotonic clock
_running: dict[str, float] = {}


def tick(name: str, *, stuck_after_s: float = STUCK_AFTER_S) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Makes a function a tick of that name: called while it runs, it does nothing; its end sends `tick_ended`."""

    def of(work: Callable[[], None]) -> Callable[[], None]:
        @functools.wraps(work)
        def once() -> None:
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

        return once

    return of


def run_duties(duties: Iterable[Callable[[], int]]) -> None:
    """Every duty of a tick; one that breaks is logged and does not keep the others from theirs."""
    for duty in duties:
        try:
            duty()
        except Exception:
            log.exception("%s broke in this tick; the next one tries again", duty.__name__)


def limit_concurrency(count: int) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Makes a task run so many times at once in a process: one beyond does nothing, and the tick rings for it again."""
    places = threading.BoundedSemaphore(count)

    def of(work: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(work)
        def once(*args: P.args, **words: P.kwargs) -> None:
            if places.acquire(blocking=False):
                try:
                    work(*args, **words)
                finally:
                    places.release()

        return once

    return of


def _begin(name: str, stuck_after_s: float) -> float | None:
    """When this one began; None while another runs."""
    now = time.monotonic()
    with _lock:
        before = _running.get(name)
        if before is not None and now - before < stuck_after_s:
            return None
        _running[name] = now
    if before is not None:
        log.error("%s has not ended for %.0f s; another begins beside it", name, now - before)
    return now
