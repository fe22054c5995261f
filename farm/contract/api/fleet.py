"""Nodes, invitations and lendings, as the API tells of them."""

from datetime import datetime

from pydantic import Field

from farm.contract.api.answer import Answer


class SelfTestOut(Answer):
    """`p50_ms`: the least median of its launches; `max_abs`: largest difference to the right answer."""

    passed: bool = Field(description="whether it computed the right answer")
    sentence: str = Field(description="the result")
    runtime: str = Field(description="what it ran on")
    max_abs: float | None = Field(description="largest difference from the expected answer; null: nothing was compared")
    p50_ms: float | None = Field(description="the least median of its launches, in milliseconds")
    launches: int = Field(description="how often it was launched")


class NodeOut(Answer):
    """`state`: online, offline; `health`: pending, active, draining, quarantined, retired."""

    id: int = Field(description="the node's number")
    name: str = Field(description="its name, unique on the farm")
    team: str = Field(description="the team that it belongs to")
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
    trials_allowed: str = Field(
        default="ask", description="whether it tries providers that others ask for: ask, allow or never"
    )
    sandbox: str = Field(description="what confines models there: bubblewrap, landlock or none")
    is_emulated: bool = Field(description="whether its processor is emulated")
    facts: dict[str, object] = Field(description="what the machine says it is")
    settings: dict[str, object] = Field(description="its owner's limits")
    self_test: SelfTestOut | None = Field(description="its last self-test; null: none yet")
    seen_at: datetime | None = Field(description="when it last said hello; null: never")
    created_at: datetime = Field(description="when it joined")


class WorkOut(Answer):
    """Blocks that a node measured for somebody."""

    team: str = Field(description="the team whose runs they were")
    person: str = Field(description="who asked, or whose watch it was; empty: they were deleted")
    reason: str = Field(description="watch, confirmation, bisection or work-around; empty: a person asked for it")
    runs: int = Field(description="how many runs")
    blocks: int = Field(description="how many blocks, those that were given up included")
    minutes: float = Field(description="minutes from claim to end")


class NextOut(Answer):
    """A block that waits for a node's machine."""

    run: int | None = Field(description="the run's number; null: you may not see it")
    team: str = Field(description="the team whose run it is")
    begins_in_minutes: float | None = Field(
        description="minutes until what is ahead of it has probably ended; null: nobody can tell, as while another "
        "program has the machine"
    )
    minutes: float | None = Field(description="minutes that it will probably take; null as above")


class InstalledOut(Answer):
    """What was installed or removed on a node."""

    at: datetime = Field(description="when the node said so")
    text: str = Field(description="the runtimes")


class LedgerOut(Answer):
    """What a node did, for whom, and what waits; for those who manage it."""

    since: datetime = Field(description="what was measured from then on")
    blocks: int = Field(description="how many blocks were measured")
    minutes: float = Field(description="minutes from claim to end, of all of them")
    work: list[WorkOut] = Field(description="for whom, what took longest first")
    installed: list[InstalledOut] = Field(description="runtimes that were installed and removed, newest first")
    now: str = Field(default="", description="what it does now, in words")
    measuring: int | None = Field(description="the run that it measures now; null: none, or none that you can access")
    next: list[NextOut] = Field(description="what waits for its machine, in its order")


class NodeInvitationOut(Answer):
    """`command` is typed on the machine that joins; the code works once and is not shown again."""

    code: str = Field(description="works once, and is not shown again")
    team: str = Field(default_factory=str, description="the team that the machine will belong to")
    command: str = Field(description="what is typed on the machine that joins")
    install: str = Field(
        default_factory=str, description="what is typed there before, where onnxfarm is not installed yet"
    )
    warning: str = Field(
        default_factory=str, description="why other machines cannot reach this farm, and what to set; empty: they can"
    )
    expires_at: datetime = Field(description="until when the code works")


class TrialOut(Answer):
    """A provider that a node tries because somebody asked for it. `sentence`: its status in words."""

    id: int = Field(description="the trial's number")
    node: str = Field(description="the node's name")
    node_id: int = Field(description="the node's number")
    provider: str = Field(description="the execution provider")
    state: str = Field(description="asked, declined, pending, ready or failed")
    sentence: str = Field(description="its status in words")
    problem: str = Field(description="why it failed; empty: it did not")
    asked_by: str | None = Field(description="who asked; null: they were deleted")
    asked_at: datetime = Field(description="when they asked")
    answered_by: str | None = Field(description="who answered; null: nobody had to, or yet")
    ended_at: datetime | None = Field(description="when it ended; null: it has not")


class LendingOut(Answer):
    """A node that was offered to a team. `sentence`: its status in words."""

    id: int = Field(description="the lending's number")
    node: str = Field(description="the node's name")
    node_id: int = Field(description="the node's number")
    owner: str | None = Field(description="the owner; null: the owner was deleted")
    from_team: str = Field(description="the team that it belongs to")
    team: str = Field(description="the team whose models it measures once an admin of it has agreed")
    state: str = Field(description="asked, agreed or declined")
    sentence: str = Field(description="its status in words")
    fingerprint: str = Field(description="of the node's key, to be compared with its owner")
    sandbox: str = Field(description="what confines models there: bubblewrap, landlock or none")
    asked_by: str | None = Field(description="who offered it")
    asked_at: datetime = Field(description="when it was offered")
    answered_by: str | None = Field(description="who answered; null: nobody yet")
    answered_at: datetime | None = Field(description="when they answered; null: not yet")
