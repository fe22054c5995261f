"""What happened to an alert, as its page lists it: the round that found it, its log and its searches."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.urls import reverse

from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import Sign, sign_of

if TYPE_CHECKING:
    from farm.alerts.models import Alert, AlertEvent, Investigation


# newest entries of the log that are shown
MAX_EVENTS = 200
# log entries whose kind has no sign of the same name, with the sign that they show
EVENT_SIGNS = {"opened": "open", "reopened": "open", "woken": "open"}
MEASURED, CONFIRMED = Sign("→", "measured", "quiet"), Sign("✓", "confirmed", "quiet")
ASKED = Sign("→", "asked", "quiet")
SEARCHES = {"since_when": "Bisection", "work_around": "Search for a work-around"}


@dataclass(frozen=True)
class TimelineEntry:
    """An entry of the timeline. `run`: the number of the run that the sentence is about; `href`: the address of that
    run, empty without one."""

    at: datetime
    sign: Sign
    text: str
    run: int | None = None

    @property
    def href(self) -> str:
        return reverse("dashboard:run", args=[self.run]) if self.run else ""


def list_timeline(alert: "Alert") -> list[TimelineEntry]:
    """List what happened to an alert, the oldest first: the round that found it, the run that confirmed it, the newest
    MAX_EVENTS entries of its log, and its searches. Log entries of the kind `explained` are left out, since the
    searches say the same."""
    events = [event for event in alert.events.all() if event.kind != "explained"][-MAX_EVENTS:]
    entries = [*_list_round_entries(alert), *map(_make_event_entry, events)]
    for search in alert.investigations.all():
        entries += _list_search_entries(search)
    return sorted(entries, key=lambda entry: entry.at)


def _list_round_entries(alert: "Alert") -> Iterator[TimelineEntry]:
    """List the round that found the change, and the run that measured it again before the alert was sent."""
    found = alert.round
    if found is None:
        return
    # a round without compared pairs has no figures, because one of the two sides did not work
    did = "measured" if found.compared else "tried"
    sentence = f"{found.new} was {did} against {found.old} on {found.version}."
    measured_at = (found.run.finished_at if found.run else None) or found.judged_at or found.created_at
    yield TimelineEntry(measured_at, MEASURED, sentence, found.run_id)
    if found.confirming_id and found.judged_at:
        yield TimelineEntry(found.judged_at, CONFIRMED, "A second run confirmed it.", found.confirming_id)


def _make_event_entry(event: "AlertEvent") -> TimelineEntry:
    # the page's headline already says what was found
    text = "The alert was opened." if event.kind == "opened" else str(event.text)
    return TimelineEntry(event.at, sign_of(EVENT_SIGNS.get(event.kind, event.kind)), numbers.unbroken(text))


def _list_search_entries(search: "Investigation") -> Iterator[TimelineEntry]:
    """List when a search began, with the runs that it took so far, and its answer."""
    minutes = sum(float(step.get("minutes") or 0.0) for step in search.steps)
    duration = f" in {numbers.duration(round(60.0 * minutes))}" if minutes else ""
    so_far = f": {numbers.counted(len(search.steps), 'run')}{duration}" if search.steps else ""
    began = f"{SEARCHES.get(search.kind, search.kind)} began{so_far}."
    yield TimelineEntry(search.started_at, ASKED, began, search.run_id)
    if search.ended_at:
        yield TimelineEntry(search.ended_at, sign_of(search.state), numbers.unbroken(search.sentence))
