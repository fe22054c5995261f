"""A release's report card as a page shows it: the map of models and nodes, its end, and its facts."""

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

# models in the map
MAX_ROWS = 100


def draw_map(card: "release_card.Card") -> HeatMap:
    """Draw the map of a release: a row for each of at most MAX_ROWS models, the gravest changes first and then by name,
    a column for each node."""
    first = {row.model: place for place, (row, _) in enumerate(card.changed)}
    ordered = sorted(card.rows, key=lambda row: (first.get(row.model, len(first)), row.name, row.model))
    rows = [Row((row.name,), [_make_place(row.on_node(node)) for node in card.nodes]) for row in ordered[:MAX_ROWS]]
    return HeatMap(METRICS[0], axes.BY_NAME["node"], [axes.BY_NAME["model"]], card.nodes, rows)


def _make_place(place: "release_card.Place") -> Field:
    of = f"the gravest of {numbers.counted(place.points, 'point')}" if place.points > 1 else ""
    title = "; ".join(part for part in (place.text.rstrip("."), of) if part)
    cell = "" if place.run is None else reverse("dashboard:cell", args=[place.run, place.cell])
    href = cell if place.alert is None else reverse("dashboard:alert", args=[place.alert])
    return Field(href, sign=place.sign, tone=_find_tone(place), title=title)


def _find_tone(place: "release_card.Place") -> str:
    """Find the class of the colour: by how much the release is slower or faster there, else by the state."""
    if place.sign.tone in ("slower", "faster"):
        return change_tone(abs(log(place.size or 1.0)), is_gain=place.sign.tone == "faster")
    if not place.points and not place.kind:
        return "running" if place.sign.tone == "warn" else "none"
    return place.sign.tone if place.sign.tone in ("bad", "warn") else ""


def describe_end(found: "ReleaseCard", now: datetime) -> str:
    """Say how long the open measurements still take, and until when in UTC, or that this is not known; with “at least”
    where only a part of it can be foreseen."""
    last, least = (found.ends_at, "") if found.ends_at else (found.ends_at_least, "at least ")
    if last is None:
        return "nobody can tell yet until when"
    return f"{least}{format_about((last - now).total_seconds())} left, until {last:%Y-%m-%d %H:%M} UTC"


def list_facts(found: "ReleaseCard") -> Iterator[Fact]:
    """List as facts what is compared with what, and where."""
    card = found.card
    yield Fact("Release", str(card.new), is_name=True)
    yield Fact("Compared with", titles.runtime(card.old) if card.old else "nothing yet", is_name=True)
    yield Fact("Models", str(len(card.rows)))
    yield Fact("Nodes", numbers.listed(card.nodes) or numbers.NOT_MEASURED)
