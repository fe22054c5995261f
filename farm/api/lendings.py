"""Nodes that teams lend to each other, over HTTP. Answering needs the scope `nodes`."""

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from farm.accounts.states import Scope
from farm.api.auth import BrowserAuth, TokenAuth, person
from farm.fleet import selectors, services
from farm.fleet.models import Lending

router = Router(tags=["fleet"], auth=[TokenAuth(changes=Scope.NODES), BrowserAuth()])
ANSWERS = {"agree": services.agree, "decline": services.decline}
MOST = 1000


class LendingOut(Schema):
    """A node that was offered to a team. `sentence`: where that stands, and what waits for whom."""

    id: int
    node: str
    node_id: int
    owner: str | None
    from_team: str
    team: str = Field(description="the team whose models it measures once an admin of it has agreed")
    state: str = Field(description="asked, agreed or declined")
    sentence: str
    fingerprint: str
    sandbox: str
    asked_by: str | None
    asked_at: datetime
    answered_by: str | None
    answered_at: datetime | None


@router.get("/lendings", response=list[LendingOut])
def lendings(request: HttpRequest) -> list[LendingOut]:
    """What your teams' nodes were offered to, and what was offered to your teams."""
    return [_lending(one) for one in selectors.lendings_visible_to(person(request))[:MOST]]


@router.post("/lendings/{int:lending_id}/{what}", response=LendingOut)
def answer(request: HttpRequest, lending_id: int, what: Literal["agree", "decline"]) -> LendingOut:
    """Let a node of others measure your team's models, or no (more). The other side takes it back by its settings."""
    user = person(request)
    ANSWERS[what](lending=selectors.lending(user, lending_id), by=user)
    return _lending(selectors.lending(user, lending_id))


def _lending(row: Lending) -> LendingOut:
    node = row.node
    return LendingOut(
        id=row.pk,
        node=node.name,
        node_id=node.pk,
        owner=node.owner.username if node.owner else None,
        from_team=node.team.name,
        team=row.team.name,
        state=row.state,
        sentence=row.words,
        fingerprint=node.fingerprint,
        sandbox=node.sandbox,
        asked_by=row.asked_by.username if row.asked_by else None,
        asked_at=row.asked_at,
        answered_by=row.answered_by.username if row.answered_by else None,
        answered_at=row.answered_at,
    )
