"""What a team keeps, over HTTP: its rule, and what goes when the rule acts next."""

from dataclasses import asdict
from datetime import datetime

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import ConfigDict, Field

from farm.accounts.states import Scope
from farm.api.auth import BrowserAuth, TokenAuth, person
from farm.runs.models import RetentionRule
from farm.runs.selectors.retention import doomed, next_act, retention_of
from farm.runs.services import set_retention

router = Router(tags=["account"], auth=[TokenAuth(changes=Scope.ADMIN), BrowserAuth()])


class RetentionIn(Schema):
    """How long a team keeps what its documents and verdicts do not need; null: always."""

    model_config = ConfigDict(extra="forbid")

    timings_days: int | None = Field(default=None, description="days after a run's end until its raw timings go")
    traces_days: int | None = Field(
        default=None, description="days after a run's end until its raw traces and compiled models go"
    )
    models_days: int | None = Field(
        default=None, description="days after its last upload until a model without a run goes"
    )


class DoomedOut(Schema):
    """One kind that goes when the rule acts next."""

    kind: str = Field(description="raw timings, raw traces, compiled models, or models without a run")
    days: int = Field(description="what is older goes")
    count: int = Field(description="runs with raw timings, traces, compiled models, or models")
    bytes: int = Field(description="their size; of raw timings at most so much, as nodes reported it")


class RetentionOut(Schema):
    """A team's rule, and what it comes to."""

    timings_days: int | None = Field(description="days after a run's end until its raw timings go; null: never")
    traces_days: int | None = Field(
        description="days after a run's end until its raw traces and compiled models go; null: never"
    )
    models_days: int | None = Field(
        description="days after its last upload until a model without a run goes; null: never"
    )
    acts_at: datetime | None = Field(description="when it acts next; until then it can be changed. null: it keeps all")
    acted_at: datetime | None = Field(description="when all that was due had gone last; null: not yet")
    doomed: list[DoomedOut] = Field(description="what goes then")


@router.get("/teams/{int:team_id}/retention", response=RetentionOut)
def retention(request: HttpRequest, team_id: int) -> RetentionOut:
    """What a team keeps and for how long, and what goes next."""
    return _out(retention_of(person(request), team_id))


@router.put("/teams/{int:team_id}/retention", response=RetentionOut)
def change_retention(request: HttpRequest, team_id: int, payload: RetentionIn) -> RetentionOut:
    """Set the team's rule; its admins may. One that removes more acts a week later."""
    user = person(request)
    return _out(set_retention(team=retention_of(user, team_id).team, by=user, **payload.dict()))


def _out(rule: RetentionRule) -> RetentionOut:
    return RetentionOut(
        timings_days=rule.timings_days,
        traces_days=rule.traces_days,
        models_days=rule.models_days,
        acts_at=next_act(rule),
        acted_at=rule.acted_at,
        doomed=[DoomedOut(**asdict(one)) for one in doomed(rule)],
    )
