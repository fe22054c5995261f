"""The page of a release's report card: which models it made slower or wrong, and on which nodes."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from dashboard.reading import alerts as alert_reading
from dashboard.reading import release as reading
from dashboard.views.access import page, signed_in_user
from farm.alerts.selectors.pages import list_alerts
from farm.alerts.selectors.release_cards import filter_alerts_about, read_card
from farm.rules.wording import titles

ALERTS = 20


@page
def release(request: HttpRequest, distribution: str, version: str) -> HttpResponse:
    """Show the report card of a release: models × nodes, compared with the release in `against`, or without it with the
    release that has most to show."""
    user = signed_in_user(request)
    found = read_card(user, distribution, version, against=request.GET.get("against", ""))
    new = found.card.new
    context = {
        "release": new,
        "title": titles.runtime_in_words(new),
        "found": found,
        "headline": found.card.headline,
        "because": found.card.because,
        "until": reading.describe_end(found, timezone.now()),
        "facts": list(reading.list_facts(found)),
        "map": reading.draw_map(found.card),
        "alert_table": alert_reading.make_table(list_alerts(user, "all").filter(filter_alerts_about(new))[:ALERTS]),
    }
    return render(request, "dashboard/release.html", context)
