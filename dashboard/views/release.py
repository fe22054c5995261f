"""The page of a release's report card: which models it made slower or wrong, and on which nodes."""

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from dashboard.reading import alerts as alert_reading
from dashboard.reading import release as reading
from dashboard.views.access import page, signed_in_user
from farm.alerts.selectors.pages import list_alerts
from farm.alerts.selectors.release_cards import filter_alerts_about, read_card
from farm.rules.runtimes.order import release_order
from farm.rules.wording import titles

if TYPE_CHECKING:
    from farm.accounts.selectors import Anyone
    from farm.alerts.models import Alert
    from farm.contract.cells import Runtime

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
        "alert_table": alert_reading.make_table(_list_alerts(user, new)),
    }
    return render(request, "dashboard/release.html", context)


def _list_alerts(user: "Anyone", new: "Runtime") -> "list[Alert]":
    """List the alerts about a release, then the open ones about older releases, which may last; ALERTS of each."""
    about = list(list_alerts(user, "all").filter(filter_alerts_about(new))[:ALERTS])
    still_open = list_alerts(user, "open").filter(distribution=new.distribution).exclude(pk__in=[a.pk for a in about])
    order = release_order(new.version)
    return about + [alert for alert in still_open[:ALERTS] if release_order(alert.bad) < order]
