"""Teams: who is in them, in which role; inviting people, for those who manage a team."""

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.views.access import page, person
from farm.accounts import selectors, services
from farm.accounts.states import Role
from farm.base.refusals import Missing, Refusal

if TYPE_CHECKING:
    from farm.accounts.models import Team

ROLES = {
    Role.VIEWER: "viewer: looks",
    Role.MEMBER: "member: uploads and runs",
    Role.ADMIN: "admin: manages people, nodes and channels",
}


@page
@require_http_methods(["GET", "POST"])
def teams(request: HttpRequest) -> HttpResponseBase:
    """The reader's teams; a POST makes one."""
    user = person(request)
    if request.method == "POST":
        made = services.open_team(name=request.POST.get("name", ""), by=user)
        messages.success(request, f"Team {made} was created. Invite its members.")
        return redirect("dashboard:team", made.pk)
    lines = [(team, selectors.members_of(team)) for team in selectors.teams_visible_to(user)]
    return render(request, "dashboard/teams.html", {"teams": lines, "may_make": user.is_superuser})


@page
@require_http_methods(["GET", "POST"])
def team(request: HttpRequest, team_id: int) -> HttpResponse:
    """A team's people; a POST puts somebody into it, and shows a new person's link once."""
    found = selectors.team(person(request), team_id)
    if request.method == "GET":
        return _shown(request, found)
    name, role = request.POST.get("username", "").strip(), request.POST.get("role", "")
    membership, link = services.invite(team=found, name=name, role=role, by=person(request))
    if link is None:
        messages.success(request, f"{membership.user} is now a member of the team.")
    return _shown(request, found, invited=membership.user, link=link)


@page
@require_POST
def order(request: HttpRequest, team_id: int, username: str, what: str) -> HttpResponseBase:
    """Another role for a member, or their leaving; a refusal is said on the team's page."""
    user = person(request)
    found = selectors.team(user, team_id)
    member = selectors.member_named(username, team=found)
    try:
        if what == "role":
            services.set_role(team=found, user=member, role=request.POST.get("role", ""), by=user)
            messages.success(request, f"{member} is {request.POST.get('role')} now.")
        elif what == "remove":
            services.remove_member(team=found, user=member, by=user)
            messages.success(request, f"{member} is no longer in team {found}.")
        else:
            raise Missing(f"Unknown action “{what[:40]}” for a member.")
    except Refusal as refusal:
        messages.error(request, str(refusal))
    if member == user and what == "remove":
        return redirect("dashboard:teams")
    return redirect("dashboard:team", team_id)


def _shown(request: HttpRequest, found: "Team", **more: object) -> HttpResponse:
    context = {
        "team": found,
        "members": selectors.members_of(found),
        "may_manage": selectors.can_manage(person(request), team=found),
        "roles": ROLES.items(),
        "groups": selectors.groups_that_rule(found),
        **more,
    }
    return render(request, "dashboard/team.html", context)
