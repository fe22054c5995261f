"""Ticks run once at a time, however slow they are."""

import threading
from collections.abc import Iterator

import pytest

from farm.accounts.models import Tick
from farm.accounts.ticks import note_tick, tick_ages_s
from farm.base import ticks


class Slow:
    """Work that goes on until it is let go."""

    def __init__(self) -> None:
        self.began = 0
        self.started, self.go = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.began += 1
        self.started.set()
        assert self.go.wait(60)

    def in_a_thread(self) -> threading.Thread:
        thread = threading.Thread(target=ticks.tick("slow")(self))
        thread.start()
        assert self.started.wait(60)
        return thread


@pytest.fixture
def slow() -> Iterator[Slow]:
    ticks.tick_ended.disconnect(dispatch_uid="farm.accounts")
    yield Slow()
    ticks.tick_ended.connect(note_tick, dispatch_uid="farm.accounts")


def test_a_slow_tick_does_not_pile_up_in_the_threads_of_the_others(slow: Slow) -> None:
    thread = slow.in_a_thread()
    ticks.tick("slow")(slow)()
    assert slow.began == 1
    slow.go.set()
    thread.join()
    ticks.tick("slow")(slow)()
    assert slow.began == 2


def test_a_tick_that_hangs_does_not_stop_the_farm_for_ever(slow: Slow) -> None:
    thread = slow.in_a_thread()
    slow.go.set()
    ticks.tick("slow", stuck_after_s=0.0)(slow)()
    thread.join()
    assert slow.began == 2
    assert "slow" not in ticks._running


@pytest.mark.django_db
def test_a_tick_that_breaks_is_not_noted_and_the_next_one_runs() -> None:
    def breaks() -> None:
        raise RuntimeError("broken")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken"):
            ticks.tick("breaking")(breaks)()
    assert not Tick.objects.exists()


@pytest.mark.django_db
def test_when_a_tick_last_ended_can_be_read() -> None:
    assert tick_ages_s() == {}
    for _ in range(2):
        ticks.tick("good")(lambda: None)()
    assert 0 <= tick_ages_s()["good"] < 60
    assert Tick.objects.get().took_s >= 0
