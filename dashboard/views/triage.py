"""What people order about alerts: each order is one form; what it refuses is said beside its field."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.views.access import action, fields, own_page, person
from dashboard.views.alert import shown
from dashboard.views.lists import MOST_CHOSEN, numbered
from farm.accounts.selectors import members_of
from farm.alerts.selectors import alerts as selectors
from farm.alerts.services import investigations, triage
from farm.base.refusals import Invalid, Missing, NotAllowed, Refusal

if TYPE_CHECKING:
    from farm.accounts.models import User
    from farm.alerts.models import Alert

Given = Mapping[str, str]
# an order without a word
NOBODY = {"note": "", "assignee": ""}
# does it, and says that it is done
Order = Callable[["Alert", "User", Given], str]


def _acknowledge(alert: "Alert", by: "User", given: Given) -> str:
    triage.acknowledge(alert=alert, by=by, note=given["note"], assignee=_member(alert, given["assignee"]))
    return f"Alert {alert.pk} was acknowledged and assigned to {given['assignee'] or by.username}."


def _assign(alert: "Alert", by: "User", given: Given) -> str:
    member = _member(alert, given["assignee"])
    if member is None:
        raise Invalid("Choose an assignee.", code="assignee")
    triage.assign(alert=alert, by=by, assignee=member)
    return f"Alert {alert.pk} was assigned to {member.username}."


def _member(alert: "Alert", name: str) -> "User | None":
    """The member of that name; None for no name."""
    if not name:
        return None
    member = next((one.user for one in members_of(alert.team) if one.user.username == name), None)
    if member is None:
        raise Invalid(f"{name[:60]} is not in team “{alert.team.name}”.", code="assignee")
    return member


def _snooze(alert: "Alert", by: "User", given: Given) -> str:
    until = _date(given["until"])
    triage.snooze(alert=alert, by=by, until=until, release=given["release"])
    return f"Alert {alert.pk} is snoozed until {given['until'] or given['release']}."


def _date(text: str) -> datetime | None:
    """A day as its first moment, UTC; None for an empty text."""
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise Invalid(f"“{text[:30]}” is not a date: write it like 2026-12-24.", code="snooze") from None


def _invalid(alert: "Alert", by: "User", given: Given) -> str:
    triage.call_invalid(alert=alert, by=by, reason=given["reason"])
    return f"Alert {alert.pk} was marked as a false positive."


def _infra(alert: "Alert", by: "User", given: Given) -> str:
    triage.call_infra(alert=alert, by=by, reason=given["reason"])
    return f"Alert {alert.pk} was marked as an infrastructure issue."


def _reopen(alert: "Alert", by: "User", given: Given) -> str:
    triage.reopen(alert=alert, by=by, note=given["note"])
    return f"Alert {alert.pk} was reopened."


def _note(alert: "Alert", by: "User", given: Given) -> str:
    triage.add_note(alert=alert, by=by, note=given["note"])
    return "The note was saved."


def _since_when(alert: "Alert", by: "User", given: Given) -> str:
    investigations.ask_since_when(alert=alert, by=by, good=given["good"], bad=given["bad"])
    return "Bisection started. Each step is one run."


def _work_around(alert: "Alert", by: "User", given: Given) -> str:
    investigations.ask_work_around(alert=alert, by=by, optimizers=given["optimizers"].replace(",", " ").split())
    return "Work-around search started. Each step is one run."


# the order, the fields of its form, and which of them a refusal belongs to where its code does not say
ORDERS: dict[str, tuple[Order, tuple[str, ...], str]] = {
    "acknowledge": (_acknowledge, ("note", "assignee"), "note"),
    "assign": (_assign, ("assignee",), "assignee"),
    "snooze": (_snooze, ("until", "release"), "until"),
    "invalid": (_invalid, ("reason",), "reason"),
    "infra": (_infra, ("reason",), "reason"),
    "reopen": (_reopen, ("note",), "note"),
    "note": (_note, ("note",), "note"),
    "since_when": (_since_when, ("good", "bad"), "good"),
    "work_around": (_work_around, ("optimizers",), "optimizers"),
}


@action
def acknowledge_chosen(request: HttpRequest) -> HttpResponseBase:
    """Acknowledges the chosen alerts, all of them or none: where one cannot be, the page says which and why."""
    user = person(request)
    numbers = numbered(request.POST, "alerts", most=MOST_CHOSEN)
    if not numbers:
        messages.error(request, "Select alerts first, or press x on a row.")
    try:
        with transaction.atomic():
            done = [_acknowledge(selectors.alert(user, number), user, NOBODY) for number in numbers]
    except Refusal as refusal:
        messages.error(request, f"No alert was acknowledged. {refusal}")
    else:
        for sentence in done:
            messages.success(request, sentence)
    return redirect(own_page(request, request.POST.get("next", "")) or reverse("dashboard:alerts"))


@action
def order(request: HttpRequest, alert_id: int, what: str) -> HttpResponseBase:
    """One order. A refusal is shown on the alert's page, beside its field, with what was typed."""
    user = person(request)
    row = selectors.alert(user, alert_id)
    if what not in ORDERS:
        raise Missing(f"Unknown action “{what}”.", hint="See the alert's page for available actions.")
    act, names, main_field = ORDERS[what]
    given = fields(request, names)
    try:
        messages.success(request, act(row, user, given))
    except NotAllowed:
        # whoever may not order it has no form to go back to
        raise
    except Refusal as refusal:
        field = _field(refusal, given) or main_field
        typed = {f"{what}_{name}": value for name, value in given.items()}
        errors = {f"{what}_{field}": str(refusal)}
        return shown(
            request, row, status=refusal.status, errors=errors, typed=typed, refused=what, refusal=str(refusal)
        )
    back = own_page(request, request.POST.get("next", ""))
    return redirect(f"{back}#alert-{alert_id}" if back else reverse("dashboard:alert", args=[alert_id]))


def _field(refusal: Refusal, given: Given) -> str:
    """The field that a refusal speaks of: its code names one, or it quotes what stands in one."""
    if refusal.code in given:
        return refusal.code
    quoted = [name for name, value in given.items() if value and value in str(refusal)]
    return quoted[-1] if refusal.code in ("unknown_runtime", "wrong_order") and quoted else ""
