"""Who am I, and my tokens."""

from datetime import datetime, timedelta

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status
from pydantic import Field

from farm.accounts.models import Team, Token, User
from farm.accounts.selectors import can_write, teams_visible_to, tokens_of
from farm.accounts.services import TOKEN_DAYS, issue_token, revoke_token
from farm.accounts.states import Scope
from farm.api.auth import must_have_scope, person

router = Router(tags=["account"])


class TeamOut(Schema):
    id: int = Field(description="the team's number")
    name: str = Field(description="the team's name")
    can_write: bool = Field(description="whether you may upload and run there")


class MeOut(Schema):
    id: int = Field(description="your number")
    username: str = Field(description="your name on this farm")
    teams: list[TeamOut] = Field(description="the teams that you are in")


class TokenIn(Schema):
    name: str = Field(default="", max_length=100, description="what it is for")
    scopes: list[Scope] = Field(default=[Scope.READ, Scope.WRITE], description="what it may: read, write, nodes, admin")
    days: int = Field(default=TOKEN_DAYS, ge=1, le=TOKEN_DAYS, description="for how long")


class TokenOut(Schema):
    id: int = Field(description="the token's number")
    name: str = Field(description="what it is for")
    hint: str = Field(description="how its secret begins")
    scopes: list[str] = Field(description="what it may")
    created_at: datetime = Field(description="when it was made")
    expires_at: datetime = Field(description="when it expires")
    last_used_at: datetime | None = Field(description="to the minute; null: never")
    revoked_at: datetime | None = Field(description="when it was revoked; null: it was not")


class NewTokenOut(TokenOut):
    secret: str = Field(description="ofk_…, shown this once")


@router.get("/me", response=MeOut)
def me(request: HttpRequest) -> MeOut:
    """Who asks and which teams they belong to."""
    user = person(request)
    teams = [_team(team, user) for team in teams_visible_to(user)]
    return MeOut(id=user.pk, username=user.username, teams=teams)


@router.get("/tokens", response=list[TokenOut])
def tokens(request: HttpRequest) -> list[Token]:
    """Your tokens, newest first, without their secrets."""
    return list(tokens_of(person(request)))


@router.post("/tokens", response={201: NewTokenOut})
def create_token(request: HttpRequest, payload: TokenIn) -> Status[NewTokenOut]:
    """A new token; its secret is shown this once. A token needs the scope `admin` to make others."""
    must_have_scope(request, Scope.ADMIN)
    token, secret = issue_token(person(request), payload.scopes, name=payload.name, life=timedelta(days=payload.days))
    return Status(201, NewTokenOut(**TokenOut.from_orm(token).dict(), secret=secret))


@router.delete("/tokens/{int:token_id}", response=TokenOut)
def delete_token(request: HttpRequest, token_id: int) -> Token:
    """Close a token now."""
    must_have_scope(request, Scope.ADMIN)
    user = person(request)
    return revoke_token(token=get_object_or_404(tokens_of(user), pk=token_id), by=user)


def _team(team: Team, user: User) -> TeamOut:
    return TeamOut(id=team.pk, name=team.name, can_write=can_write(user, team=team))
