"""The person who asks, and their tokens."""

from datetime import timedelta
from typing import TypeVar

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status
from pydantic import Field

from farm.accounts.models import Token
from farm.accounts.selectors import can_write, teams_visible_to, tokens_of
from farm.accounts.services import TOKEN_DAYS, issue_token, revoke_token
from farm.accounts.states import Scope
from farm.api.auth import person, require_scope
from farm.api.shapes import fill
from farm.contract.api.people import MeOut, NewTokenOut, TeamOut, TokenOut

router = Router(tags=["account"])
AnyToken = TypeVar("AnyToken", bound=TokenOut)


class TokenIn(Schema):
    name: str = Field(default="", max_length=100, description="what it is for")
    scopes: list[Scope] = Field(
        default=[Scope.READ, Scope.WRITE], description="what it may: read, write, nodes, admin, or gate alone"
    )
    days: int = Field(default=TOKEN_DAYS, ge=1, le=TOKEN_DAYS, description="for how long")
    team: str = Field(
        default="", max_length=100, description="with gate: whose models; may be left out where you write in one alone"
    )


@router.get("/me", response=MeOut)
def me(request: HttpRequest) -> MeOut:
    """The person who asks, and their teams."""
    user = person(request)
    teams = [fill(TeamOut, team, can_write=can_write(user, team=team)) for team in teams_visible_to(user)]
    return fill(MeOut, user, teams=teams)


@router.get("/tokens", response=list[TokenOut])
def tokens(request: HttpRequest) -> list[TokenOut]:
    """Your tokens, newest first, without their secrets."""
    return [_shape_token(TokenOut, token) for token in tokens_of(person(request))]


@router.post("/tokens", response={201: NewTokenOut})
def create_token(request: HttpRequest, payload: TokenIn) -> Status[NewTokenOut]:
    """Create a token; its secret is shown this once. A token needs the scope `admin` to make others."""
    require_scope(request, Scope.ADMIN)
    token, secret = issue_token(
        person(request), payload.scopes, name=payload.name, life=timedelta(days=payload.days), team=payload.team
    )
    return Status(201, _shape_token(NewTokenOut, token, secret=secret))


@router.delete("/tokens/{int:token_id}", response=TokenOut)
def delete_token(request: HttpRequest, token_id: int) -> TokenOut:
    """Close a token now."""
    require_scope(request, Scope.ADMIN)
    user = person(request)
    return _shape_token(TokenOut, revoke_token(token=get_object_or_404(tokens_of(user), pk=token_id), by=user))


def _shape_token(shape: type[AnyToken], token: Token, **further_fields: object) -> AnyToken:
    return fill(shape, token, team=token.team.name if token.team else "", **further_fields)
