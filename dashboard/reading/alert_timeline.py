"""What happened to an alert, in the order in which it did: measured, confirmed, searched, told, and what people did."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.urls import reverse

from dashboard.reading.changes import EVENT_SIGNS
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import Sign, sign_of

if TYPE_CHECKING:
    from farm.alerts.models import Alert, AlertEvent, Investigation

# newest entries of the log that are shown
SHOWN = 200
MEASURED, CONFIRMED = Sign("→", "measured", "quiet"), Sign("✓", "confirmed", "quiet")
SEARCHES = {"since_when": "Bisection", "work_around": "Search for a work-around"}


@dataclass(frozen=True)
class Entry:
    """One line: when, its sign, the sentence, and the run that it tells of, by number."""

    at: datetime
    sign: Sign
    text: str
    run: int | None = None

    @property
    def href(self) -> str:
        return reverse("dashboard:run", args=[self.run]) if self.run else ""


def timeline(alert: "Alert") -> list[Entry]:
    """The oldest first."""
    # what was explained is what the searches found, which stands beside them
    events = [event for event in alert.events.all() if event.kind != "explained"][-SHOWN:]
    searches = [entry for one in alert.investigations.all() for entry in _search(one)]
    return sorted([*_round(alert), *map(_event, events), *searches], key=lambda entry: entry.at)


def _round(alert: "Alert") -> Iterator[Entry]:
    """The round that found it, and the run that repeated it before anybody was told."""
    found = alert.round
    if found is None:
        return
    told = f"{found.new} was measured against {found.old} on {found.version}."
    yield Entry(found.created_at, MEASURED, told, found.run_id)
    if found.confirming_id and found.judged_at:
        yield Entry(found.judged_at, CONFIRMED, "A second run confirmed it.", found.confirming_id)


def _event(event: "AlertEvent") -> Entry:
    # the headline has said what was found
    text = "The alert was opened." if event.kind == "opened" else str(event.text)
    return Entry(event.at, sign_of(EVENT_SIGNS.get(event.kind, event.kind)), numbers.unbroken(text))


def _search(one: "Investigation") -> Iterator[Entry]:
    """That it began, how many measurements it took so far, and its answer."""
    took = [float(step.get("minutes") or 0.0) for step in one.steps]
    minutes = f" in {numbers.plain(sum(took))} min" if sum(took) else ""
    so_far = f": {numbers.counted(len(took), 'run')}{minutes}" if took else ""
    yield Entry(one.started_at, sign_of("measuring"), f"{SEARCHES.get(one.kind, one.kind)} began{so_far}.", one.run_id)
    if one.ended_at:
        yield Entry(one.ended_at, sign_of(one.state), numbers.unbroken(one.sentence))
