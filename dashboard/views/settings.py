"""The pages of the settings: the steps of setting up, tokens, the teams' channels, package indexes, and backups."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from dashboard.reading import setup
from dashboard.reading.facts import Fact
from dashboard.views import access
from dashboard.views.access import action, form_page, page, signed_in_user
from farm.accounts import selectors, services
from farm.accounts.selectors import can_manage, team_to_write
from farm.accounts.states import Scope
from farm.alerts.selectors import channels as channel_selectors
from farm.alerts.selectors.channels import Tally, channels_visible_to, count_deliveries, kind, kinds, shown_target
from farm.alerts.services import channels as channel_services
from farm.base.refusals import Missing, Refusal
from farm.registry import services as registry
from farm.registry.selectors import package_indexes
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_count, as_time, verdict_entry
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.alerts.channels.channel_kind import ChannelKind
    from farm.alerts.models import Channel, Delivery


DIGESTS = (("never", "no digest"), ("day", "every day"), ("week", "every week"))
FIELD_OF_CODE = {
    **dict.fromkeys(("bad_name", "name_taken", "too_many"), "name"),
    **dict.fromkeys(("not_found", "not_allowed", "team_not_named"), "team"),
    **{"unknown_kind": "kind", "no_mail": "kind", "digest": "digest"},
}
COLUMNS: tuple[Column["Delivery"], ...] = (
    Column("Message", lambda delivery: Entry(delivery.kind, href=_find_alert_address(delivery))),
    Column("State", lambda delivery: _state_entry(delivery)),
    Prose("Subject", lambda delivery: Entry(delivery.subject)),
    Number("tries", lambda delivery: as_count(delivery.tries)),
    Prose("Problem", lambda delivery: Entry(delivery.problem)),
    Column("Made", lambda delivery: as_time(delivery.created_at)),
    Column("Sent", lambda delivery: as_time(delivery.sent_at)),
)
FIELDS = ("team", "name", "kind", "target", "digest")
# what a token of each scope may do
SCOPES = {
    Scope.READ: "view everything that you have access to",
    Scope.WRITE: "upload models, start runs and watches, triage alerts, share",
    Scope.NODES: "invite, approve, limit and retire nodes",
    Scope.ADMIN: "create tokens and channels; together with write, manage nodes too",
    Scope.GATE: "for a CI of one team: upload and measure a branch’s models; with no other scope",
}
MESSAGES_SHOWN = 100
# the actions on a channel, each with its service, and the end of the message when it is done
ORDERS: dict[str, tuple[Callable[..., object], str]] = {
    "test": (channel_services.test_channel, "gets a test message; its delivery status appears below"),
    "silence": (partial(channel_services.switch_channel, is_active=False), "is paused"),
    "listen": (partial(channel_services.switch_channel, is_active=True), "is resumed"),
    "remove": (channel_services.remove_channel, "is removed"),
}


@dataclass(frozen=True)
class Line:
    """A channel in the list. `fate`: how many messages were sent and how many are pending, in words; `problem`: how
    many messages failed permanently, with the last error, empty where none did."""

    channel: "Channel"
    kind: "ChannelKind"
    target: str
    digest: str
    fate: str
    problem: str
    may_manage: bool


def make_lines(channels: Iterable["Channel"], tallies: Mapping[int, Tally], *, managed: Iterable[int]) -> list[Line]:
    """Make the rows of the list of channels. `tallies`: the counts of messages by the channel's number, where a missing
    one counts as 0; `managed`: the numbers of the teams whose channels the reader may change."""
    teams = set(managed)
    return [_make_line(channel, tallies.get(channel.pk, Tally()), channel.team_id in teams) for channel in channels]


def _make_line(channel: "Channel", tally: Tally, may_manage: bool) -> Line:
    problem = ""
    if tally.failed:
        problem = f"{numbers.counted(tally.failed, 'message')} failed permanently; last error: {tally.problem}"
    counts = [f"{count} {what}" for count, what in ((tally.sent, "sent"), (tally.waiting, "pending")) if count]
    return Line(
        channel=channel,
        kind=kind(channel),
        target=shown_target(channel),
        digest=dict(DIGESTS)[channel.digest],
        fate=", ".join(counts) or "no messages yet",
        problem=problem,
        may_manage=may_manage,
    )


def _find_alert_address(delivery: "Delivery") -> str:
    alert = delivery.event.alert_id if delivery.event else None
    return reverse("dashboard:alert", args=[alert]) if alert else ""


def _state_entry(delivery: "Delivery") -> Entry:
    retry = f"retry at {delivery.due_at:%H:%M} UTC" if delivery.state == "waiting" and delivery.tries else ""
    return verdict_entry(delivery.state, soft="permanently" if delivery.state == "failed" else retry)


@page
def settings(request: HttpRequest) -> HttpResponseBase:
    """Show the steps of setting up the farm to an administrator; others are redirected to their tokens."""
    user = signed_in_user(request)
    if not user.is_superuser:
        return redirect("dashboard:tokens")
    steps = setup.list_steps(user)
    return render(request, "dashboard/settings.html", {"steps": steps, "headline": setup.write_headline(steps)})


@page
def backup(request: HttpRequest) -> HttpResponse:
    """Show when the last backup was made, and the commands for making and restoring one. Raises NotAllowed for people
    who do not administer the farm."""
    access.require_administrator(request, "its backups")
    commands = {what: f"onnxfarm farm {what} farm.backup {setup.write_home_option()}" for what in ("backup", "restore")}
    return render(request, "dashboard/backup.html", {"last": selectors.last_backup(), **commands})


@form_page
def tokens(request: HttpRequest) -> HttpResponse:
    """Show the reader's tokens. A POST creates a token and shows its secret, this once, or shows what is wrong. It
    lasts TOKEN_DAYS where the form has no `days`."""
    if request.method != "POST":
        return _render_tokens(request)
    scopes, typed = request.POST.getlist("scopes"), access.read_fields(request, ("name", "days", "team"))
    try:
        life = timedelta(days=access.read_number(request, "days") if "days" in request.POST else services.TOKEN_DAYS)
        user, name, team = signed_in_user(request), typed["name"], typed["team"]
        _, secret = services.issue_token(user, scopes, name=name, life=life, team=team)
    except Refusal as refusal:
        shown = {**typed, "scopes": scopes}
        return _render_tokens(request, errors={"scopes": str(refusal)}, typed=shown, status=refusal.status)
    return _render_tokens(request, secret=secret)


def _render_tokens(request: HttpRequest, *, status: int = 200, **more: object) -> HttpResponse:
    user = signed_in_user(request)
    context = {
        "tokens": list(selectors.tokens_of(user)),
        "teams": list(selectors.teams_visible_to(user)),
        "scopes": SCOPES.items(),
        "typed": {"name": "", "scopes": [Scope.READ, Scope.WRITE]},
        **more,
    }
    return render(request, "dashboard/tokens.html", context, status=status)


@action
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponseBase:
    """Revoke a token of the reader. Redirects to the tokens. A revoked token stays so. Raises Missing for tokens of
    others."""
    token = selectors.tokens_of(signed_in_user(request)).filter(pk=token_id).first()
    if token is None:
        raise Missing(f"You have no token {token_id}.", hint="It may already be revoked: see your settings.")
    services.revoke_token(token=token, by=signed_in_user(request))
    messages.success(request, f"The token {token.hint}… was revoked.")
    return redirect("dashboard:tokens")


@form_page
def indexes(request: HttpRequest) -> HttpResponseBase:
    """Show the package indexes that are used besides PyPI. A POST adds an index; a refusal is shown, and only the typed
    name is kept. Raises NotAllowed for people who do not administer the farm."""
    access.require_administrator(request, "its package indexes")
    given, problem = access.read_fields(request, ("name", "url")), ""
    if request.method == "POST":
        try:
            made = registry.add_index(by=signed_in_user(request), **given)
        except Refusal as refusal:
            problem, status = str(refusal), refusal.status
        else:
            messages.success(request, f"The index {made} was added; its builds are offered after the next look at it.")
            return redirect("dashboard:indexes")
    # the typed address is not shown again, because it may contain a password
    context = {"indexes": list(package_indexes()), "index_error": problem, "index_name": given["name"]}
    return render(request, "dashboard/indexes.html", context, status=status if problem else 200)


@action
def remove_index(request: HttpRequest, name: str) -> HttpResponseBase:
    """Remove an index, from which nothing is installed any more, and redirect to the list. A refusal is raised."""
    registry.remove_index(by=signed_in_user(request), name=name)
    messages.success(request, f"The index {name} was removed.")
    return redirect("dashboard:indexes")


@form_page
def channels(request: HttpRequest) -> HttpResponseBase:
    """Show the channels of the reader's teams. A POST adds a channel; a refusal is shown at its field."""
    if request.method != "POST":
        return _render_channels(request)
    user = signed_in_user(request)
    given = access.read_fields(request, FIELDS)
    try:
        team = team_to_write(user, name=given["team"])
        rest = {name: given[name] for name in FIELDS if name != "team"}
        made = channel_services.create_channel(team=team, by=user, **rest)
    except Refusal as refusal:
        errors = {FIELD_OF_CODE.get(refusal.code, "target"): str(refusal)}
        return _render_channels(request, typed=given, errors=errors, status=refusal.status)
    messages.success(request, f"“{made.name}” was added. Send a test message to check it.")
    return redirect("dashboard:channels")


def _render_channels(
    request: HttpRequest, *, typed: Mapping[str, str] = {}, errors: Mapping[str, str] = {}, status: int = 200
) -> HttpResponse:
    user = signed_in_user(request)
    shown = list(channels_visible_to(user))
    managed = [team for team in selectors.teams_visible_to(user) if selectors.can_manage(user, team=team)]
    context = {
        "channels": make_lines(shown, count_deliveries(shown), managed=[team.pk for team in managed]),
        "managed": managed,
        "team_choice": access.team_choice(user, typed=typed.get("team", ""), among=managed),
        "channel_kinds": kinds(),
        "digests": DIGESTS,
        "channel_errors": errors,
        "channel_typed": typed or {"kind": "webhook"},
    }
    return render(request, "dashboard/channels.html", context, status=status)


@page
def channel(request: HttpRequest, channel_id: int) -> HttpResponse:
    return _render_channel(request, channel_selectors.channel(signed_in_user(request), channel_id))


def _render_channel(request: HttpRequest, row: "Channel", **more: object) -> HttpResponse:
    managed = [row.team_id] if can_manage(signed_in_user(request), team=row.team) else []
    deliveries = channel_selectors.deliveries_of(row).select_related("event")[:MESSAGES_SHOWN]
    line = make_lines([row], count_deliveries([row]), managed=managed)[0]
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
    """Carry out the action `what` on a channel, `test`, `silence` (pause), `listen` (resume) or `remove` (which deletes
    its messages too), and redirect to the channel, or after `remove` to the list. `secret` and `renew` instead render
    the channel's page with its secret, which `renew` replaces first. Raises Missing for any other action, and refusals
    of these."""
    user = signed_in_user(request)
    row = channel_selectors.channel(user, channel_id)
    if what in ("secret", "renew"):
        find_secret = channel_services.read_secret if what == "secret" else channel_services.renew_secret
        return _render_channel(request, row, secret=find_secret(channel=row, by=user))
    if what not in ORDERS:
        raise Missing(f"Unknown action “{what}”.", hint="See the channel's page for available actions.")
    act, done = ORDERS[what]
    act(channel=row, by=user)
    messages.success(request, f"“{row.name}” {done}.")
    if what == "remove":
        return redirect("dashboard:channels")
    return redirect("dashboard:channel", channel_id=channel_id)
