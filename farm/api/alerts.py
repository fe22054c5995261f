"""Alerts over HTTP: their evidence and log, and what people do with them."""

from datetime import datetime
from typing import Annotated, Literal, TypeVar

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from farm.accounts.models import User
from farm.accounts.selectors import memberships_in
from farm.alerts.models import Alert
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors import pages
from farm.alerts.services import triage
from farm.alerts.services.announcements import address_of
from farm.api.auth import person
from farm.api.bisections import shape_investigation
from farm.api.shapes import Paging, StrictSchema, fill, username
from farm.base.refusals import Invalid
from farm.contract.api.alerts import AlertEventOut, AlertOut, AlertPageOut, SymptomOut

router = Router(tags=["alerts"])
Listed = Literal["open", "snoozed", "infra", "resolved", "invalid", "all"]
# as long as the service lets a note be
Text = Annotated[str, Field(max_length=4000)]
AnyAlert = TypeVar("AnyAlert", bound=AlertOut)
Number = Annotated[int, Field(ge=1, le=2**62)]


class Asked(Schema):
    """`list`: one of the lists of the alerts page; `open` has those that somebody has to look at now."""

    list: Listed = Field(
        default="open", description="which list: open (needs attention now), or another list of the alerts page"
    )
    watch: Number | None = Field(default=None, description="of this watch alone")
    model: Number | None = Field(default=None, description="of this model alone")


class Acknowledged(StrictSchema):
    """`assignee`: a member's name; left out: you."""

    note: Text = Field(default="", description="a note")
    assignee: str = Field(default="", max_length=150, description="a member's name; left out: you")


class Assigned(StrictSchema):
    assignee: str = Field(max_length=150, description="a member's name")


class Snoozed(StrictSchema):
    """One of both: until a moment, or until a release was measured."""

    until: datetime | None = Field(default=None, description="snooze until this moment")
    release: str = Field(default="", max_length=64, description="or until this release, or a later one, was measured")


class Reasoned(StrictSchema):
    reason: Text = Field(description="why, in words")


class Noted(StrictSchema):
    note: Text = Field(default="", description="a note")


@router.get("/alerts", response=list[AlertOut])
def list_alerts(request: HttpRequest, query: Query[Asked], paging: Query[Paging]) -> list[AlertOut]:
    """Alerts of your teams, newest first."""
    filters = {"watch": query.watch, "model": query.model}
    rows = pages.list_alerts(person(request), query.list).filter(
        **{name: number for name, number in filters.items() if number is not None}
    )
    return [_shape_alert(AlertOut, alert) for alert in paging.slice(rows)]


@router.get("/alerts/{int:alert_id}", response=AlertPageOut)
def read_alert(request: HttpRequest, alert_id: int) -> AlertPageOut:
    """Read an alert with its evidence, its investigations, and its log."""
    return _shape_alert_page(selectors.alert(person(request), alert_id))


@router.post("/alerts/{int:alert_id}/acknowledge", response=AlertPageOut)
def acknowledge(request: HttpRequest, alert_id: int, payload: Acknowledged) -> AlertPageOut:
    """Acknowledge an open alert: somebody looks at it."""
    user = person(request)
    alert = selectors.alert(user, alert_id)
    assignee = _find_member(alert, payload.assignee) if payload.assignee else None
    triage.acknowledge(alert=alert, by=user, note=payload.note, assignee=assignee)
    return _shape_alert_page(selectors.alert(user, alert_id))


@router.post("/alerts/{int:alert_id}/assign", response=AlertPageOut)
def assign(request: HttpRequest, alert_id: int, payload: Assigned) -> AlertPageOut:
    """Assign an alert to a member of its team, which acknowledges an open one."""
    user = person(request)
    alert = selectors.alert(user, alert_id)
    triage.assign(alert=alert, by=user, assignee=_find_member(alert, payload.assignee))
    return _shape_alert_page(selectors.alert(user, alert_id))


@router.post("/alerts/{int:alert_id}/snooze", response=AlertPageOut)
def snooze(request: HttpRequest, alert_id: int, payload: Snoozed) -> AlertPageOut:
    """Snooze an alert until a moment, or until a release was measured."""
    user = person(request)
    if payload.until is not None and payload.until.tzinfo is None:
        raise Invalid(
            f"{payload.until:%Y-%m-%dT%H:%M} has no time zone: write it like 2026-12-24T08:00Z.", code="snooze"
        )
    triage.snooze(alert=selectors.alert(user, alert_id), by=user, until=payload.until, release=payload.release)
    return _shape_alert_page(selectors.alert(user, alert_id))


@router.post("/alerts/{int:alert_id}/invalid", response=AlertPageOut)
def call_invalid(request: HttpRequest, alert_id: int, payload: Reasoned) -> AlertPageOut:
    """Mark an alert as a false positive. The reason is kept, and digests count it."""
    user = person(request)
    triage.mark_invalid(alert=selectors.alert(user, alert_id), by=user, reason=payload.reason)
    return _shape_alert_page(selectors.alert(user, alert_id))


@router.post("/alerts/{int:alert_id}/infra", response=AlertPageOut)
def call_infra(request: HttpRequest, alert_id: int, payload: Reasoned) -> AlertPageOut:
    """Mark an alert as an infrastructure issue: the farm or a machine failed."""
    user = person(request)
    triage.mark_infra(alert=selectors.alert(user, alert_id), by=user, reason=payload.reason)
    return _shape_alert_page(selectors.alert(user, alert_id))


@router.post("/alerts/{int:alert_id}/reopen", response=AlertPageOut)
def reopen(request: HttpRequest, alert_id: int, payload: Noted) -> AlertPageOut:
    """Open an alert again."""
    user = person(request)
    triage.reopen(alert=selectors.alert(user, alert_id), by=user, note=payload.note)
    return _shape_alert_page(selectors.alert(user, alert_id))


@router.post("/alerts/{int:alert_id}/notes", response=AlertPageOut)
def add_note(request: HttpRequest, alert_id: int, payload: Noted) -> AlertPageOut:
    """Keep a note with the alert and in its log."""
    user = person(request)
    triage.add_note(alert=selectors.alert(user, alert_id), by=user, note=payload.note)
    return _shape_alert_page(selectors.alert(user, alert_id))


def _shape_alert(shape: type[AnyAlert], alert: Alert, **further_fields: object) -> AnyAlert:
    return fill(
        shape,
        alert,
        url=address_of(alert),
        team=alert.team.name,
        watch=alert.watch_id,
        watch_name=alert.watch.name,
        model=alert.model.name,
        version=alert.version.number,
        began=alert.since_phrase,
        moved=list(alert.changed_packages),
        assignee=username(alert.assignee),
        symptoms=[fill(SymptomOut, symptom, run=symptom.run_id) for symptom in alert.symptoms_by_weight()],
        **further_fields,
    )


def _shape_alert_page(alert: Alert) -> AlertPageOut:
    return _shape_alert(
        AlertPageOut,
        alert,
        investigations=[shape_investigation(row) for row in alert.investigations.all()],
        events=[fill(AlertEventOut, event, by=username(event.actor)) for event in alert.events.all()],
    )


def _find_member(alert: Alert, name: str) -> User:
    """Return the member of that name. Raises Invalid where the team has none."""
    membership = memberships_in(alert.team).filter(user__username=name.replace("\x00", "")).first()
    if membership is None:
        raise Invalid(f"{name[:60]} is not in team “{alert.team.name}”.", code="assignee")
    return membership.user
