"""Teams and their people, over HTTP. Every change needs the scope `admin`; the services check the person's rights."""

from typing import Literal

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field, StrictBool, StrictInt

from farm.accounts import memberships, selectors, services
from farm.accounts.models import Invitation, Membership, Team, User
from farm.accounts.states import Scope
from farm.api.auth import BrowserAuth, TokenAuth, person
from farm.api.shapes import StrictSchema, fill
from farm.contract.api.people import InvitationOut, InvitedOut, LinkOut, MemberOut, Role, TeamWithMembersOut, WaitingOut
from farm.runs.selectors.minutes import minutes_today

router = Router(tags=["account"], auth=[TokenAuth(changes=Scope.ADMIN), BrowserAuth()])


ANSWERS = {"accept": memberships.accept_invitation, "decline": memberships.decline_invitation}


class TeamIn(StrictSchema):
    """A team to make."""

    name: str = Field(min_length=1, max_length=100, description="1 to 100 printable characters, unique on this farm")


class MemberIn(StrictSchema):
    """A person to invite into a team."""

    username: str = Field(min_length=1, max_length=150, description="letters, digits and @ . + - _")
    role: Role = Field(default=Role.MEMBER, description="what they may do there")


class TurnsIn(StrictSchema):
    """Settings of a team's queue; what is left out stays."""

    puts_people_first: StrictBool = Field(
        default=True, description="whether runs that a person asked for go before the farm's own on the team's nodes"
    )
    daily_minutes: StrictInt | None = Field(
        default=None, description="minutes that nodes may measure for it in a day (UTC); null: no limit"
    )


class RoleIn(StrictSchema):
    """The new role of a member."""

    role: Role = Field(description="what they may do in the team from now on")


@router.get("/teams", response=list[TeamWithMembersOut])
def teams(request: HttpRequest) -> list[TeamWithMembersOut]:
    """Your teams with their people; every team for an administrator of the farm."""
    user = person(request)
    default = selectors.default_team(user)
    return [_shape_team(team, user, is_default=team == default) for team in selectors.teams_visible_to(user)]


@router.post("/teams", response={201: TeamWithMembersOut})
def create_team(request: HttpRequest, payload: TeamIn) -> Status[TeamWithMembersOut]:
    """Create a team with you as its admin; administrators of the farm may."""
    user = person(request)
    team = services.create_team(name=payload.name, by=user)
    return Status(201, _shape_team(team, user, is_default=selectors.default_team(user) == team))


@router.patch("/teams/{int:team_id}", response=TeamWithMembersOut)
def change_turns(request: HttpRequest, team_id: int, payload: TurnsIn) -> TeamWithMembersOut:
    """Change who comes first on a team's nodes, and how many minutes a day are measured for it; its admins may."""
    user = person(request)
    team = selectors.team(user, team_id)
    services.set_queue_settings(team=team, by=user, **payload.dict(exclude_unset=True))
    return _shape_team(team, user, is_default=selectors.default_team(user) == team)


@router.post("/teams/{int:team_id}/members", response={201: InvitedOut})
def add_member(request: HttpRequest, team_id: int, payload: MemberIn) -> Status[InvitedOut]:
    """Invite a person into a team. A new person gets an account, and you a link to send them; others have to accept."""
    user = person(request)
    team = selectors.team(user, team_id)
    invited = memberships.invite(team=team, name=payload.username, role=payload.role, by=user)
    name, has_to_accept = invited.user.username, invited.invitation is not None
    return Status(201, fill(InvitedOut, invited, username=name, sign_in_link=invited.link, has_to_accept=has_to_accept))


@router.delete("/teams/{int:team_id}/invitations/{username}", response={204: None})
def withdraw_invitation(request: HttpRequest, team_id: int, username: str) -> Status[None]:
    """Withdraw an invitation that was not answered yet."""
    user = person(request)
    memberships.withdraw_invitation(team=selectors.team(user, team_id), name=username, by=user)
    return Status(204, None)


@router.post("/teams/{int:team_id}/choose", response={204: None})
def choose_team(request: HttpRequest, team_id: int) -> Status[None]:
    """Count a team that others made you a writer of among those that you write in without naming one."""
    user = person(request)
    memberships.choose_team(team=selectors.team(user, team_id), by=user)
    return Status(204, None)


@router.get("/invitations", response=list[InvitationOut])
def invitations(request: HttpRequest) -> list[InvitationOut]:
    """Invitations that wait for your answer."""
    return [_shape_invitation(row) for row in selectors.open_invitations_of(person(request))]


@router.post("/invitations/{int:invitation_id}/{what}", response=InvitationOut)
def answer_invitation(request: HttpRequest, invitation_id: int, what: Literal["accept", "decline"]) -> InvitationOut:
    """Accept or decline an invitation into a team."""
    user = person(request)
    row = selectors.invitation(user, invitation_id)
    ANSWERS[what](invitation=row, by=user)
    return _shape_invitation(row)


@router.patch("/teams/{int:team_id}/members/{username}", response=MemberOut)
def change_member(request: HttpRequest, team_id: int, username: str, payload: RoleIn) -> MemberOut:
    """Give a member another role; one admin has to stay."""
    user = person(request)
    team = selectors.team(user, team_id)
    member = selectors.member_named(username, team=team)
    return _shape_member(memberships.set_role(team=team, user=member, role=payload.role, by=user))


@router.delete("/teams/{int:team_id}/members/{username}", response={204: None})
def remove_member(request: HttpRequest, team_id: int, username: str) -> Status[None]:
    """Remove a person from a team; anybody may leave."""
    user = person(request)
    team = selectors.team(user, team_id)
    memberships.remove_member(team=team, user=selectors.member_named(username, team=team), by=user)
    return Status(204, None)


@router.post("/users/{username}/sign-in-link", response={201: LinkOut})
def make_link(request: HttpRequest, username: str) -> Status[LinkOut]:
    """Make a sign-in link for somebody who is locked out; administrators of the farm may."""
    user = person(request)
    link = services.make_link_for(user=selectors.person_named(username, user=user), by=user)
    return Status(201, LinkOut(sign_in_link=link))


@router.post("/users/{username}/close", response={204: None})
def close_account(request: HttpRequest, username: str) -> Status[None]:
    """Close a person's account, and with it their tokens, sessions and share links."""
    user = person(request)
    services.close_account(user=selectors.person_named(username, user=user), by=user)
    return Status(204, None)


def _shape_invitation(row: Invitation) -> InvitationOut:
    return fill(InvitationOut, row, team=row.team.name, by=row.invited_by.username)


def _shape_team(team: Team, user: User, *, is_default: bool) -> TeamWithMembersOut:
    may_manage = selectors.can_manage(user, team=team)
    waiting = selectors.open_invitations_into(team) if may_manage else []
    return fill(
        TeamWithMembersOut,
        team,
        may_manage=may_manage,
        may_write=selectors.can_write(user, team=team),
        is_default=is_default,
        minutes_today=minutes_today(team),
        invited=[
            fill(WaitingOut, invitation, username=invitation.user.username, by=invitation.invited_by.username)
            for invitation in waiting
        ],
        members=[_shape_member(membership) for membership in selectors.memberships_in(team)],
    )


def _shape_member(membership: Membership) -> MemberOut:
    user = membership.user
    return fill(
        MemberOut,
        membership,
        username=user.username,
        since=membership.created_at,
        last_seen_at=user.last_login,
        is_open=user.is_active,
    )
