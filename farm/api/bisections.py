"""Searches about an alert: bisections for its first bad release, and searches for a session option that undoes it."""

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from farm.alerts.models import Investigation
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors import origins
from farm.alerts.services.investigations import start_bisection, start_work_around_search
from farm.alerts.states import InvestigationKind
from farm.api.auth import person
from farm.api.shapes import StrictSchema, fill
from farm.contract.api.alerts import InvestigationOut

router = Router(tags=["alerts"])


class Bounds(StrictSchema):
    """The releases of a bisection. One that is left out is the alert's own."""

    good: str = Field(default="", max_length=64, description="the last good release; left out: the alert's own")
    bad: str = Field(default="", max_length=64, description="the bad release; left out: the alert's own")


class Tried(StrictSchema):
    """What to try. `optimizers`: names that are tried before those found in the runtime's library."""

    optimizers: list[str] = Field(
        default=[],
        max_length=200,
        description="names of optimisers that are tried before those found in the runtime's library",
    )


@router.get("/alerts/{int:alert_id}/bisections", response=list[InvestigationOut])
def list_bisections(request: HttpRequest, alert_id: int) -> list[InvestigationOut]:
    """An alert's bisections, oldest first."""
    alert = selectors.alert(person(request), alert_id)
    return [shape_investigation(row) for row in alert.investigations.all() if row.kind == InvestigationKind.SINCE_WHEN]


@router.post("/alerts/{int:alert_id}/bisections", response={202: InvestigationOut})
def bisect(request: HttpRequest, alert_id: int, payload: Bounds) -> Status[InvestigationOut]:
    """Find the first bad release: each step is a run that measures the good release beside another one."""
    user = person(request)
    alert = selectors.alert(user, alert_id)
    investigation = start_bisection(alert=alert, by=user, good=payload.good, bad=payload.bad)
    return Status(202, shape_investigation(investigation))


@router.post("/alerts/{int:alert_id}/work-arounds", response={202: InvestigationOut})
def work_around(request: HttpRequest, alert_id: int, payload: Tried) -> Status[InvestigationOut]:
    """Find a session option that undoes the change: each one is measured beside both releases."""
    user = person(request)
    alert = selectors.alert(user, alert_id)
    investigation = start_work_around_search(alert=alert, by=user, optimizers=payload.optimizers)
    return Status(202, shape_investigation(investigation))


@router.get("/investigations/{int:investigation_id}", response=InvestigationOut)
def read_investigation(request: HttpRequest, investigation_id: int) -> InvestigationOut:
    """Read a bisection or a search for a work-around, with its steps so far."""
    return shape_investigation(origins.investigation(person(request), investigation_id))


def shape_investigation(row: Investigation) -> InvestigationOut:
    return fill(InvestigationOut, row, alert=row.alert_id, run=row.run_id, sentence=origins.describe_search(row))
