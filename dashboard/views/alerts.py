"""Alerts: the list, judged of them, the digest, and what people do with them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from dashboard.reading import alerts as listing
from dashboard.reading import file_rows, runs
from dashboard.reading.facts import Fact
from dashboard.views import downloads
from dashboard.views.access import page, person
from dashboard.views.home import changes_since
from dashboard.views.lists import Listing, Together, chosen, ordered, paged, searched
from farm.accounts.selectors import teams_visible_to, teams_writable_by
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors import pages
from farm.alerts.services import digests
from farm.alerts.services.digests import digest_of
from farm.rules.findings.kinds import KINDS
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, counted, moment, verdict_entry
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from datetime import datetime

    from farm.accounts.models import Team, User
    from farm.alerts.models import Alert, WatchRound


DAYS = (1, 7, 30)
# newest rounds and alerts that are shown
SHOWN = 15
ROUND_COLUMNS: tuple[Column["WatchRound"], ...] = (
    Column("Judged", lambda judged: moment(judged.judged_at)),
    Column("Watch", lambda judged: Entry(judged.watch.name, href=reverse("dashboard:watch", args=[judged.watch_id]))),
    Column("Model", lambda judged: Entry(str(judged.version))),
    Column("Releases", lambda judged: Entry(f"{judged.old} → {judged.new}", is_name=True)),
    Column("Outcome", lambda judged: verdict_entry(judged.outcome)),
    Number("pairs", lambda judged: counted(judged.compared), "comparisons that were judged"),
    Prose("Result", lambda judged: Entry(numbers.unbroken(judged.sentence))),
    Column("Run", lambda judged: runs.link(judged.run_id)),
)


@dataclass(frozen=True)
class Digest:
    """One team's digest. `basis`: what the expected number of false alerts rests on; `more`: rounds that are not
    shown."""

    team: str
    sentence: str
    basis: str
    facts: Sequence[Fact]
    rounds: Table
    more: int
    opened: Table
    unsettled: int


def days_of(text: str) -> int:
    """How many days back; a week unless the address names another length that is offered."""
    return next((days for days in DAYS if str(days) == text), 7)


def days_ago(days: int) -> datetime:
    return timezone.now() - timedelta(days=days)


def digest_for(
    team: "Team", facts: digests.Digest, *, rounds: Iterable["WatchRound"], opened: Iterable["Alert"]
) -> Digest:
    """A digest for its page, with its newest rounds and alerts."""
    pairs = numbers.counted(facts["null_pairs"], "A/A pair")
    are = "is" if facts["null_pairs"] == 1 else "are"
    table = Table.of(f"rounds-{team.pk}", "Rounds of watches", ROUND_COLUMNS, rounds)
    judged = sum(facts["rounds"].values())
    return Digest(
        team=team.name,
        sentence=digests.sentence_of(facts),
        basis=f"The rate rests on {pairs} of the team’s nodes."
        if facts["null_pairs"] >= digests.ENOUGH_PAIRS
        else f"{pairs} of the team’s nodes {are} too few to say more than the rule’s own level.",
        facts=_facts(facts),
        rounds=table,
        more=max(0, judged - len(table.rows)),
        opened=replace(listing.table(opened), id=f"opened-{team.pk}"),
        unsettled=facts["open"],
    )


def digests_in_words(shown: Sequence[Digest], days: int) -> str:
    """What came of the watches, over all teams."""
    new = sum(len(digest.opened.rows) for digest in shown)
    rounds = sum(len(digest.rounds.rows) + digest.more for digest in shown)
    alerts_words = numbers.counted(new, "new alert") if new else "No new alerts"
    return (
        f"{alerts_words} from {numbers.counted(rounds, 'round')} of watches in the last {numbers.counted(days, 'day')}"
    )


def _facts(facts: digests.Digest) -> list[Fact]:
    outcomes = [f"{count} {verdict_entry(name).value}" for name, count in facts["rounds"].items() if count]
    return [
        Fact("Rounds", str(sum(facts["rounds"].values()))),
        Fact("Outcomes", ", ".join(outcomes) or "none"),
        Fact("Comparisons", str(facts["comparisons"])),
        Fact("New alerts", str(len(facts["opened"]))),
        Fact("Open now", str(facts["open"])),
        Fact("Marked as false positives", str(facts["invalid"])),
    ]


LABELS = {
    "open": "open",
    "snoozed": "snoozed",
    "infra": "could not measure",
    "resolved": "resolved",
    "invalid": "false positives",
    "all": "all",
}
WATCH_COMMAND = "onnxfarm watch add upgrades --model MODEL --reference 1.29.0"


@page
def alerts(request: HttpRequest) -> HttpResponse:
    """Alerts of the reader's teams, newest first; open ones unless the address says otherwise."""
    user, wanted = person(request), searched(request)
    name = request.GET.get("state", "open")
    name = name if name in LABELS else "open"
    kind = chosen(request, "kind", "Kind", [(key, kind.title.word) for key, kind in KINDS.items()])
    rows = pages.alerts_in(user, name)
    if wanted:
        rows = rows.filter(model__name__icontains=wanted)
    if kind.value:
        rows = rows.filter(pk__in=pages.of_kind(kind.value))
    rows = ordered(request, pages.with_size(rows) if "change" in request.GET.get("sort", "") else rows, listing.ORDERS)
    if downloads.is_wanted(request):
        return downloads.as_file(request, "alerts", rows[: downloads.MOST_ROWS], file_rows.alert)
    counts = pages.alert_counts(user)
    shown = paged(request, rows)
    writable = set(teams_writable_by(user).values_list("pk", flat=True))
    table = listing.table(shown, writable=writable, is_ordered=True, box="alerts")
    context = {
        "headline": listing.headline(counts),
        "list": Listing(
            table,
            shown,
            [kind],
            wanted,
            searches="Model",
            kept=[("state", name)],
            together=[Together("Acknowledge", reverse("dashboard:acknowledge_alerts"))] if table.box else [],
            is_posted=True,
        ),
        "lists": [(key, label, counts[key]) for key, label in LABELS.items()],
        "state": name,
        "has_any": bool(counts["all"]),
        "command": WATCH_COMMAND,
    }
    return render(request, "dashboard/alerts.html", context)


@page
def digest(request: HttpRequest) -> HttpResponse:
    """What the watches of each team did in some days, as channels are told it."""
    user, days = person(request), days_of(request.GET.get("days", ""))
    since = days_ago(days)
    shown = [_digest(user, team, since) for team in teams_visible_to(user)]
    context = {
        "days": days,
        "choices": DAYS,
        "digests": shown,
        "headline": digests_in_words(shown, days),
        # alerts stand above, with their figures
        "changes": [change for change in changes_since(user, since) if "/alerts/" not in change.href],
    }
    return render(request, "dashboard/digest.html", context)


def _digest(user: "User", team: "Team", since: "datetime") -> Digest:
    opened = pages.alerts_in(user, "all").filter(team=team, opened_at__gte=since)
    rounds = selectors.rounds_judged(team, since=since)
    return digest_for(team, digest_of(team, since=since), rounds=rounds[:SHOWN], opened=opened[:SHOWN])
