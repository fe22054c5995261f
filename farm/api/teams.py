"""Teams and their people, over HTTP. Changing anything needs the scope `admin`; who may is the services' to say."""

from datetime import datetime

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from farm.accounts import selectors, services
from farm.accounts.models import Membership, Team, User
from farm.accounts.states import Role, Scope
from farm.api.auth import BrowserAuth, TokenAuth, person

router = Router(tags=["account"], auth=[TokenAuth(changes=Scope.ADMIN), BrowserAuth()])


class MemberOut(Schema):
    """A person in a team."""

    username: str = Field(description="the person's name on this farm")
    role: Role = Field(description="viewer: looks; member: uploads and runs; admin: manages members, nodes, channels")
    since: datetime = Field(description="when they came into the team")
    last_seen_at: datetime | None = Field(description="when they last signed in; null: never")
    is_open: bool = Field(description="whether their account opens anything: an administrator may close it")


class InvitedOut(MemberOut):
    """A person who was put into a team."""

    sign_in_link: str | None = Field(
        description="signs a new person in once, within seven days; shown this once. null: they have an account already"
    )


class TeamWithMembersOut(Schema):
    """A team with its people."""

    id: int = Field(description="the team's number, as addresses name it")
    name: str = Field(description="the team's name")
    may_manage: bool = Field(description="whether you may change its members")
    members: list[MemberOut] = Field(description="by name")


class TeamIn(Schema):
    """A team to make."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=100, description="1 to 100 printable characters, unique on this farm")


class MemberIn(Schema):
    """A person to put into a team."""

    model_config = ConfigDict(extra="forbid")

    username: str = Field(min_length=1, max_length=150, description="letters, digits and @ . + - _")
    role: Role = Field(default=Role.MEMBER, description="what they may do there")


class RoleIn(Schema):
    """Another role."""

    model_config = ConfigDict(extra="forbid")

    role: Role = Field(description="what they may do in the team from now on")


class LinkOut(Schema):
    """A one-time link."""

    sign_in_link: str = Field(description="signs the person in once, within the hour; shown this once")


@router.get("/teams", response=list[TeamWithMembersOut])
def teams(request: HttpRequest) -> list[TeamWithMembersOut]:
    """Your teams with their people; every team for an administrator of the farm."""
    return [_team(team, person(request)) for team in selectors.teams_visible_to(person(request))]


@router.post("/teams", response={201: TeamWithMembersOut})
def create_team(request: HttpRequest, payload: TeamIn) -> Status[TeamWithMembersOut]:
    """A new team with you as its admin; administrators of the farm may."""
    return Status(201, _team(services.open_team(name=payload.name, by=person(request)), person(request)))


@router.post("/teams/{int:team_id}/members", response={201: InvitedOut})
def add_member(request: HttpRequest, team_id: int, payload: MemberIn) -> Status[InvitedOut]:
    """Put a person into a team. A new person gets an account, and you a link to send them."""
    user = person(request)
    membership, link = services.invite(
        team=selectors.team(user, team_id), name=payload.username, role=payload.role, by=user
    )
    return Status(201, InvitedOut(**_member(membership).dict(), sign_in_link=link))


@router.patch("/teams/{int:team_id}/members/{username}", response=MemberOut)
def change_member(request: HttpRequest, team_id: int, username: str, payload: RoleIn) -> MemberOut:
    """Give a member another role; one admin has to stay."""
    user = person(request)
    team = selectors.team(user, team_id)
    member = selectors.member_named(username, team=team)
    return _member(services.set_role(team=team, user=member, role=payload.role, by=user))


@router.delete("/teams/{int:team_id}/members/{username}", response={204: None})
def remove_member(request: HttpRequest, team_id: int, username: str) -> Status[None]:
    """Take a person out of a team; anybody may take themselves out."""
    user = person(request)
    team = selectors.team(user, team_id)
    services.remove_member(team=team, user=selectors.member_named(username, team=team), by=user)
    return Status(204, None)


@router.post("/users/{username}/sign-in-link", response={201: LinkOut})
def make_link(request: HttpRequest, username: str) -> Status[LinkOut]:
    """A link for somebody who is locked out; administrators of the farm may."""
    user = person(request)
    link = services.renew_link(user=selectors.person_named(username, user=user), by=user)
    return Status(201, LinkOut(sign_in_link=link))


@router.post("/users/{username}/close", response={204: None})
def close_account(request: HttpRequest, username: str) -> Status[None]:
    """Close a person's account: tokens, sessions and share links of theirs open nothing any more."""
    user = person(request)
    services.close_account(user=selectors.person_named(username, user=user), by=user)
    return Status(204, None)


def _team(team: Team, user: User) -> TeamWithMembersOut:
    return TeamWithMembersOut(
        id=team.pk,
        name=team.name,
        may_manage=selectors.can_manage(user, team=team),
        members=[_member(membership) for membership in selectors.members_of(team)],
    )


def _member(membership: Membership) -> MemberOut:
    user = membership.user
    return MemberOut(
        username=user.username,
        role=Role(membership.role),
        since=membership.created_at,
        last_seen_at=user.last_login,
        is_open=user.is_active,
    )
