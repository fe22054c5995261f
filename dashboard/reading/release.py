"""A release's report card as a page shows it: the map of models and nodes, the expected end, and the facts."""

from collections.abc import Iterator
from datetime import datetime
from math import log
from typing import TYPE_CHECKING

from django.urls import reverse

from dashboard import axes
from dashboard.reading.facts import Fact
from dashboard.reading.heatmap import HeatMap, Row
from dashboard.reading.heatmap_fields import METRICS, Field, change_tone
from farm.rules.planning.time_left import format_about
from farm.rules.wording import numbers, titles

if TYPE_CHECKING:
    from farm.alerts.selectors.release_cards import ReleaseCard
    from farm.rules.changes import release_card

# at most so many models are in the map
MAX_ROWS = 100


def draw_map(card: "release_card.Card") -> HeatMap:
    """Draw the map of a release, with a column for each node and a row for each of at most MAX_ROWS models: first the
    models with the gravest changes, then the others by name."""
    first = {row.model: place for place, (row, _) in enumerate(card.changed)}
    ordered = sorted(card.rows, key=lambda row: (first.get(row.model, len(first)), row.name, row.model))
    rows = [
        Row((row.name,), [_make_place(row.on_node(node)) for node in card.measured_nodes]) for row in ordered[:MAX_ROWS]
    ]
    return HeatMap(METRICS[0], axes.BY_NAME["node"], [axes.BY_NAME["model"]], card.measured_nodes, rows)


def _make_place(place: "release_card.Place") -> Field:
    of = f"the gravest of {numbers.counted(place.points, 'point')}" if place.points > 1 else ""
    title = "; ".join(part for part in (place.text.rstrip("."), of) if part)
    cell = "" if place.run is None else reverse("dashboard:cell", args=[place.run, place.cell])
    href = cell if place.alert is None else reverse("dashboard:alert", args=[place.alert])
    return Field(href, sign=place.sign, tone=_find_tone(place), title=title)


def _find_tone(place: "release_card.Place") -> str:
    """Find the class of the colour: by the size of the change where the release is slower or faster, else by state."""
    if place.sign.tone in ("slower", "faster"):
        return change_tone(abs(log(place.size or 1.0)), is_gain=place.sign.tone == "faster")
    if not place.points and not place.kind:
        return "running" if place.sign.tone == "active" else "none"
    return place.sign.tone if place.sign.tone in ("bad", "warn") else ""


def describe_end(found: "ReleaseCard", now: datetime) -> str:
    """Say how long the open measurements still take and when they end in UTC, or that this is not known. The text says
    “at least” where only a part of the time can be foreseen."""
    last, least = (found.ends_at, "") if found.ends_at else (found.ends_at_least, "at least ")
    if last is None:
        return "nobody can tell yet until when"
    return f"{least}{format_about((last - now).total_seconds())} left, until {last:%Y-%m-%d %H:%M} UTC"


def list_facts(found: "ReleaseCard") -> Iterator[Fact]:
    """List the release, the release it is compared with, the number of models, and the nodes."""
    card = found.card
    yield Fact("Release", str(card.new), is_name=True)
    yield Fact("Compared with", titles.runtime(card.old) if card.old else "nothing yet", is_name=True)
    yield Fact("Models", str(len(card.rows)))
    yield Fact("Nodes", numbers.listed(card.measured_nodes) or numbers.NOT_MEASURED)
