"""Beat's schedule: the wall clock has no say in it."""

import pytest
from celery.beat import ScheduleEntry
from celery.schedules import schedule
from django.conf import settings

from farm.config import beat


def test_a_second_passes_by_the_monotonic_clock_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 100.0
    monkeypatch.setattr("farm.config.beat.time.monotonic", lambda: moment)
    entry = ScheduleEntry(name="tick", task="runs.tick", schedule=beat.every(1.0))
    assert not entry.is_due().is_due
    moment = 100.9
    assert not entry.is_due().is_due
    assert entry.is_due().next == pytest.approx(0.1)
    moment = 101.0
    assert entry.is_due().is_due
    assert not next(entry).is_due().is_due


def test_every_task_of_the_farm_is_scheduled_so() -> None:
    schedules = [task["schedule"] for task in settings.CELERY_BEAT_SCHEDULE.values()]
    assert len(schedules) >= 4
    for one in schedules:
        assert isinstance(one, schedule)
        assert one.nowfun is beat.every(1.0).nowfun
    assert settings.CELERY_BEAT_SCHEDULER == "celery.beat:Scheduler"
