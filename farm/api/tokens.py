"""Who am I, and my tokens."""

from datetime import datetime

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status
from pydantic import Field

from farm.accounts.models import Team, Token, User
from farm.accounts.selectors import can_write, teams_visible_to, tokens_of
from farm.accounts.services import issue_token, revoke_token
from farm.accounts.states import Scope
from farm.api.auth import must_have_scope, person

router = Router(tags=["account"])


class TeamOut(Schema):
    id: int
    name: str
    can_write: bool


class MeOut(Schema):
    id: int
    username: str
    teams: list[TeamOut]


class TokenIn(Schema):
    name: str = Field(default="", max_length=100)
    scopes: list[Scope] = [Scope.READ, Scope.WRITE]


class TokenOut(Schema):
    id: int
    name: str
    hint: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class NewTokenOut(TokenOut):
    secret: str


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
    token, secret = issue_token(person(request), payload.scopes, name=payload.name)
    return Status(201, NewTokenOut(**TokenOut.from_orm(token).dict(), secret=secret))


@router.delete("/tokens/{int:token_id}", response=TokenOut)
def delete_token(request: HttpRequest, token_id: int) -> Token:
    """Close a token now."""
    must_have_scope(request, Scope.ADMIN)
    user = person(request)
    return revoke_token(token=get_object_or_404(tokens_of(user), pk=token_id), by=user)


def _team(team: Team, user: User) -> TeamOut:
    return TeamOut(id=team.pk, name=team.name, can_write=can_write(user, team=team))
