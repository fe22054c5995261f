"""What is asked of an alert by measuring more: since when, by bisection, and which session option undoes it."""

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from farm.alerts.models import Investigation
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors import origins
from farm.alerts.services.investigations import ask_since_when, ask_work_around
from farm.alerts.states import InvestigationKind
from farm.api.auth import person
from farm.api.shapes import shaped
from farm.contract.api.alerts import InvestigationOut

router = Router(tags=["alerts"])


class Bounds(Schema):
    """Left out: the alert's own releases."""

    model_config = ConfigDict(extra="forbid")

    good: str = Field(default="", max_length=64, description="the last good release; left out: the alert's own")
    bad: str = Field(default="", max_length=64, description="the bad release; left out: the alert's own")


class Tried(Schema):
    """`optimizers`: names that are tried before those found in the runtime's library."""

    model_config = ConfigDict(extra="forbid")

    optimizers: list[str] = Field(
        default=[],
        max_length=200,
        description="names of optimisers that are tried before those found in the runtime's library",
    )


@router.get("/alerts/{int:alert_id}/bisections", response=list[InvestigationOut])
def list_bisections(request: HttpRequest, alert_id: int) -> list[InvestigationOut]:
    """An alert's bisections, oldest first."""
    alert = selectors.alert(person(request), alert_id)
    return [investigated(row) for row in alert.investigations.all() if row.kind == InvestigationKind.SINCE_WHEN]


@router.post("/alerts/{int:alert_id}/bisections", response={202: InvestigationOut})
def bisect(request: HttpRequest, alert_id: int, payload: Bounds) -> Status[InvestigationOut]:
    """Find the first bad release: each step measures the good one and one other side by side, as a run."""
    user = person(request)
    alert = selectors.alert(user, alert_id)
    asked = ask_since_when(alert=alert, by=user, good=payload.good, bad=payload.bad)
    return Status(202, investigated(asked))


@router.post("/alerts/{int:alert_id}/work-arounds", response={202: InvestigationOut})
def work_around(request: HttpRequest, alert_id: int, payload: Tried) -> Status[InvestigationOut]:
    """Look for a session option that undoes it: each one is measured beside both releases."""
    user = person(request)
    alert = selectors.alert(user, alert_id)
    asked = ask_work_around(alert=alert, by=user, optimizers=payload.optimizers)
    return Status(202, investigated(asked))


@router.get("/investigations/{int:investigation_id}", response=InvestigationOut)
def read_investigation(request: HttpRequest, investigation_id: int) -> InvestigationOut:
    """One of them, with its steps so far."""
    return investigated(origins.investigation(person(request), investigation_id))


def investigated(row: Investigation) -> InvestigationOut:
    return shaped(InvestigationOut, row, alert=row.alert_id, run=row.run_id)
