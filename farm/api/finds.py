"""Searches for the settings to ship over HTTP: ask, read and cancel."""

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from farm.alerts.models import Find
from farm.alerts.selectors import finds as selectors
from farm.alerts.services.finds import Question, cancel_find, start_find
from farm.api.auth import person
from farm.contract.api.finds import FindOut, RaceOut
from farm.contract.document_find import MAX_MINUTES, Goal
from farm.registry.selectors import version
from farm.rules.searches.limits import Limits

router = Router(tags=["finds"])


class FindOrder(Schema):
    """Budgets that are left out are none. `space`: a matrix whose points compete, the first of them in use today."""

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, le=2**62, description="the version to measure, by its number on the farm")
    goal: Goal = Field(default="latency", description="what is to be best")
    minutes: float = Field(default=10.0, gt=0, le=MAX_MINUTES, description="of each kind of hardware, about")
    space: dict[str, object] | None = Field(
        default=None, description="a matrix; left out: the usual space of the providers"
    )
    providers: list[str] = Field(
        default=["cpu"], min_length=1, max_length=16, description="of the usual space, by their short names"
    )
    beside: dict[str, object] = Field(
        default={}, description="axes and settings that all of the usual space has, such as a batch or a tolerance"
    )
    hardware: list[str] = Field(
        default=[], max_length=16, description="a race each: tags or node:NAME; left out: what the providers run on"
    )
    max_p50_ms: float | None = Field(default=None, gt=0, le=1e7, description="budget of the median latency")
    max_p99_ms: float | None = Field(default=None, gt=0, le=1e7, description="budget of the 99th percentile")
    max_memory_bytes: float | None = Field(default=None, gt=0, le=2**62, description="budget of the peak memory")
    min_accuracy: float | None = Field(default=None, gt=0, le=1, description="budget on the version's labelled data")


@router.post("/finds", response={202: FindOut})
def find_settings(request: HttpRequest, payload: FindOrder) -> Status[FindOut]:
    """Find the fastest settings that are accurate enough and fit, by a race on each kind of hardware."""
    user = person(request)
    question = Question(
        goal=payload.goal,
        minutes=payload.minutes,
        space=payload.space,
        providers=payload.providers,
        beside=payload.beside,
        hardware=payload.hardware,
        limits=Limits(payload.max_p50_ms, payload.max_p99_ms, payload.max_memory_bytes, payload.min_accuracy),
    )
    return Status(202, _make_answer(start_find(version=version(user, payload.version), by=user, question=question)))


@router.get("/finds/{int:find_id}", response=FindOut)
def read_find(request: HttpRequest, find_id: int) -> FindOut:
    """Read a search, with the best answer so far of each race."""
    return _make_answer(selectors.find(person(request), find_id))


@router.post("/finds/{int:find_id}/cancel", response=FindOut)
def cancel(request: HttpRequest, find_id: int) -> FindOut:
    """Cancel a search. The best answers so far stay."""
    user = person(request)
    return _make_answer(cancel_find(find=selectors.find(user, find_id), by=user))


def _make_answer(first: Find) -> FindOut:
    found = selectors.summarise_races(first)
    return FindOut(
        id=first.pk,
        url=selectors.address_of(first),
        version=first.version_id,
        goal=first.question["goal"],
        is_open=found.is_open,
        sentence=found.sentence,
        everywhere=None if found.everywhere is None else found.everywhere.settings,
        races=[_race(race) for race in found.races],
        started_at=first.started_at,
    )


def _race(race: Find) -> RaceOut:
    return RaceOut(
        hardware=race.hardware,
        state=race.state,
        sentence=race.sentence,
        doing=selectors.describe_progress(race),
        run=race.run_id,
        runs=[step["run"] for step in race.steps],
        minutes=round(race.minutes, 2),
        answer=race.answer,
    )
