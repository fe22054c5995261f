"""Hours in which a machine works."""

from datetime import UTC, datetime

import pytest

from farm.rules.planning.hours import is_time_zone, is_within


@pytest.mark.parametrize(
    ("hours", "clock", "zone", "expected"),
    [
        ("", "03:00", "UTC", True),
        ("08:00-18:00", "08:00", "UTC", True),
        ("08:00-18:00", "17:59", "UTC", True),
        ("08:00-18:00", "18:00", "UTC", False),
        ("08:00-18:00", "07:59", "UTC", False),
        ("20:00-06:00", "23:00", "UTC", True),
        ("20:00-06:00", "05:59", "UTC", True),
        ("20:00-06:00", "06:00", "UTC", False),
        ("20:00-06:00", "12:00", "UTC", False),
        ("07:00-07:00", "03:00", "UTC", True),
        # 23:30 UTC is 08:30 in Tokyo
        ("08:00-18:00", "23:30", "Asia/Tokyo", True),
        ("08:00-18:00", "10:00", "Asia/Tokyo", False),
    ],
)
def test_a_moment_lies_within_the_hours_or_not(hours: str, clock: str, zone: str, expected: bool) -> None:
    hour, minute = map(int, clock.split(":"))
    assert is_within(hours, datetime(2026, 1, 15, hour, minute, tzinfo=UTC), timezone=zone) is expected


def test_summer_time_moves_the_hours_with_the_clock_on_the_wall() -> None:
    winter, summer = (datetime(2026, month, 15, 6, 30, tzinfo=UTC) for month in (1, 7))
    assert not is_within("08:00-18:00", winter, timezone="Europe/Vienna")
    assert is_within("08:00-18:00", summer, timezone="Europe/Vienna")


@pytest.mark.parametrize(("name", "known"), [("UTC", True), ("Europe/Vienna", True), ("Mars/Base", False), ("", False)])
def test_zones_are_known_by_name(name: str, known: bool) -> None:
    assert is_time_zone(name) is known


@pytest.mark.parametrize("name", ["../etc/passwd", "/etc/passwd", "a\x00b"])
def test_a_zone_is_no_path(name: str) -> None:
    assert not is_time_zone(name)
