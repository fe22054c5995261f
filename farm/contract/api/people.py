"""People, teams, tokens and retention, as the API tells of them."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from farm.contract.api.answer import Answer


class Role(StrEnum):
    """What a member may do in a team: look; upload and run; manage members, nodes and settings."""

    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"


class TeamOut(Answer):
    id: int = Field(description="the team's number")
    name: str = Field(description="the team's name")
    can_write: bool = Field(description="whether you may upload and run there")


class MeOut(Answer):
    id: int = Field(description="your number")
    username: str = Field(description="your name on this farm")
    teams: list[TeamOut] = Field(description="the teams that you are in")


class TokenOut(Answer):
    id: int = Field(description="the token's number")
    name: str = Field(description="what it is for")
    hint: str = Field(description="how its secret begins")
    scopes: list[str] = Field(description="what it may")
    team: str = Field(default_factory=str, description="with the scope gate: whose models; else empty")
    created_at: datetime = Field(description="when it was made")
    expires_at: datetime = Field(description="when it expires")
    last_used_at: datetime | None = Field(description="to the minute; null: never")
    revoked_at: datetime | None = Field(description="when it was revoked; null: it was not")


class NewTokenOut(TokenOut):
    secret: str = Field(description="ofk_…, shown this once")


class MemberOut(Answer):
    """A person in a team."""

    username: str = Field(description="the person's name on this farm")
    role: Role = Field(description="viewer: looks; member: uploads and runs; admin: manages members, nodes, channels")
    since: datetime = Field(description="when they came into the team")
    last_seen_at: datetime | None = Field(description="when they last signed in; null: never")
    is_open: bool = Field(description="whether their account opens anything: an administrator may close it")


class InvitedOut(Answer):
    """A person who was invited into a team."""

    username: str = Field(description="the person's name on this farm")
    role: Role = Field(description="what they may do in the team")
    sign_in_link: str | None = Field(
        description="signs a person in once who never signed in, within seven days; shown this once. null: anybody else"
    )
    has_to_accept: bool = Field(
        default_factory=bool, description="whether they come into the team only by accepting: they have an account"
    )


class WaitingOut(Answer):
    """A person who has not answered yet."""

    username: str = Field(description="the person's name on this farm")
    role: Role = Field(description="what they may do once they accept")
    by: str = Field(description="who invited them")
    expires_at: datetime = Field(description="until when they may accept")


class InvitationOut(Answer):
    """An invitation of yours."""

    id: int = Field(description="the invitation's number")
    team: str = Field(description="the team you are invited to")
    role: Role = Field(description="what you may do there once you accept")
    by: str = Field(description="who invites you")
    expires_at: datetime = Field(description="until when you may accept")
    state: str = Field(description="open, accepted or declined")


class TeamWithMembersOut(Answer):
    """A team with its people."""

    id: int = Field(description="the team's number, as addresses name it")
    name: str = Field(description="the team's name")
    may_manage: bool = Field(description="whether you may change its members")
    may_write: bool = Field(description="whether you may upload and run there")
    is_default: bool = Field(
        default_factory=bool, description="whether what you write without naming a team goes there"
    )
    puts_people_first: bool = Field(
        default=True, description="whether runs that a person asked for go before the farm's own on the team's nodes"
    )
    daily_minutes: int | None = Field(
        default=None, description="minutes that nodes may measure for it in a day (UTC); null: no limit"
    )
    minutes_today: float = Field(default=0.0, description="minutes that nodes have measured for it today")
    members: list[MemberOut] = Field(description="by name")
    invited: list[WaitingOut] = Field(
        default_factory=list, description="who has not answered yet; shown to those who may manage the team"
    )


class LinkOut(Answer):
    """A one-time link."""

    sign_in_link: str = Field(description="signs the person in once, within the hour; shown this once")


class DoomedOut(Answer):
    """One kind that goes when the rule acts next."""

    kind: str = Field(
        description="raw timings, raw traces, compiled models, models without a run, or versions of branches"
    )
    days: int = Field(description="what is older goes")
    count: int = Field(description="runs with raw timings, traces, compiled models, models, or versions")
    bytes: int = Field(description="their size; of raw timings at most so much, as nodes reported it")


class RetentionOut(Answer):
    """A team's rule, and what it comes to."""

    timings_days: int | None = Field(description="days after a run's end until its raw timings go; null: never")
    traces_days: int | None = Field(
        description="days after a run's end until its raw traces and compiled models go; null: never"
    )
    models_days: int | None = Field(
        description="days after its last upload until a model without a run goes; null: never"
    )
    branches_days: int | None = Field(
        default_factory=lambda: None,
        description="days after a gate sent it last until a branch's version goes; null: never",
    )
    acts_at: datetime | None = Field(description="when it acts next; until then it can be changed. null: it keeps all")
    acted_at: datetime | None = Field(description="when all that was due had gone last; null: not yet")
    doomed: list[DoomedOut] = Field(description="what goes then")
