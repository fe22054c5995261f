"""A team's retention rule over HTTP, and what it removes next."""

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from farm.accounts.states import Scope
from farm.api.auth import BrowserAuth, TokenAuth, person
from farm.api.shapes import StrictSchema, fill
from farm.contract.api.people import DoomedOut, RetentionOut
from farm.runs.models import RetentionRule
from farm.runs.models.retention import BRANCHES_DAYS
from farm.runs.selectors.retention import find_next_act, find_retention_rule, list_due_removals
from farm.runs.services import set_retention

router = Router(tags=["account"], auth=[TokenAuth(changes=Scope.ADMIN), BrowserAuth()])


class RetentionIn(StrictSchema):
    """How long a team keeps what its documents and verdicts do not need; null: always."""

    timings_days: int | None = Field(default=None, description="days after a run's end until its raw timings go")
    traces_days: int | None = Field(
        default=None, description="days after a run's end until its raw traces and compiled models go"
    )
    models_days: int | None = Field(
        default=None, description="days after its last upload until a model without a run goes"
    )
    branches_days: int | None = Field(
        default=BRANCHES_DAYS, description="days after a gate sent it last until a branch's version goes"
    )


@router.get("/teams/{int:team_id}/retention", response=RetentionOut)
def retention(request: HttpRequest, team_id: int) -> RetentionOut:
    """What a team keeps and for how long, and what goes next."""
    return _shape_retention(find_retention_rule(person(request), team_id))


@router.put("/teams/{int:team_id}/retention", response=RetentionOut)
def change_retention(request: HttpRequest, team_id: int, payload: RetentionIn) -> RetentionOut:
    """Set the team's rule; its admins may. One that removes more acts a week later."""
    user = person(request)
    return _shape_retention(set_retention(team=find_retention_rule(user, team_id).team, by=user, **payload.dict()))


def _shape_retention(rule: RetentionRule) -> RetentionOut:
    going = [fill(DoomedOut, kind) for kind in list_due_removals(rule)]
    return fill(RetentionOut, rule, acts_at=find_next_act(rule), doomed=going)
