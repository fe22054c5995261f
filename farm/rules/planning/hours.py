"""Hours in which a machine works: `20:00-06:00`, over midnight where the end lies before the beginning. Pure."""

from datetime import datetime, time
from zoneinfo import ZoneInfo


def is_within(hours: str, now: datetime, *, timezone: str = "UTC") -> bool:
    """Whether an aware moment lies within the hours by the clock of the zone; empty hours are always.

    The end itself is outside. Equal beginning and end mean the whole day.
    """
    if not hours:
        return True
    begin, end = (time.fromisoformat(text) for text in hours.split("-"))
    clock = now.astimezone(ZoneInfo(timezone)).time()
    if begin < end:
        return begin <= clock < end
    return clock >= begin or clock < end


def is_zone(name: str) -> bool:
    """Whether a time zone of that name is known here."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return False
    return True
