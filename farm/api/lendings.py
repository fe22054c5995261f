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
    """A node that was offered to a team. `sentence`: its status in words."""

    id: int = Field(description="the lending's number")
    node: str = Field(validation_alias="node.name", description="the node's name")
    node_id: int = Field(description="the node's number")
    owner: str | None = Field(description="the owner; null: the owner was deleted")
    from_team: str = Field(validation_alias="node.team.name", description="the team that it belongs to")
    team: str = Field(
        validation_alias="team.name", description="the team whose models it measures once an admin of it has agreed"
    )
    state: str = Field(description="asked, agreed or declined")
    sentence: str = Field(validation_alias="words", description="its status in words")
    fingerprint: str = Field(
        validation_alias="node.fingerprint", description="of the node's key, to be compared with its owner"
    )
    sandbox: str = Field(
        validation_alias="node.sandbox", description="what confines models there: bubblewrap, landlock or none"
    )
    asked_by: str | None = Field(description="who offered it")
    asked_at: datetime = Field(description="when it was offered")
    answered_by: str | None = Field(description="who answered; null: nobody yet")
    answered_at: datetime | None = Field(description="when they answered; null: not yet")

    @staticmethod
    def resolve_owner(row: Lending) -> str | None:
        return row.node.owner.username if row.node.owner else None

    @staticmethod
    def resolve_asked_by(row: Lending) -> str | None:
        return row.asked_by.username if row.asked_by else None

    @staticmethod
    def resolve_answered_by(row: Lending) -> str | None:
        return row.answered_by.username if row.answered_by else None


@router.get("/lendings", response=list[LendingOut])
def lendings(request: HttpRequest) -> list[Lending]:
    """What your teams' nodes were offered to, and what was offered to your teams."""
    return list(selectors.lendings_visible_to(person(request))[:MOST])


@router.post("/lendings/{int:lending_id}/{what}", response=LendingOut)
def answer(request: HttpRequest, lending_id: int, what: Literal["agree", "decline"]) -> Lending:
    """Let a node of others measure your team's models, or no (more). The other side takes it back by its settings."""
    user = person(request)
    ANSWERS[what](lending=selectors.lending(user, lending_id), by=user)
    return selectors.lending(user, lending_id)
