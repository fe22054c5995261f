"""The list of alerts with the digests of a period, and the actions on alerts. Old addresses of digests are redirected
to the list of all alerts of a period, 7 days where they name none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from dashboard.reading import alerts as listing
from dashboard.reading import file_rows, watches
from dashboard.views import lists
from dashboard.views.access import action, local_address, page, read_fields, signed_in_user
from dashboard.views.alert import render_alert
from dashboard.views.lists import MAX_CHOSEN, Listing, Together, make_page, sort_rows
from farm.accounts.selectors import memberships_in, teams_visible_to, teams_writable_by
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors import pages
from farm.alerts.services import digests, investigations, triage
from farm.alerts.states import AlertState
from farm.base.refusals import Invalid, Missing, NotAllowed, Refusal
from farm.rules.findings.kinds import KINDS
from farm.rules.presenting.tables import Column, Entry, Table
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.accounts.models import Team, User
    from farm.alerts.models import Alert, WatchRound


# the periods for which an address may ask, in days
PERIODS = {"1": "in the last day", "7": "in the last 7 days", "30": "in the last 30 days"}
# newest rounds of a digest that are shown
MAX_ROUNDS = 15
WATCH: Column["WatchRound"] = Column(
    "Watch", lambda judged: Entry(judged.watch.name, href=reverse("dashboard:watch", args=[judged.watch_id]))
)
# the texts that were typed into a form, by field
Typed = Mapping[str, str]
NOTHING_TYPED = {"note": "", "assignee": ""}
STARTED = "started. Each step is one run."
# carries out an action and returns the message for the reader
Action = Callable[["Alert", "User", Typed], str]


@dataclass(frozen=True)
class Digest:
    """What a team's watches did in a period. `sentence`: in the words that channels send; `basis`: on how many A/A
    pairs the rate of false alerts rests; `more`: how many judged rounds are not in the table."""

    team: str
    sentence: str
    basis: str
    rounds: Table
    more: int


def make_digest_panel(team: "Team", since: datetime) -> Digest:
    """Make the panel of a team's digest of the time after `since`; nothing is sent."""
    facts, rounds = digests.make_digest(team, since=since), selectors.rounds_judged(team, since=since)[:MAX_ROUNDS]
    pairs = numbers.counted(facts["null_pairs"], "undisturbed A/A pair")
    share = f"{100 * facts['false_alarm_rate']:.2g} %"
    are = "is" if facts["null_pairs"] == 1 else "are"
    table = Table.of(f"rounds-{team.pk}", "Rounds of watches", (WATCH, *watches.ROUND_COLUMNS[1:]), rounds)
    judged = sum(facts["rounds"].values())
    return Digest(
        team=team.name,
        sentence=digests.describe_digest(facts),
        basis=f"This assumes that {share} of A/A pairs differ, going by {pairs} of the team’s nodes."
        if facts["null_pairs"] >= digests.ENOUGH_PAIRS
        else f"This assumes that {share} of A/A pairs differ: {pairs} of the team’s nodes {are} too few to measure it.",
        rounds=table,
        more=max(0, judged - len(table.rows)),
    )


LABELS = {
    "open": "open",
    "snoozed": "snoozed",
    "infra": "could not measure",
    "resolved": "resolved",
    "invalid": "false positives",
    "all": "all",
}


@page
def alerts(request: HttpRequest) -> HttpResponse:
    """Show a page of the alerts of the reader's teams: the open alerts unless `state` names others, the newest first
    unless `sort` says otherwise. With a period in `days`, alerts opened before it are left out and each team's digest
    is shown. Alerts can be filtered by `kind` and searched by model name; unknown values filter nothing. `as` asks for
    a file instead, of all pages but at most lists.MAX_ROWS rows."""
    user, wanted = signed_in_user(request), lists.read_search_words(request)
    name = request.GET.get("state", "open")
    name = name if name in LABELS else "open"
    kind = lists.read_filter(request, "kind", "Kind", [(key, kind.title.word) for key, kind in KINDS.items()])
    period = lists.read_filter(request, "days", "Opened", PERIODS.items(), nothing="at any time")
    since = timezone.now() - timedelta(days=int(period.value)) if period.value else None
    rows = pages.list_alerts(user, name, since=since)
    if wanted:
        rows = rows.filter(model__name__icontains=wanted)
    if kind.value:
        rows = rows.filter(pk__in=pages.alert_ids_with_symptom(kind.value))
    rows = sort_rows(
        request, pages.add_sizes(rows) if "change" in request.GET.get("sort", "") else rows, listing.ORDERS
    )
    if lists.wants_file(request):
        return lists.render_file(request, "alerts", rows[: lists.MAX_ROWS], file_rows.alert_row)
    counts = pages.count_alerts_by_list(user, since=since)
    shown = make_page(request, rows)
    # the gravest is named where all open or all new alerts are listed
    is_whole = name == ("all" if period.value else "open") and not wanted and not kind.value
    listed = [alert for alert in shown if alert.state != AlertState.INVALID] if is_whole else []
    writable = set(teams_writable_by(user).values_list("pk", flat=True))
    table = listing.make_table(shown, writable=writable, is_ordered=True, box="alerts")
    context = {
        **_write_headline(counts, listed, period=PERIODS.get(period.value, "")),
        "digests": [make_digest_panel(team, since) for team in teams_visible_to(user)] if since else [],
        "list": Listing(
            table,
            shown,
            [kind, period],
            wanted,
            searches="Model",
            kept=[("state", name)],
            together=[Together("Acknowledge", reverse("dashboard:acknowledge_alerts"))] if table.box else [],
            is_posted=True,
        ),
        "lists": [(key, label, counts[key]) for key, label in LABELS.items()],
        "state": name,
        "has_any": bool(counts["all"]),
        "watching": "" if counts["all"] else listing.describe_watching(*pages.count_watching(user)),
    }
    return render(request, "dashboard/alerts.html", context)


def _write_headline(counts: Mapping[str, int], listed: Sequence["Alert"], *, period: str) -> dict[str, str]:
    """Write the headline, and the line below it as `because`. `listed`: alerts of which the gravest is named; `period`:
    when all counted alerts were opened, in words, empty for any time."""
    if not period:
        return {"headline": listing.write_headline(listed, counts["open"]), "because": listing.describe_counts(counts)}
    count = f"{numbers.counted(counts['all'], 'new alert') if counts['all'] else 'No new alert'} {period}"
    return {"headline": listing.write_headline(listed, 1), "because": count} if listed else {"headline": count}


@page
def redirect_digest(request: HttpRequest) -> HttpResponseBase:
    days = request.GET.get("days", "")
    return redirect(f"{reverse('dashboard:alerts')}?state=all&days={days if days in PERIODS else 7}")


def _acknowledge(alert: "Alert", by: "User", typed: Typed) -> str:
    triage.acknowledge(alert=alert, by=by, note=typed["note"], assignee=_find_member(alert, typed["assignee"]))
    return f"Alert {alert.pk} was acknowledged and assigned to {typed['assignee'] or by.username}."


def _assign(alert: "Alert", by: "User", typed: Typed) -> str:
    member = _find_member(alert, typed["assignee"])
    if member is None:
        raise Invalid("Choose an assignee.", code="assignee")
    triage.assign(alert=alert, by=by, assignee=member)
    return f"Alert {alert.pk} was assigned to {member.username}."


def _find_member(alert: "Alert", name: str) -> "User | None":
    """Find a member of the alert's team by username; None for an empty name. Raises Invalid for other names."""
    if not name:
        return None
    member = next((member.user for member in memberships_in(alert.team) if member.user.username == name), None)
    if member is None:
        raise Invalid(f"{name[:60]} is not in team “{alert.team.name}”.", code="assignee")
    return member


def _snooze(alert: "Alert", by: "User", typed: Typed) -> str:
    triage.snooze(alert=alert, by=by, until=_parse_date(typed["until"]), release=typed["release"])
    return f"Alert {alert.pk} is snoozed until {typed['until'] or typed['release']}."


def _parse_date(text: str) -> datetime | None:
    """Parse a date as its midnight in UTC; None for an empty text. Raises Invalid for other texts."""
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise Invalid(f"“{text[:30]}” is not a date: write it like 2026-12-24.", code="snooze") from None


def _start_work_around(alert: "Alert", by: "User", typed: Typed) -> str:
    optimizers = typed["optimizers"].replace(",", " ").split()
    investigations.start_work_around_search(alert=alert, by=by, optimizers=optimizers)
    return f"Work-around search {STARTED}"


def _make_action(service: Callable[..., object], message: str) -> Action:
    """Make an action from a service whose further arguments have the names of the form's fields. In `message`, `{}`
    stands for the alert's number."""

    def act(alert: "Alert", by: "User", typed: Typed) -> str:
        service(alert=alert, by=by, **typed)
        return message.format(alert.pk)

    return act


# by name: the action, the fields of its form, and the field at which a refusal is shown that names no field
ACTIONS: dict[str, tuple[Action, tuple[str, ...], str]] = {
    "acknowledge": (_acknowledge, ("note", "assignee"), "note"),
    "assign": (_assign, ("assignee",), "assignee"),
    "snooze": (_snooze, ("until", "release"), "until"),
    "invalid": (_make_action(triage.mark_invalid, "Alert {} was marked as a false positive."), ("reason",), "reason"),
    "infra": (
        _make_action(triage.mark_infra, "Alert {} was marked as an infrastructure issue."),
        ("reason",),
        "reason",
    ),
    "reopen": (_make_action(triage.reopen, "Alert {} was reopened."), ("note",), "note"),
    "note": (_make_action(triage.add_note, "The note was saved."), ("note",), "note"),
    "since_when": (_make_action(investigations.start_bisection, f"Bisection {STARTED}"), ("good", "bad"), "good"),
    "work_around": (_start_work_around, ("optimizers",), "optimizers"),
}


@action
def acknowledge_chosen(request: HttpRequest) -> HttpResponseBase:
    """Acknowledge the selected alerts, at most MAX_CHOSEN, and assign them to the reader, or none if one is refused or
    not found. Redirect with messages to the address in `next`, else to the list, also where none is selected."""
    user = signed_in_user(request)
    numbers = lists.read_row_numbers(request.POST, "alerts", most=MAX_CHOSEN)
    if not numbers:
        messages.error(request, "Select alerts first, or press x on a row.")
    try:
        with transaction.atomic():
            done = [_acknowledge(selectors.alert(user, number), user, NOTHING_TYPED) for number in numbers]
    except Refusal as refusal:
        messages.error(request, f"No alert was acknowledged. {refusal}")
    else:
        for sentence in done:
            messages.success(request, sentence)
    return redirect(local_address(request, request.POST.get("next", "")) or reverse("dashboard:alerts"))


@action
def order(request: HttpRequest, alert_id: int, what: str) -> HttpResponseBase:
    """Carry out the action `what`, a key of ACTIONS, and redirect to the address in `next`, else to the alert's page. A
    refusal is shown on the alert's page at its field, and the typed texts are kept. Raises NotAllowed where the reader
    may not change the alert, and Missing for any other action."""
    user = signed_in_user(request)
    row = selectors.alert(user, alert_id)
    if what not in ACTIONS:
        raise Missing(f"Unknown action “{what}”.", hint="See the alert's page for available actions.")
    act, names, main_field = ACTIONS[what]
    typed = read_fields(request, names)
    try:
        messages.success(request, act(row, user, typed))
    except NotAllowed:
        # such readers see no form in which to show the refusal
        raise
    except Refusal as refusal:
        field = _find_field(refusal, typed) or main_field
        shown = {
            "errors": {f"{what}_{field}": str(refusal)},
            "typed": {f"{what}_{name}": text for name, text in typed.items()},
            "refused": what,
            "refusal": str(refusal),
        }
        return render_alert(request, row, status=refusal.status, **shown)
    back = local_address(request, request.POST.get("next", ""))
    return redirect(f"{back}#alert-{alert_id}" if back else reverse("dashboard:alert", args=[alert_id]))


def _find_field(refusal: Refusal, typed: Typed) -> str:
    """Find the field that caused a refusal: the field that its code names, or whose text its sentence quotes. Empty
    where there is neither."""
    if refusal.code in typed:
        return refusal.code
    quoted = [name for name, text in typed.items() if text and text in str(refusal)]
    return quoted[-1] if refusal.code in ("unknown_runtime", "wrong_order") and quoted else ""
