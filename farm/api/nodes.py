"""The fleet over HTTP: nodes, their invitations and settings. Every change needs the scope `nodes`."""

from typing import Literal

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from farm.accounts.selectors import team_to_write
from farm.accounts.states import Scope
from farm.api.auth import BrowserAuth, TokenAuth, person
from farm.api.shapes import StrictSchema, fill, username
from farm.base.refusals import NotAllowed
from farm.contract.api.fleet import InstalledOut, LedgerOut, NextOut, NodeInvitationOut, NodeOut, SelfTestOut, WorkOut
from farm.fleet import selectors, services
from farm.fleet.enrolment import make_join_commands
from farm.fleet.models import Node
from farm.runs.selectors.ledger import DAYS
from farm.runs.selectors.ledger import ledger as ledger_of
from farm.runs.selectors.queues import current_work, upcoming_blocks

# tokens in CI have the scope `write`, which must not let machines join
router = Router(tags=["fleet"], auth=[TokenAuth(changes=Scope.NODES), BrowserAuth()])
ORDERS = {
    "approve": services.approve,
    "drain": services.drain,
    "resume": services.resume,
    "revoke": services.revoke,
}


class Invitation(Schema):
    """`team`: the one that the node will belong to."""

    team: str = Field(
        default="",
        max_length=100,
        description="the team it will belong to; may be left out where you write in one alone",
    )


class Settings(StrictSchema):
    """The owner's limits; what is left out stays. `hours`: like 20:00-06:00 in `timezone`, empty for always."""

    is_paused: bool | None = Field(default=None, description="whether it is paused")
    hours: str | None = Field(default=None, max_length=11, description="when it works, like 20:00-06:00; empty: always")
    timezone: str | None = Field(default=None, max_length=64, description="of these hours, like Europe/Berlin")
    max_block_s: float | None = Field(default=None, description="seconds that one block may take")
    max_temperature_c: float | None = Field(
        default=None, description="above this it accepts no blocks; null: whatever the heat"
    )
    cache_bytes: int | None = Field(default=None, description="size of the model cache on its disk")
    runtimes_bytes: int | None = Field(default=None, description="size of the runtime cache on its disk")
    trials: Literal["ask", "allow", "never"] | None = Field(
        default=None, description="whether it tries providers that others ask for"
    )
    tags: list[str] | None = Field(
        default=None, max_length=32, description="tags of your own, beside those that it proves"
    )
    teams: list[str] | None = Field(default=None, max_length=64, description="other teams that may measure on it")


@router.get("/nodes", response=list[NodeOut])
def nodes(request: HttpRequest) -> list[NodeOut]:
    """Nodes of your teams."""
    return [_shape_node(node) for node in selectors.nodes_visible_to(person(request))[:1000]]


@router.post("/nodes/invitations", response={201: NodeInvitationOut})
def invite(request: HttpRequest, payload: Invitation) -> Status[NodeInvitationOut]:
    """Make a code with which one machine may join once, with the command that uses it."""
    user = person(request)
    team = team_to_write(user, name=payload.team)
    row, code = services.invite(team=team, by=user)
    commands = make_join_commands(code)
    return Status(
        201,
        fill(
            NodeInvitationOut,
            commands,
            code=code,
            team=team.name,
            command=commands.enroll,
            expires_at=row.expires_at,
        ),
    )


@router.get("/nodes/{int:node_id}", response=NodeOut)
def node(request: HttpRequest, node_id: int) -> NodeOut:
    """Read a node."""
    return _shape_node(selectors.node(person(request), node_id))


@router.get("/nodes/{int:node_id}/ledger", response=LedgerOut)
def ledger(request: HttpRequest, node_id: int, days: int = DAYS) -> LedgerOut:
    """What a node did, for whom and for how many minutes, what was installed, and what waits; for its managers."""
    user = person(request)
    node = selectors.node(user, node_id)
    node_ledger = ledger_of(user, node, days=days)
    if node_ledger is None:
        raise NotAllowed(f"Only the owner of {node.name} or an admin of its team reads its ledger.")
    now = current_work(user, [node])[node.pk]
    return fill(
        LedgerOut,
        node_ledger,
        work=[fill(WorkOut, work) for work in node_ledger.work],
        installed=[fill(InstalledOut, event) for event in node_ledger.installed],
        now=now.words,
        measuring=now.run,
        next=[fill(NextOut, waiting) for waiting in upcoming_blocks(user, [node])[node.pk]],
    )


@router.patch("/nodes/{int:node_id}", response=NodeOut)
def change(request: HttpRequest, node_id: int, payload: Settings) -> NodeOut:
    """Change the owner's tags and limits."""
    user = person(request)
    node = selectors.node(user, node_id)
    changes = payload.dict(exclude_unset=True)
    teams, tags = changes.pop("teams", None), changes.pop("tags", None)
    services.change_settings(node=node, by=user, tags=tags, **changes)
    if teams is not None:
        services.share(node=node, by=user, teams=teams)
    return _shape_node(selectors.node(user, node_id))


@router.post("/nodes/{int:node_id}/{what}", response=NodeOut)
def order(request: HttpRequest, node_id: int, what: Literal["approve", "drain", "resume", "revoke"]) -> NodeOut:
    """Approve, drain, resume or revoke a node."""
    user = person(request)
    ORDERS[what](node=selectors.node(user, node_id), by=user)
    return _shape_node(selectors.node(user, node_id))


def _shape_node(node: Node) -> NodeOut:
    return fill(
        NodeOut,
        node,
        team=node.team.name,
        owner=username(node.owner),
        facts=node.facts_json,
        settings=node.settings.model_dump(mode="json"),
        self_test=node.self_test and fill(SelfTestOut, node.self_test),
    )
