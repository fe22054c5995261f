"""The reader's own tokens and teams, and the teams' channels: tried out, silenced, with their messages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from dashboard.reading.facts import Fact
from dashboard.views.access import action, fields, page, person, team_choice
from farm.accounts import selectors, services
from farm.accounts.selectors import can_manage, team_to_write
from farm.accounts.states import Scope
from farm.alerts.selectors import channels as channel_selectors
from farm.alerts.selectors.channels import Fate, channels_visible_to, fates, kind, kinds, shown_target
from farm.alerts.services import channels as channel_services
from farm.base.refusals import Missing, Refusal
from farm.registry import services as registry
from farm.registry.selectors import package_indexes
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, counted, moment, verdict_entry
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.accounts.models import Team, User
    from farm.alerts.channels.channel_kind import ChannelKind
    from farm.alerts.models import Channel, Delivery


DIGESTS = (("never", "no digest"), ("day", "every day"), ("week", "every week"))
FIELD_OF_CODE = {
    **dict.fromkeys(("bad_name", "name_taken", "too_many"), "name"),
    **dict.fromkeys(("not_found", "not_allowed", "team_not_named"), "team"),
    **{"unknown_kind": "kind", "no_mail": "kind", "digest": "digest"},
}
COLUMNS: tuple[Column["Delivery"], ...] = (
    Column("Message", lambda one: Entry(one.kind, href=_alert(one))),
    Column("State", lambda one: verdict_entry(one.state, soft="permanently" if one.state == "failed" else _again(one))),
    Prose("Subject", lambda one: Entry(one.subject)),
    Number("tries", lambda one: counted(one.tries)),
    Prose("Problem", lambda one: Entry(one.problem)),
    Column("Made", lambda one: moment(one.created_at)),
    Column("Sent", lambda one: moment(one.sent_at)),
)
FIELDS = ("team", "name", "kind", "target", "digest")
MESSAGES_SHOWN = 100


@dataclass(frozen=True)
class Line:
    """One channel. `fate` in words; `problem`: why messages failed for good, empty where none did."""

    channel: "Channel"
    kind: "ChannelKind"
    target: str
    digest: str
    fate: str
    problem: str
    may_manage: bool


def lines(channels: Iterable["Channel"], fates: Mapping[int, Fate], *, managed: Iterable[int]) -> list[Line]:
    """Channels with the fate of their messages. `managed`: teams whose channels the reader may change."""
    teams = set(managed)
    return [_line(channel, fates.get(channel.pk, Fate()), channel.team_id in teams) for channel in channels]


def _line(channel: "Channel", fate: Fate, may_manage: bool) -> Line:
    problem = ""
    if fate.failed:
        problem = f"{numbers.counted(fate.failed, 'message')} failed permanently; last error: {fate.problem}"
    return Line(
        channel, kind(channel), shown_target(channel), dict(DIGESTS)[channel.digest], _fate(fate), problem, may_manage
    )


def _fate(fate: Fate) -> str:
    parts = [f"{fate.sent} sent"] if fate.sent else []
    parts += [f"{fate.waiting} pending"] if fate.waiting else []
    return ", ".join(parts) or "no messages yet"


def _alert(one: "Delivery") -> str:
    alert = one.event.alert_id if one.event else None
    return reverse("dashboard:alert", args=[alert]) if alert else ""


def _again(one: "Delivery") -> str:
    return f"retry at {one.due_at:%H:%M} UTC" if one.state == "waiting" and one.tries else ""


@page
def settings(request: HttpRequest) -> HttpResponse:
    """Tokens, teams, and the commands that use a token."""
    return shown(request)


@action
def issue(request: HttpRequest) -> HttpResponse:
    """A new token; its secret is on this page once, and nowhere after."""
    scopes = request.POST.getlist("scopes")
    name, days = request.POST.get("name", "").strip(), request.POST.get("days", str(services.TOKEN_DAYS))
    team = request.POST.get("team", "")
    try:
        life = timedelta(days=int(days) if days.isdecimal() and len(days) < 5 else 0)
        _, secret = services.issue_token(person(request), scopes, name=name, life=life, team=team)
    except Refusal as refusal:
        typed = {"name": name, "scopes": scopes, "days": days, "team": team}
        return shown(request, errors={"scopes": str(refusal)}, typed=typed, status=refusal.status)
    return shown(request, secret=secret)


@action
def revoke(request: HttpRequest, token_id: int) -> HttpResponseBase:
    """Closes one of the reader's tokens."""
    token = selectors.tokens_of(person(request)).filter(pk=token_id).first()
    if token is None:
        raise Missing(f"You have no token {token_id}.", hint="It may already be revoked: see your settings.")
    services.revoke_token(token=token, by=person(request))
    messages.success(request, f"The token {token.hint}… was revoked.")
    return redirect("dashboard:settings")


@action
def add_index(request: HttpRequest) -> HttpResponseBase:
    """A package index beside the usual one; a refusal stands beside the form, with what was typed."""
    given = fields(request, ("name", "url"))
    try:
        made = registry.add_index(by=person(request), **given)
    except Refusal as refusal:
        # an address that was refused may hold a password
        return shown(request, index_error=str(refusal), index_name=given["name"], status=refusal.status)
    messages.success(request, f"The index {made} was added; its builds are offered after the next look at it.")
    return redirect(f"{reverse('dashboard:settings')}#indexes")


@action
def remove_index(request: HttpRequest, name: str) -> HttpResponseBase:
    """Nothing of the index is installed any more."""
    registry.remove_index(by=person(request), name=name)
    messages.success(request, f"The index {name} was removed.")
    return redirect(f"{reverse('dashboard:settings')}#indexes")


def shown(request: HttpRequest, *, status: int = 200, **more: object) -> HttpResponse:
    """The settings; `more`: what was typed, errors, and a secret that is shown once."""
    user = person(request)
    typed = more.get("channel_typed")
    typed_team = str(typed.get("team", "")) if isinstance(typed, dict) else ""
    teams = [(team, list(selectors.members_of(team))) for team in selectors.teams_visible_to(user)]
    context = {
        "tokens": list(selectors.tokens_of(user)),
        "teams": teams,
        "invitations": list(selectors.invitations_of(user)),
        "scopes": Scope.choices,
        "typed": {"name": "", "scopes": [Scope.READ, Scope.WRITE]},
        "indexes": list(package_indexes()) if user.is_superuser else [],
        **_channels(user, [team for team, _ in teams], typed_team=typed_team),
        **more,
    }
    return render(request, "dashboard/settings.html", context, status=status)


def _channels(user: "User", teams: list["Team"], *, typed_team: str) -> dict[str, object]:
    """The channels of the reader's teams, and what a new one may be."""
    channels = list(channels_visible_to(user))
    managed = [team for team in teams if selectors.can_manage(user, team=team)]
    return {
        "channels": lines(channels, fates(channels), managed=[team.pk for team in managed]),
        "managed": managed,
        "team_choice": team_choice(user, typed=typed_team, among=managed),
        "channel_kinds": kinds(),
        "digests": DIGESTS,
        "channel_errors": {},
        "channel_typed": {"kind": "webhook"},
    }


@action
def add(request: HttpRequest) -> HttpResponseBase:
    """A new channel; a refusal stands on the settings page, beside its field, with what was typed."""
    user = person(request)
    given = fields(request, FIELDS)
    try:
        team = team_to_write(user, name=given["team"])
        rest = {name: given[name] for name in FIELDS if name != "team"}
        made = channel_services.create_channel(team=team, by=user, **rest)
    except Refusal as refusal:
        errors = {FIELD_OF_CODE.get(refusal.code, "target"): str(refusal)}
        return shown(request, channel_errors=errors, channel_typed=given, status=refusal.status)
    messages.success(request, f"“{made.name}” was added. Send a test message to check it.")
    return redirect(f"{reverse('dashboard:settings')}#channels")


@page
def channel(request: HttpRequest, channel_id: int) -> HttpResponse:
    """One channel with its messages."""
    return _shown(request, channel_selectors.channel(person(request), channel_id))


def _shown(request: HttpRequest, row: "Channel", **more: object) -> HttpResponse:
    managed = [row.team_id] if can_manage(person(request), team=row.team) else []
    deliveries = channel_selectors.deliveries_of(row).select_related("event")[:MESSAGES_SHOWN]
    line = lines([row], fates([row]), managed=managed)[0]
    context = {
        "line": line,
        "channel": row,
        "facts": [
            Fact("Kind", line.kind.title),
            Fact("Address", line.target, is_name=True),
            Fact("Digest", line.digest),
            *([Fact("Next digest", at=row.digest_at)] if row.digest_at else []),
            Fact("Team", str(row.team)),
            Fact("Added", at=row.created_at),
        ],
        "messages_table": Table.of("messages", "Messages to this channel", COLUMNS, deliveries),
        **more,
    }
    return render(request, "dashboard/channel.html", context)


@action
def order(request: HttpRequest, channel_id: int, what: str) -> HttpResponseBase:
    """Try it out, silence it, tell it again, remove it, show or renew its secret."""
    user = person(request)
    row = channel_selectors.channel(user, channel_id)
    if what in ("secret", "renew"):
        act = channel_services.shown_secret if what == "secret" else channel_services.renew_secret
        return _shown(request, row, secret=act(channel=row, by=user))
    if what not in DONE:
        raise Missing(f"Unknown action “{what}”.", hint="See the channel's page for available actions.")
    if what == "test":
        channel_services.test_channel(channel=row, by=user)
    elif what == "remove":
        channel_services.remove_channel(channel=row, by=user)
    else:
        channel_services.switch_channel(channel=row, by=user, is_active=what == "listen")
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
