"""The gateway's one thread: pressing calls first, equals in order, a mistake is the caller's to hear."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from farm.gateway.priority_queue import Priority, PriorityThread

SOON_S = 10.0


class Held:
    """PriorityThread whose thread is busy until it is let go, so that calls wait."""

    def __init__(self) -> None:
        self.prepared_in: list[str] = []
        self.queue: PriorityThread[str] = PriorityThread(
            "turns-test", lambda: self.prepared_in.append(threading.current_thread().name)
        )
        self._go = threading.Event()
        began = threading.Event()
        self._first = self.queue.submit(Priority.OTHER, lambda: self._hold(began))
        assert began.wait(SOON_S)

    def let_go(self) -> None:
        self._go.set()
        assert self._first.result(SOON_S) == "held"

    def _hold(self, began: threading.Event) -> str:
        began.set()
        assert self._go.wait(SOON_S)
        return "held"


@pytest.fixture
def held() -> Iterator[Held]:
    made = Held()
    yield made
    made.let_go()
    made.queue.stop()


def test_leases_go_before_what_came_earlier_and_equals_keep_their_order(held: Held) -> None:
    said: list[str] = []

    def say(word: str) -> str:
        said.append(word)
        return word

    def call(word: str) -> Future[str]:
        priority = Priority.LEASE if word.startswith("lease") else Priority.OTHER
        return held.queue.submit(priority, lambda: say(word))

    answers = [call(word) for word in ("report 1", "report 2", "lease 1", "report 3", "lease 2")]
    held.let_go()
    assert [answer.result(SOON_S) for answer in answers] == ["report 1", "report 2", "lease 1", "report 3", "lease 2"]
    assert said == ["lease 1", "lease 2", "report 1", "report 2", "report 3"]


def test_everything_is_answered_in_one_prepared_thread(held: Held) -> None:
    names = [held.queue.submit(Priority.OTHER, lambda: threading.current_thread().name) for _ in range(3)]
    held.let_go()
    assert {name.result(SOON_S) for name in names} == {"turns-test"}
    assert held.prepared_in == ["turns-test"]


def test_a_mistake_is_the_callers_to_hear_and_the_next_is_answered(held: Held) -> None:
    def break_down() -> str:
        raise LookupError("no such thing")

    broken, next_one = held.queue.submit(Priority.OTHER, break_down), held.queue.submit(Priority.OTHER, lambda: "fine")
    held.let_go()
    with pytest.raises(LookupError, match="no such thing"):
        broken.result(SOON_S)
    assert next_one.result(SOON_S) == "fine"


def test_what_nobody_waits_for_any_more_is_not_called(held: Held) -> None:
    said: list[str] = []

    def say() -> str:
        said.append("late")
        return "late"

    assert held.queue.submit(Priority.OTHER, say).cancel()
    held.let_go()
    assert held.queue.submit(Priority.OTHER, lambda: "after").result(SOON_S) == "after"
    assert not said


def test_what_waits_is_answered_before_the_thread_ends(held: Held) -> None:
    last = held.queue.submit(Priority.OTHER, lambda: "last")
    held.queue.stop()
    held.let_go()
    assert last.result(SOON_S) == "last"
