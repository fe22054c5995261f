"""A thread that runs calls one after another, those of the highest priority first.

Several threads that query a database through one interpreter slow each other down. Each query releases the interpreter
and waits up to a switch interval to get it back, and SQLite lets writers of one process wait in steps that grow to a
tenth of a second, in no order. A single thread does not wait, and we can choose its order.
"""

import itertools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from enum import IntEnum
from typing import Generic, TypeVar

T = TypeVar("T")


class Priority(IntEnum):
    """The lower number runs first; among calls of equal priority, the one that came first."""

    LEASE = 0
    REPORT = 1
    OTHER = 2
    # calls of machines that have no secret yet
    STRANGER = 3
    STOP = 4


class PriorityThread(Generic[T]):
    """The thread and the calls that wait for it. `prepare` is called in the thread before any of them.

    `stop` ends the thread once the calls that wait have run, and does not wait for it; a later call never runs.
    """

    def __init__(self, name: str, prepare: Callable[[], None]) -> None:
        self._prepare = prepare
        self._numbers = itertools.count()
        self._waiting: queue.PriorityQueue[tuple[Priority, int, Callable[[], T] | None, Future[T]]]
        self._waiting = queue.PriorityQueue()
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def submit(self, priority: Priority, call: Callable[[], T]) -> Future[T]:
        """Queue a call. The future has its result, or the exception that it raised, once its turn has come."""
        answer: Future[T] = Future()
        self._waiting.put((priority, next(self._numbers), call, answer))
        return answer

    def stop(self) -> None:
        self._waiting.put((Priority.STOP, next(self._numbers), None, Future()))

    def _serve(self) -> None:
        self._prepare()
        while True:
            _, _, call, answer = self._waiting.get()
            if call is None:
                return
            if answer.set_running_or_notify_cancel():
                _run_call(answer, call)


def _run_call(answer: Future[T], call: Callable[[], T]) -> None:
    try:
        value = call()
    except BaseException as problem:  # the future carries it to the caller, as a library's executor does
        answer.set_exception(problem)
    else:
        answer.set_result(value)
