"""Alerts over HTTP: what somebody must look at, its evidence and log, and what people do with it."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from ninja.pagination import paginate
from pydantic import ConfigDict, Field

from farm.accounts.models import User
from farm.accounts.selectors import members_of
from farm.alerts.models import Alert, AlertEvent
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors import pages
from farm.alerts.services import triage
from farm.alerts.services.announcements import address_of
from farm.api.auth import person
from farm.api.bisections import InvestigationOut
from farm.api.pages import Page
from farm.base.refusals import Invalid

if TYPE_CHECKING:
    from django.db.models import QuerySet

router = Router(tags=["alerts"])
Listed = Literal["open", "snoozed", "infra", "resolved", "invalid", "all"]
Text = Annotated[str, Field(max_length=4000)]
# longest texts are cut by the service, which says so
Number = Annotated[int, Field(ge=1, le=2**62)]


class Asked(Schema):
    """`list`: as the page groups them; `open` is what somebody has to look at now."""

    list: Listed = Field(
        default="open", description="which list: open (needs attention now), or another list of the alerts page"
    )
    watch: Number | None = Field(default=None, description="of this watch alone")
    model: Number | None = Field(default=None, description="of this model alone")


class SymptomOut(Schema):
    """One change of one series, measured in `run` between the cells `baseline` and `cell`."""

    kind: str = Field(
        description="what changed: latency, session, first, memory, accuracy, outputs, placement or failure"
    )
    series: str = Field(description="the line of the same cell over releases, as trends name it")
    label: str = Field(description="the cell in words")
    text: str = Field(description="what was seen, as one sentence")
    size: float | None = Field(description="by how much, where it has a size: 0.34 is 34 % slower")
    run: int | None = Field(validation_alias="run_id", description="the run that measured it")
    baseline: str = Field(description="the cell it is compared with, as the run names it")
    cell: str = Field(description="the cell that changed, as the run names it")
    explanation: str = Field(description="the cause, where it is known; empty: not known")
    resolved_in: str = Field(description="the release that resolved it; empty: still present")


class AlertEventOut(Schema):
    id: int = Field(description="the event's number; later ones are larger")
    at: datetime = Field(description="when it happened")
    kind: str = Field(description="what happened, for programs")
    text: str = Field(description="what happened, for people")
    by: str | None = Field(description="who did it; null: the farm")
    facts: dict[str, object] = Field(description="values that belong to it")

    @staticmethod
    def resolve_by(event: AlertEvent) -> str | None:
        return event.actor.username if event.actor else None


class AlertOut(Schema):
    """`release`: what alerts are grouped under; `good` was still well, it was found in `bad`."""

    id: int = Field(description="the alert's number")
    url: str = Field(description="its page")
    state: str = Field(description="open, acknowledged, resolved, invalid or infra")
    is_snoozed: bool = Field(description="whether it is snoozed")
    sentence: str = Field(description="what changed, in one sentence")
    team: str = Field(validation_alias="team.name", description="the team whose models it is about")
    watch: int = Field(validation_alias="watch_id", description="the watch that found it")
    watch_name: str = Field(validation_alias="watch.name", description="that watch's name")
    model: str = Field(validation_alias="model.name", description="the model's name")
    version: int = Field(validation_alias="version.number", description="the number of the model's version")
    node: str = Field(description="the machine that measured it")
    hardware: str = Field(description="what that machine is")
    distribution: str = Field(description="the package of the runtime, such as onnxruntime")
    release: str = Field(description="the release that alerts are grouped under")
    good: str = Field(description="the last good release")
    bad: str = Field(description="the release in which it was found")
    first_bad: str = Field(description="the release that a bisection named; empty: none did")
    moved: list[str] = Field(
        description="of two packages that are watched together, those whose release changed; empty: one is watched"
    )
    assignee: str | None = Field(description="the assignee; null: nobody")
    note: str = Field(description="the latest note")
    snoozed_until: datetime | None = Field(description="snoozed until; null: not snoozed, or until a release")
    snoozed_for: str = Field(description="the release it is snoozed until; empty: none")
    resolved_in: str = Field(description="the release that resolved all of it")
    opened_at: datetime = Field(description="when it was opened")
    changed_at: datetime = Field(description="when something was last done about it")
    symptoms: list[SymptomOut] = Field(description="each change that it is made of")

    @staticmethod
    def resolve_url(alert: Alert) -> str:
        return address_of(alert)

    @staticmethod
    def resolve_moved(alert: Alert) -> list[str]:
        return list(alert.moved)

    @staticmethod
    def resolve_assignee(alert: Alert) -> str | None:
        return alert.assignee.username if alert.assignee else None


class AlertPageOut(AlertOut):
    investigations: list[InvestigationOut] = Field(description="bisections and work-arounds, newest first")
    events: list[AlertEventOut] = Field(description="what was done about it, in order")


class Body(Schema):
    model_config = ConfigDict(extra="forbid")


class Acknowledged(Body):
    """`assignee`: a member's name; left out: you."""

    note: Text = Field(default="", description="a note")
    assignee: str = Field(default="", max_length=150, description="a member's name; left out: you")


class Assigned(Body):
    assignee: str = Field(max_length=150, description="a member's name")


class Snoozed(Body):
    """One of both: until a moment, or until a release was measured."""

    until: datetime | None = Field(default=None, description="snooze until this moment")
    release: str = Field(default="", max_length=64, description="or until this release, or a later one, was measured")


class Reasoned(Body):
    reason: Text = Field(description="why, in words")


class Noted(Body):
    note: Text = Field(default="", description="a note")


@router.get("/alerts", response=list[AlertOut])
@paginate(Page)
def list_alerts(request: HttpRequest, asked: Query[Asked]) -> "QuerySet[Alert]":
    """Alerts of your teams, newest first."""
    which = {"watch": asked.watch, "model": asked.model}
    return pages.alerts_in(person(request), asked.list).filter(
        **{name: number for name, number in which.items() if number is not None}
    )


@router.get("/alerts/{int:alert_id}", response=AlertPageOut)
def read_alert(request: HttpRequest, alert_id: int) -> Alert:
    """One alert with its evidence, its investigations, and its log."""
    return selectors.alert(person(request), alert_id)


@router.post("/alerts/{int:alert_id}/acknowledge", response=AlertPageOut)
def acknowledge(request: HttpRequest, alert_id: int, payload: Acknowledged) -> Alert:
    """open → acknowledged: somebody looks at it."""
    user = person(request)
    alert = selectors.alert(user, alert_id)
    assignee = _member(alert, payload.assignee) if payload.assignee else None
    triage.acknowledge(alert=alert, by=user, note=payload.note, assignee=assignee)
    return selectors.alert(user, alert_id)


@router.post("/alerts/{int:alert_id}/assign", response=AlertPageOut)
def assign(request: HttpRequest, alert_id: int, payload: Assigned) -> Alert:
    """Give an alert to a member of its team; an open one is acknowledged by that."""
    user = person(request)
    alert = selectors.alert(user, alert_id)
    triage.assign(alert=alert, by=user, assignee=_member(alert, payload.assignee))
    return selectors.alert(user, alert_id)


@router.post("/alerts/{int:alert_id}/snooze", response=AlertPageOut)
def snooze(request: HttpRequest, alert_id: int, payload: Snoozed) -> Alert:
    """Hear nothing of it until a moment, or until a release was measured."""
    user = person(request)
    if payload.until is not None and payload.until.tzinfo is None:
        raise Invalid(
            f"{payload.until:%Y-%m-%dT%H:%M} has no time zone: write it like 2026-12-24T08:00Z.", code="snooze"
        )
    triage.snooze(alert=selectors.alert(user, alert_id), by=user, until=payload.until, release=payload.release)
    return selectors.alert(user, alert_id)


@router.post("/alerts/{int:alert_id}/invalid", response=AlertPageOut)
def call_invalid(request: HttpRequest, alert_id: int, payload: Reasoned) -> Alert:
    """Mark it as a false positive. The reason is kept, and digests count it."""
    user = person(request)
    triage.call_invalid(alert=selectors.alert(user, alert_id), by=user, reason=payload.reason)
    return selectors.alert(user, alert_id)


@router.post("/alerts/{int:alert_id}/infra", response=AlertPageOut)
def call_infra(request: HttpRequest, alert_id: int, payload: Reasoned) -> Alert:
    """Mark it as an infrastructure issue: the farm or a machine failed."""
    user = person(request)
    triage.call_infra(alert=selectors.alert(user, alert_id), by=user, reason=payload.reason)
    return selectors.alert(user, alert_id)


@router.post("/alerts/{int:alert_id}/reopen", response=AlertPageOut)
def reopen(request: HttpRequest, alert_id: int, payload: Noted) -> Alert:
    """Open it again."""
    user = person(request)
    triage.reopen(alert=selectors.alert(user, alert_id), by=user, note=payload.note)
    return selectors.alert(user, alert_id)


@router.post("/alerts/{int:alert_id}/notes", response=AlertPageOut)
def add_note(request: HttpRequest, alert_id: int, payload: Noted) -> Alert:
    """Keep a note beside the alert and in its log."""
    user = person(request)
    triage.add_note(alert=selectors.alert(user, alert_id), by=user, note=payload.note)
    return selectors.alert(user, alert_id)


def _member(alert: Alert, name: str) -> User:
    """The member of that name. Raises Invalid."""
    found = next((one.user for one in members_of(alert.team) if one.user.username == name), None)
    if found is None:
        raise Invalid(f"{name[:60]} is not in team “{alert.team.name}”.", code="assignee")
    return found
