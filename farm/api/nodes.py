"""The fleet over HTTP: nodes, invitations, and the owner's orders. Changing anything needs the scope `nodes`."""

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from farm.accounts.selectors import team_to_write
from farm.accounts.states import Scope
from farm.api.auth import BrowserAuth, TokenAuth, person
from farm.fleet import selectors, services
from farm.fleet.enrolment import joining
from farm.fleet.models import Node

# a token that uploads and runs, as in CI, lets no machine in
router = Router(tags=["fleet"], auth=[TokenAuth(changes=Scope.NODES), BrowserAuth()])
ORDERS = {
    "approve": services.approve,
    "drain": services.drain,
    "resume": services.resume,
    "revoke": services.revoke,
}


class SelfTestOut(Schema):
    """`p50_ms`: the least median of its launches; `max_abs`: largest difference to the right answer."""

    passed: bool = Field(description="whether it computed the right answer")
    sentence: str = Field(description="the result")
    runtime: str = Field(description="what it ran on")
    max_abs: float | None = Field(description="largest difference from the expected answer; null: nothing was compared")
    p50_ms: float | None = Field(description="the least median of its launches, in milliseconds")
    launches: int = Field(description="how often it was launched")


class NodeOut(Schema):
    """`state`: online, offline; `health`: pending, active, draining, quarantined, retired."""

    id: int = Field(description="the node's number")
    name: str = Field(description="its name, unique on the farm")
    team: str = Field(validation_alias="team.name", description="the team that it belongs to")
    owner: str | None = Field(description="the owner; null: the owner was deleted")
    state: str = Field(description="online or offline")
    health: str = Field(description="pending, active, draining, quarantined or retired")
    health_reason: str = Field(description="why it is so; empty: nothing to say")
    pause: str = Field(description="why its owner's limits keep it from accepting blocks now; empty when they do not")
    fingerprint: str = Field(description="of its key, to be compared before it is approved")
    tags: dict[str, str] = Field(description="each proven tag with its evidence")
    owner_tags: list[str] = Field(description="tags that its owner gave it")
    providers: list[str] = Field(description="execution providers that a probe has shown at work")
    runtimes: list[str] = Field(description="runtimes that are installed there")
    sandbox: str = Field(description="what confines models there: bubblewrap, landlock or none")
    is_emulated: bool = Field(description="whether its processor is emulated")
    facts: dict[str, object] = Field(validation_alias="facts_json", description="what the machine says it is")
    settings: dict[str, object] = Field(description="its owner's limits")
    self_test: SelfTestOut | None = Field(description="its last self-test; null: none yet")
    seen_at: datetime | None = Field(description="when it last said hello; null: never")
    created_at: datetime = Field(description="when it joined")

    @staticmethod
    def resolve_owner(node: Node) -> str | None:
        return node.owner.username if node.owner else None

    @staticmethod
    def resolve_settings(node: Node) -> dict[str, object]:
        return node.settings.model_dump(mode="json")


class Invitation(Schema):
    """`team`: default your first."""

    team: str = Field(
        default="",
        max_length=100,
        description="the team it will belong to; may be left out where you write in one alone",
    )


class NodeInvitationOut(Schema):
    """`command` is typed on the machine that joins; the code works once and is not shown again."""

    code: str = Field(description="works once, and is not shown again")
    team: str = Field(description="the team that the machine will belong to")
    command: str = Field(description="what is typed on the machine that joins")
    install: str = Field(description="what is typed there before, where onnxfarm is not installed yet")
    warning: str = Field(description="why other machines cannot reach this farm, and what to set; empty: they can")
    expires_at: datetime = Field(description="until when the code works")


class Settings(Schema):
    """The owner's limits; what is left out stays. `hours`: like 20:00-06:00 in `timezone`, empty: always."""

    model_config = ConfigDict(extra="forbid")

    is_paused: bool | None = Field(default=None, description="whether it is paused")
    hours: str | None = Field(default=None, max_length=11, description="when it works, like 20:00-06:00; empty: always")
    timezone: str | None = Field(default=None, max_length=64, description="of these hours, like Europe/Berlin")
    max_block_s: float | None = Field(default=None, description="seconds that one block may take")
    max_temperature_c: float | None = Field(
        default=None, description="above this it accepts no blocks; null: whatever the heat"
    )
    cache_bytes: int | None = Field(default=None, description="size of the model cache on its disk")
    runtimes_bytes: int | None = Field(default=None, description="size of the runtime cache on its disk")
    tags: list[str] | None = Field(
        default=None, max_length=32, description="tags of your own, beside those that it proves"
    )
    teams: list[str] | None = Field(default=None, max_length=64, description="other teams that may measure on it")


@router.get("/nodes", response=list[NodeOut])
def nodes(request: HttpRequest) -> list[Node]:
    """Nodes of your teams."""
    return list(selectors.nodes_visible_to(person(request))[:1000])


@router.post("/nodes/invitations", response={201: NodeInvitationOut})
def invite(request: HttpRequest, payload: Invitation) -> Status[NodeInvitationOut]:
    """A one-off code by which one machine joins, with the command that uses it."""
    user = person(request)
    team = team_to_write(user, name=payload.team)
    row, code = services.invite(team=team, by=user)
    how = joining(code)
    out = NodeInvitationOut(
        code=code,
        team=team.name,
        command=how.enroll,
        install=how.install,
        warning=how.warning,
        expires_at=row.expires_at,
    )
    return Status(201, out)


@router.get("/nodes/{int:node_id}", response=NodeOut)
def node(request: HttpRequest, node_id: int) -> Node:
    """One node."""
    return selectors.node(person(request), node_id)


@router.patch("/nodes/{int:node_id}", response=NodeOut)
def change(request: HttpRequest, node_id: int, payload: Settings) -> Node:
    """Change the owner's tags and limits."""
    user = person(request)
    node = selectors.node(user, node_id)
    said = payload.dict(exclude_unset=True)
    teams, tags = said.pop("teams", None), said.pop("tags", None)
    services.change_settings(node=node, by=user, tags=tags, **said)
    if teams is not None:
        services.share(node=node, by=user, teams=teams)
    return selectors.node(user, node_id)


@router.post("/nodes/{int:node_id}/{what}", response=NodeOut)
def order(request: HttpRequest, node_id: int, what: Literal["approve", "drain", "resume", "revoke"]) -> Node:
    """Approve, drain, resume or revoke a node."""
    user = person(request)
    ORDERS[what](node=selectors.node(user, node_id), by=user)
    return selectors.node(user, node_id)
