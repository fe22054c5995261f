"""What changed since a reader was here last: alerts first, then results, models, nodes and releases."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.urls import reverse

from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import Sign, sign_of

if TYPE_CHECKING:
    from farm.alerts.models import AlertEvent
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
    href = f"{reverse('dashboard:model', args=[version.model_id])}?version={version.number}"
    return Change(version.created_at, sign_of(version.state), f"{version} was uploaded{by}.", href)


def of_node(node: "Node") -> Change:
    """A node that joined."""
    text = f"{node.name} joined the fleet" + ("; it waits for approval." if node.health == "pending" else ".")
    return Change(node.created_at, sign_of(node.health), text, reverse("dashboard:node", args=[node.pk]))


def of_release(distribution: str, count: int, version: str, at: datetime) -> Change:
    """Releases that the package index offers since."""
    runtime = titles.runtime_in_words(f"{distribution}=={version}")
    text = f"{runtime} appeared." if count == 1 else f"{count} releases of {distribution} became known."
    return Change(at, Sign("→", "release", "quiet"), text, reverse("dashboard:runtimes"))


def newest_first(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: change.at, reverse=True)
