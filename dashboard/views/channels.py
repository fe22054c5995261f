"""Channels: added in the settings, tried out, silenced, and what became of their messages."""

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from dashboard.reading import channels as reading
from dashboard.views import settings
from dashboard.views.access import action, fields, page, person
from farm.accounts.selectors import can_manage, team_to_write
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors.outbox import fates
from farm.alerts.services import channels as services
from farm.base.refusals import Missing, Refusal

if TYPE_CHECKING:
    from farm.alerts.models import Channel

FIELDS = ("team", "name", "kind", "target", "digest")
MESSAGES_SHOWN = 100


@action
def add(request: HttpRequest) -> HttpResponseBase:
    """A new channel; a refusal stands on the settings page, beside its field, with what was typed."""
    user = person(request)
    given = fields(request, FIELDS)
    try:
        team = team_to_write(user, name=given["team"])
        rest = {name: given[name] for name in FIELDS if name != "team"}
        made = services.create_channel(team=team, by=user, **rest)
    except Refusal as refusal:
        errors = {reading.field_of(refusal): str(refusal)}
        return settings.shown(request, channel_errors=errors, channel_typed=given, status=refusal.status)
    messages.success(request, f"“{made.name}” was added. Send a test message to check it.")
    return redirect(f"{reverse('dashboard:settings')}#channels")


@page
def channel(request: HttpRequest, channel_id: int) -> HttpResponse:
    """One channel with its messages."""
    return _shown(request, selectors.channel(person(request), channel_id))


def _shown(request: HttpRequest, row: "Channel", **more: object) -> HttpResponse:
    managed = [row.team_id] if can_manage(person(request), team=row.team) else []
    deliveries = selectors.deliveries_of(row).select_related("event")[:MESSAGES_SHOWN]
    context = {
        "line": reading.lines([row], fates([row]), managed=managed)[0],
        "channel": row,
        "messages_table": reading.messages_table(deliveries),
        **more,
    }
    return render(request, "dashboard/channel.html", context)


@action
def order(request: HttpRequest, channel_id: int, what: str) -> HttpResponseBase:
    """Try it out, silence it, tell it again, remove it, show or renew its secret."""
    user = person(request)
    row = selectors.channel(user, channel_id)
    if what in ("secret", "renew"):
        act = services.shown_secret if what == "secret" else services.renew_secret
        return _shown(request, row, secret=act(channel=row, by=user))
    if what not in DONE:
        raise Missing(f"Unknown action “{what}”.", hint="See the channel's page for available actions.")
    if what == "test":
        services.test_channel(channel=row, by=user)
    elif what == "remove":
        services.remove_channel(channel=row, by=user)
    else:
        services.switch_channel(channel=row, by=user, is_active=what == "listen")
    messages.success(request, f"“{row.name}” {DONE[what]}.")
    if what == "remove":
        return redirect(f"{reverse('dashboard:settings')}#channels")
    return redirect("dashboard:channel", channel_id=channel_id)


DONE = {
    "test": "gets a test message; its delivery status appears below",
    "silence": "is paused",
    "listen": "is resumed",
    "remove": "is removed",
}
