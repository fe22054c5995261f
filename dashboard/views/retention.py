"""How long a team keeps raw timings, traces and unused models, and what would go next."""

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render

from dashboard.views.access import fields, form_page, ordered, person
from farm.accounts import selectors
from farm.base.refusals import Invalid
from farm.runs.selectors.retention import doomed, next_act, retention_of
from farm.runs.services import set_retention

if TYPE_CHECKING:
    from farm.runs.models import RetentionRule

FIELDS = {
    "timings_days": "Raw timings",
    "traces_days": "Raw traces, compiled models",
    "models_days": "Models without a run",
}


@form_page
def retention(request: HttpRequest, team_id: int) -> HttpResponseBase:
    """The team's rule, with counts and bytes of what goes when it acts next; a POST sets it."""
    user = person(request)
    rule = retention_of(user, team_id)
    if request.method == "POST":
        typed = fields(request, FIELDS)
        ordered(
            request,
            lambda: set_retention(team=rule.team, by=user, **{name: _days(text) for name, text in typed.items()}),
            _told,
        )
        return redirect("dashboard:retention", team_id)
    shown = {
        "team": rule.team,
        "rule": rule,
        "next_act": next_act(rule),
        "doomed": doomed(rule),
        "kept": [(name, heading, getattr(rule, name)) for name, heading in FIELDS.items()],
        "may_manage": selectors.can_manage(user, team=rule.team),
    }
    return render(request, "dashboard/retention.html", shown)


def _told(rule: "RetentionRule") -> str:
    if next_act(rule) is None:
        return "The rule was set: everything is kept."
    return f"The rule was set; it acts from {rule.acts_from:%Y-%m-%d %H:%M} UTC."


def _days(text: str) -> int | None:
    """Raises Invalid for what is no number; nothing at all keeps a kind for good."""
    if not text:
        return None
    if not text.isdecimal() or len(text) > 5:
        raise Invalid(f"“{text[:20]}” cannot be read as a number of days.", code="days")
    return int(text)
