"""Nodes that teams lend to each other, over HTTP. To agree or decline needs the scope `nodes`."""

from typing import Literal

from django.http import HttpRequest
from ninja import Router

from farm.accounts.states import Scope
from farm.api.auth import BrowserAuth, TokenAuth, person
from farm.api.shapes import fill, username
from farm.contract.api.fleet import LendingOut
from farm.fleet import selectors, services
from farm.fleet.models import Lending

router = Router(tags=["fleet"], auth=[TokenAuth(changes=Scope.NODES), BrowserAuth()])
ANSWERS = {"agree": services.agree, "decline": services.decline}
MAX_LENDINGS = 1000


@router.get("/lendings", response=list[LendingOut])
def lendings(request: HttpRequest) -> list[LendingOut]:
    """Nodes that your teams lend or were offered, to and by other teams."""
    return [_shape_lending(row) for row in selectors.lendings_visible_to(person(request))[:MAX_LENDINGS]]


@router.post("/lendings/{int:lending_id}/{what}", response=LendingOut)
def answer(request: HttpRequest, lending_id: int, what: Literal["agree", "decline"]) -> LendingOut:
    """Agree that a node of others measures your team's models, or decline. They take it back by its settings."""
    user = person(request)
    ANSWERS[what](lending=selectors.lending(user, lending_id), by=user)
    return _shape_lending(selectors.lending(user, lending_id))


def _shape_lending(row: Lending) -> LendingOut:
    node = row.node
    return fill(
        LendingOut,
        row,
        node=node.name,
        owner=username(node.owner),
        from_team=node.team.name,
        team=row.team.name,
        sentence=row.words,
        fingerprint=node.fingerprint,
        sandbox=node.sandbox,
        asked_by=username(row.asked_by),
        answered_by=username(row.answered_by),
    )
