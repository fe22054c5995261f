"""Hours in which a machine works, such as `20:00-06:00`: an end before the beginning is on the next day."""

from datetime import datetime, time
from zoneinfo import ZoneInfo


def is_within(hours: str, now: datetime, *, timezone: str = "UTC") -> bool:
    """Whether the moment `now` lies within hours such as `20:00-06:00`, by the clock of the time zone.

    Empty hours mean always. The end itself lies outside. Hours whose beginning and end are equal mean the whole day. A
    naive `now` is taken as the local time of this machine. Raises ValueError for malformed hours, and
    ZoneInfoNotFoundError for an unknown time zone.
    """
    if not hours:
        return True
    begin, end = (time.fromisoformat(text) for text in hours.split("-"))
    clock = now.astimezone(ZoneInfo(timezone)).time()
    if begin < end:
        return begin <= clock < end
    return clock >= begin or clock < end


def is_time_zone(name: str) -> bool:
    """Whether this machine knows a time zone of that name."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return False
    return True
