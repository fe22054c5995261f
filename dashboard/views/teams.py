"""The pages of teams: members and roles, invitations, turns on the team's nodes, and the retention rule."""

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from dashboard.views.access import action, carry_out, form_page, read_fields, signed_in_user
from farm.accounts import memberships, selectors, services
from farm.accounts.states import WRITING_ROLES, Role
from farm.base.refusals import Conflict, Invalid, Missing
from farm.runs.selectors.minutes import minutes_today
from farm.runs.selectors.retention import find_next_act, find_retention_rule, list_due_removals
from farm.runs.services import set_retention

if TYPE_CHECKING:
    from farm.accounts.models import Team
    from farm.runs.models import RetentionRule


ROLES = {
    Role.VIEWER: "viewer: looks",
    Role.MEMBER: "member: uploads and runs",
    Role.ADMIN: "admin: manages people, nodes and channels",
}


@form_page
def teams(request: HttpRequest) -> HttpResponseBase:
    """Show the reader's teams and invitations. A POST creates a team and redirects to it; a wrong name is shown beside
    the form, other refusals are raised."""
    user, error, status = signed_in_user(request), "", 200
    if request.method == "POST":
        try:
            made = services.create_team(name=request.POST.get("name", ""), by=user)
        except (Invalid, Conflict) as refusal:
            error, status = str(refusal), refusal.status
        else:
            messages.success(request, f"Team {made} was created. Invite its members.")
            return redirect("dashboard:team", made.pk)
    context = {
        "error": error,
        "teams": [(team, selectors.memberships_in(team)) for team in selectors.teams_visible_to(user)],
        "invitations": list(selectors.open_invitations_of(user)),
        "default": selectors.default_team(user),
        "may_make": user.is_superuser,
    }
    return render(request, "dashboard/teams.html", context, status=status)


@form_page
def team(request: HttpRequest, team_id: int) -> HttpResponse:
    """Show the members of a team. A POST invites a person. Somebody who has an account must accept the invitation; for
    a new person an account is made, whose sign-in link is shown this once. What is wrong with the name or the role is
    shown beside the form; other refusals are raised."""
    found = selectors.team(signed_in_user(request), team_id)
    if request.method != "POST":
        return _render_team(request, found)
    name, role = request.POST.get("username", "").strip(), request.POST.get("role", "")
    try:
        made = memberships.invite(team=found, name=name, role=role, by=signed_in_user(request))
    except (Invalid, Conflict) as refusal:
        return _render_team(request, found, status=refusal.status, error=str(refusal), typed=name, typed_role=role)
    if made.invitation is not None:
        messages.success(request, f"{made.user} is invited, and comes into the team by accepting within seven days.")
    return _render_team(request, found, invited_person=made, link=made.link)


@action
def answer(request: HttpRequest, invitation_id: int, what: str) -> HttpResponseBase:
    """Carry out the reader's answer to an invitation, `accept` or `decline`. Redirects to the team that was joined,
    else to the list of teams. Raises Missing for any other answer."""
    user = signed_in_user(request)
    found = selectors.invitation(user, invitation_id)
    if what == "accept":
        done = f"You are {found.role} of team {found.team} now."
        if carry_out(request, memberships.accept_invitation, lambda _: done, invitation=found, by=user):
            return redirect("dashboard:team", found.team_id)
    elif what == "decline":
        done = f"You declined the invitation to team {found.team}."
        carry_out(request, memberships.decline_invitation, lambda _: done, invitation=found, by=user)
    else:
        raise Missing(f"Unknown answer “{what[:40]}” to an invitation.")
    return redirect("dashboard:teams")


@action
def order(request: HttpRequest, team_id: int, username: str, what: str) -> HttpResponseBase:
    """Carry out `role` (change a member's role), `remove`, or `choose` (count the team among those that the reader
    writes in without naming one), and redirect to the team's page, which shows a refusal; after removing oneself, to
    the list of teams. Raises Missing for any other action, for `choose` on another member, and for somebody who is not
    in the team."""
    user, role = signed_in_user(request), request.POST.get("role", "")
    found = selectors.team(user, team_id)
    member = selectors.member_named(username, team=found)
    if what == "role":
        done = f"{member} is {role} now."
        carry_out(request, memberships.set_role, lambda _: done, team=found, user=member, role=role, by=user)
    elif what == "remove":
        done = f"{member} is no longer in team {found}."
        carry_out(request, memberships.remove_member, lambda _: done, team=found, user=member, by=user)
    elif what == "choose" and member == user:
        done = f"Team {found} is among those that you write in without naming one."
        carry_out(request, memberships.choose_team, lambda _: done, team=found, by=user)
    else:
        raise Missing(f"Unknown action “{what[:40]}” for a member.")
    if member == user and what == "remove":
        return redirect("dashboard:teams")
    return redirect("dashboard:team", team_id)


@action
def withdraw(request: HttpRequest, team_id: int, username: str) -> HttpResponseBase:
    """Withdraw an invitation and redirect to the team's page, which shows a refusal."""
    user = signed_in_user(request)
    found = selectors.team(user, team_id)
    done = f"{username} is no longer invited."
    carry_out(request, memberships.withdraw_invitation, lambda _: done, team=found, name=username, by=user)
    return redirect("dashboard:team", team_id)


@action
def save_turns(request: HttpRequest, team_id: int) -> HttpResponseBase:
    """Save whether people come first on the team's nodes (unless `order` is `arrival`), and how many minutes a day are
    measured for the team; an empty field is no limit. Redirects to the team's page, which shows a refusal."""
    user = signed_in_user(request)
    found = selectors.team(user, team_id)
    minutes = request.POST.get("daily_minutes", "").strip()

    def change() -> "Team":
        people_first = request.POST.get("order") != "arrival"
        daily = _parse_whole_number(minutes, "minutes")
        return services.set_queue_settings(team=found, by=user, puts_people_first=people_first, daily_minutes=daily)

    carry_out(request, change, lambda team: f"Turns of team {team} were changed.")
    return redirect("dashboard:team", team_id)


def _render_team(request: HttpRequest, found: "Team", *, status: int = 200, **more: object) -> HttpResponse:
    user = signed_in_user(request)
    may_manage = selectors.can_manage(user, team=found)
    mine = selectors.membership(user, found)
    context = {
        "team": found,
        "members": selectors.memberships_in(found),
        "may_manage": may_manage,
        "invited": selectors.open_invitations_into(found) if may_manage else [],
        "must_be_named": mine is not None and mine.role in WRITING_ROLES and not mine.is_chosen,
        "roles": ROLES.items(),
        "typed_role": Role.MEMBER,
        "groups": selectors.mapped_groups(found),
        "minutes_today": minutes_today(found),
        **more,
    }
    return render(request, "dashboard/team.html", context, status=status)


FIELDS = {
    "timings_days": "Raw timings",
    "traces_days": "Raw traces, compiled models",
    "models_days": "Models without a run",
    "branches_days": "Versions of branches",
}


@form_page
def retention(request: HttpRequest, team_id: int) -> HttpResponseBase:
    """Show the team's retention rule, with what it will remove when it next acts. A POST sets the rule, where an empty
    field is no limit; it redirects to the page, which shows a refusal. Nothing is removed here."""
    user = signed_in_user(request)
    rule = find_retention_rule(user, team_id)
    if request.method == "POST":
        typed = read_fields(request, FIELDS)

        def change() -> "RetentionRule":
            days = {name: _parse_whole_number(text, "days") for name, text in typed.items()}
            return set_retention(team=rule.team, by=user, **days)

        carry_out(request, change, _describe_rule)
        return redirect("dashboard:retention", team_id)
    shown = {
        "team": rule.team,
        "rule": rule,
        "next_act": find_next_act(rule),
        "doomed": list_due_removals(rule),
        "kept": [(name, heading, getattr(rule, name)) for name, heading in FIELDS.items()],
        "may_manage": selectors.can_manage(user, team=rule.team),
    }
    return render(request, "dashboard/retention.html", shown)


def _describe_rule(rule: "RetentionRule") -> str:
    if find_next_act(rule) is None:
        return "The rule was set: everything is kept."
    return f"The rule was set; it acts from {rule.acts_from:%Y-%m-%d %H:%M} UTC."


def _parse_whole_number(text: str, unit: str) -> int | None:
    """Parse a whole number; None for an empty text, which means no limit. Raises Invalid for other texts and for more
    than seven digits."""
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 7:
        raise Invalid(f"“{text[:20]}” cannot be read as a number of {unit}.", code=unit)
    return int(text)
