"""What is asked of an alert by measuring more: since when, by bisection, and which session option undoes it."""

from datetime import datetime

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from farm.alerts.models import Investigation
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors import investigations
from farm.alerts.services.investigations import ask_since_when, ask_work_around
from farm.alerts.states import InvestigationKind
from farm.api.auth import person

router = Router(tags=["alerts"])


class InvestigationOut(Schema):
    """`state`: waiting, measuring, answered or failed. A bisection's answer names `first_bad`, `last_good`, `suspects`,
    the `ratio` with its interval, `turns` and `minutes`; a work-around's the session options and their verdict."""

    id: int = Field(description="its number")
    alert: int = Field(validation_alias="alert_id", description="the alert it is about")
    kind: str = Field(description="since_when (a bisection) or work_around")
    state: str = Field(description="waiting, measuring, answered or failed")
    sentence: str = Field(description="the answer, or the progress")
    run: int | None = Field(validation_alias="run_id", description="the run that measures for it now; null: none")
    asked: dict[str, object] | None = Field(description="what was asked for")
    steps: list[dict[str, object]] = Field(description="what was measured so far, in order")
    answer: dict[str, object] | None = Field(description="the result, for programs; null: none yet")
    started_at: datetime = Field(description="when it was asked for")
    ended_at: datetime | None = Field(description="when it ended; null: it goes on")


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
def list_bisections(request: HttpRequest, alert_id: int) -> list[Investigation]:
    """An alert's bisections, oldest first."""
    alert = selectors.alert(person(request), alert_id)
    return [one for one in alert.investigations.all() if one.kind == InvestigationKind.SINCE_WHEN]


@router.post("/alerts/{int:alert_id}/bisections", response={202: InvestigationOut})
def bisect(request: HttpRequest, alert_id: int, payload: Bounds) -> Status[Investigation]:
    """Find the first bad release: each step measures the good one and one other side by side, as a run."""
    user = person(request)
    alert = selectors.alert(user, alert_id)
    asked = ask_since_when(alert=alert, by=user, good=payload.good, bad=payload.bad)
    return Status(202, asked)


@router.post("/alerts/{int:alert_id}/work-arounds", response={202: InvestigationOut})
def work_around(request: HttpRequest, alert_id: int, payload: Tried) -> Status[Investigation]:
    """Look for a session option that undoes it: each one is measured beside both releases."""
    user = person(request)
    alert = selectors.alert(user, alert_id)
    asked = ask_work_around(alert=alert, by=user, optimizers=payload.optimizers)
    return Status(202, asked)


@router.get("/investigations/{int:investigation_id}", response=InvestigationOut)
def read_investigation(request: HttpRequest, investigation_id: int) -> Investigation:
    """One of them, with its steps so far."""
    return investigations.investigation(person(request), investigation_id)
