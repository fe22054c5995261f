"""A release's report card as a page shows it: the map of models × nodes, and what it is about."""

from collections.abc import Iterator
from datetime import datetime
from math import log
from typing import TYPE_CHECKING

from django.urls import reverse

from dashboard import axes
from dashboard.reading.facts import Fact
from dashboard.reading.heatmap import METRICS, HeatMap, Place, Row, change_tone
from farm.rules.planning.time_left import format_about
from farm.rules.wording import numbers, titles

if TYPE_CHECKING:
    from farm.alerts.selectors.release_cards import ReleaseCard
    from farm.rules.changes import release_card

# models that the map has; those with something to look at come first
MAX_ROWS = 100


def draw_map(card: "release_card.Card") -> HeatMap:
    """Draw the map of a release: models down, the gravest first and then by name, nodes across. At most MAX_ROWS
    models are in it."""
    first = {row.model: place for place, (row, _) in enumerate(card.changed)}
    ordered = sorted(card.rows, key=lambda row: (first.get(row.model, len(first)), row.name, row.model))
    rows = [Row((row.name,), [_make_place(row.on_node(node)) for node in card.nodes]) for row in ordered[:MAX_ROWS]]
    return HeatMap(METRICS[0], axes.BY_NAME["node"], [axes.BY_NAME["model"]], card.nodes, rows)


def _make_place(place: "release_card.Place") -> Place:
    of = f"the gravest of {numbers.counted(place.points, 'point')}" if place.points > 1 else ""
    title = "; ".join(part for part in (place.text.rstrip("."), of) if part)
    cell = "" if place.run is None else reverse("dashboard:cell", args=[place.run, place.cell])
    href = cell if place.alert is None else reverse("dashboard:alert", args=[place.alert])
    return Place(href, sign=place.sign, tone=_find_tone(place), title=title)


def _find_tone(place: "release_card.Place") -> str:
    """A class of the stylesheet: by how much it is slower or faster, else what it is."""
    if place.sign.tone in ("slower", "faster"):
        return change_tone(abs(log(place.size or 1.0)), is_gain=place.sign.tone == "faster")
    if not place.points and not place.kind:
        return "running" if place.sign.tone == "warn" else "none"
    return place.sign.tone if place.sign.tone in ("bad", "warn") else ""


def describe_end(found: "ReleaseCard", now: datetime) -> str:
    """Say how long what is open takes yet, and until when in UTC, or that nobody can tell; “at least” where only a
    part of it can be foreseen."""
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
