"""What changed since a reader was here last: alerts first, then results, models, nodes and releases."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.urls import reverse

from dashboard.reading.runs import version_address
from farm.contract.cells import Runtime
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import Sign, sign_of

if TYPE_CHECKING:
    from farm.alerts.models import Alert, AlertEvent, Investigation
    from farm.fleet.models import Node
    from farm.registry.models import Version
    from farm.runs.models import Run


# signs of what an alert's log tells
EVENT_SIGNS = {"opened": "open", "reopened": "open", "explained": "answered", "woken": "open"}


@dataclass(frozen=True)
class Change:
    """One thing that happened, in a sentence that leads to it."""

    at: datetime
    sign: Sign
    text: str
    href: str


def of_alert(event: "AlertEvent") -> Change:
    """A line of an alert's log."""
    sign = sign_of(EVENT_SIGNS.get(event.kind, event.kind))
    text = f"Alert {event.alert_id}: {event.text}"
    return Change(event.at, sign, numbers.unbroken(text), reverse("dashboard:alert", args=[event.alert_id]))


def of_run(run: "Run") -> Change:
    """A run that ended."""
    said = run.headline or run.sentence or "it ended."
    text = f"Run {run.pk} of {run.version}: {said}"
    href = reverse("dashboard:run", args=[run.pk])
    return Change(run.finished_at or run.created_at, sign_of(run.outcome or run.state), numbers.unbroken(text), href)


def of_version(version: "Version") -> Change:
    """A version that was uploaded."""
    by = f" by {version.uploaded_by}" if version.uploaded_by else ""
    href = version_address(version)
    return Change(version.created_at, sign_of(version.state), f"{version} was uploaded{by}.", href)


def of_node(node: "Node") -> Change:
    """A node that joined."""
    text = f"{node.name} joined the fleet" + ("; it waits for approval." if node.health == "pending" else ".")
    return Change(node.created_at, sign_of(node.health), text, reverse("dashboard:node", args=[node.pk]))


def of_release(distribution: str, count: int, version: str, at: datetime) -> Change:
    """Releases that the package index offers since."""
    runtime = titles.runtime_in_words(Runtime(distribution=distribution, version=version))
    text = f"{runtime} appeared." if count == 1 else f"{count} releases of {distribution} became known."
    return Change(at, Sign("→", "release", "quiet"), text, reverse("dashboard:runtimes"))


def newest_first(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: change.at, reverse=True)


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
