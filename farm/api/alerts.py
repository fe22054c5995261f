"""Alerts over HTTP: what somebody must look at, its evidence and log, and what people do with it."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from ninja.pagination import paginate
from pydantic import ConfigDict, Field

from farm.accounts.models import User
from farm.accounts.refusals import Invalid
from farm.accounts.selectors import members_of
from farm.alerts.models import Alert, AlertEvent
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors import pages
from farm.alerts.services import triage
from farm.alerts.services.announcements import address_of
from farm.api.auth import person
from farm.api.bisections import InvestigationOut
from farm.api.pages import Page

if TYPE_CHECKING:
    from django.db.models import QuerySet

router = Router(tags=["alerts"])
Listed = Literal["open", "snoozed", "infra", "resolved", "invalid", "all"]
Text = Annotated[str, Field(max_length=4000)]
# longest texts are cut by the service, which says so
Number = Annotated[int, Field(ge=1, le=2**62)]


class Asked(Schema):
    """`list`: as the page groups them; `open` is what somebody has to look at now."""

    list: Listed = "open"
    watch: Number | None = None
    model: Number | None = None


class SymptomOut(Schema):
    """One change of one series, measured in `run` between the cells `baseline` and `cell`."""

    kind: str
    series: str
    label: str
    text: str
    size: float | None
    run: int | None = Field(validation_alias="run_id")
    baseline: str
    cell: str
    explanation: str
    resolved_in: str


class AlertEventOut(Schema):
    id: int
    at: datetime
    kind: str
    text: str
    by: str | None
    facts: dict[str, object]

    @staticmethod
    def resolve_by(event: AlertEvent) -> str | None:
        return event.actor.username if event.actor else None


class AlertOut(Schema):
    """`release`: what alerts are grouped under; `good` was still well, it was found in `bad`."""

    id: int
    url: str
    state: str
    is_snoozed: bool
    sentence: str
    team: str = Field(validation_alias="team.name")
    watch: int = Field(validation_alias="watch_id")
    watch_name: str = Field(validation_alias="watch.name")
    model: str = Field(validation_alias="model.name")
    version: int = Field(validation_alias="version.number")
    node: str
    hardware: str
    distribution: str
    release: str
    good: str
    bad: str
    first_bad: str
    assignee: str | None
    note: str
    snoozed_until: datetime | None
    snoozed_for: str
    resolved_in: str
    opened_at: datetime
    changed_at: datetime
    symptoms: list[SymptomOut]

    @staticmethod
    def resolve_url(alert: Alert) -> str:
        return address_of(alert)

    @staticmethod
    def resolve_assignee(alert: Alert) -> str | None:
        return alert.assignee.username if alert.assignee else None


class AlertPageOut(AlertOut):
    investigations: list[InvestigationOut]
    events: list[AlertEventOut]


class Body(Schema):
    model_config = ConfigDict(extra="forbid")


class Acknowledged(Body):
    """`assignee`: a member's name; left out: you."""

    note: Text = ""
    assignee: str = Field(default="", max_length=150)


class Assigned(Body):
    assignee: str = Field(max_length=150)


class Snoozed(Body):
    """One of both: until a moment, or until a release was measured."""

    until: datetime | None = None
    release: str = Field(default="", max_length=64)


class Reasoned(Body):
    reason: Text


class Noted(Body):
    note: Text = ""


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
    """One alert with its evidence, what was looked into, and its log."""
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
    """It is no change. The reason is kept, and digests count it."""
    user = person(request)
    triage.call_invalid(alert=selectors.alert(user, alert_id), by=user, reason=payload.reason)
    return selectors.alert(user, alert_id)


@router.post("/alerts/{int:alert_id}/infra", response=AlertPageOut)
def call_infra(request: HttpRequest, alert_id: int, payload: Reasoned) -> Alert:
    """The farm or a machine was to blame."""
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
