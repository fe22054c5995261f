"""The reader's own tokens and teams, and the channels of the teams."""

from datetime import timedelta
from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from dashboard.reading import channels as channel_reading
from dashboard.views.access import action, page, person
from dashboard.views.team_choice import team_choice
from farm.accounts import selectors, services
from farm.accounts.states import Scope
from farm.alerts.selectors.alerts import channels_visible_to
from farm.alerts.selectors.outbox import fates
from farm.base.refusals import Missing, Refusal

if TYPE_CHECKING:
    from farm.accounts.models import Team, User


@page
def settings(request: HttpRequest) -> HttpResponse:
    """Tokens, teams, and the commands that use a token."""
    return shown(request)


@action
def issue(request: HttpRequest) -> HttpResponse:
    """A new token; its secret is on this page once, and nowhere after."""
    scopes = request.POST.getlist("scopes")
    name, days = request.POST.get("name", "").strip(), request.POST.get("days", str(services.TOKEN_DAYS))
    try:
        life = timedelta(days=int(days) if days.isdecimal() and len(days) < 5 else 0)
        _, secret = services.issue_token(person(request), scopes, name=name, life=life)
    except Refusal as refusal:
        typed = {"name": name, "scopes": scopes, "days": days}
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
        **_channels(user, [team for team, _ in teams], typed_team=typed_team),
        **more,
    }
    return render(request, "dashboard/settings.html", context, status=status)


def _channels(user: "User", teams: list["Team"], *, typed_team: str) -> dict[str, object]:
    """The channels of the reader's teams, and what a new one may be."""
    channels = list(channels_visible_to(user))
    managed = [team for team in teams if selectors.can_manage(user, team=team)]
    return {
        "channels": channel_reading.lines(channels, fates(channels), managed=[team.pk for team in managed]),
        "managed": managed,
        "team_choice": team_choice(user, typed=typed_team, among=managed),
        "channel_kinds": channel_reading.KINDS,
        "digests": channel_reading.DIGESTS,
        "channel_errors": {},
        "channel_typed": {"kind": "webhook"},
    }
