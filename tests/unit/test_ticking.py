"""Ticks run once at a time, however slow they are, and their threads are enough for all of them and the messages."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from farm.accounts.models import Tick
from farm.accounts.ticks import note_tick, tick_ages_s
from farm.alerts.tasks import AT_ONCE
from farm.base import ticks
from farm.config import workers
from farm.contract.version import PREPARE_QUEUE, TELL_QUEUE, TICK_QUEUE

PROCESS = (Path(__file__).resolve().parents[2] / "deploy" / "process").read_text()


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


def test_a_tick_that_hangs_does_not_stop_the_farm_for_ever(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = slow.in_a_thread()
    monkeypatch.setattr(ticks, "STUCK_AFTER_S", 0.0)
    slow.go.set()
    ticks.tick("slow")(slow)()
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


def test_ticks_and_messages_share_no_queue_with_makings() -> None:
    queues = {entry["options"]["queue"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert queues == {TICK_QUEUE}
    assert option(workers.prepare(), "--queues") == PREPARE_QUEUE
    assert option(workers.ticks(), "--queues").split(",") == [TICK_QUEUE, TELL_QUEUE]
    assert "--ticking" in workers.ticks()
    assert "--ticking" not in workers.prepare()


def test_every_kind_of_tick_has_a_thread_while_all_messages_hang() -> None:
    assert len(settings.CELERY_BEAT_SCHEDULE) + AT_ONCE < int(option(workers.ticks(), "--concurrency"))


def test_services_start_the_same_workers_as_the_embedded_farm() -> None:
    worker = re.search(r"^celery=\(python (.+)\)$", PROCESS, re.MULTILINE)
    assert worker is not None
    for name, words in (("prepare", workers.prepare()), ("ticks", workers.ticks())):
        own = re.search(rf'^  {name}\)\n(?:    #.*\n)?    exec "\$\{{celery\[@\]\}}" (.+)$', PROCESS, re.MULTILINE)
        assert own is not None, name
        told = re.sub(r'"\$\{\w+:-(\d+)\}"', r"\1", f"{worker[1]} {own[1]}").split()
        assert sorted(told) == sorted(words[1:])


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]
