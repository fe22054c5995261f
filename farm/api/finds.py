"""Searches for the settings to ship over HTTP: ask, read and cancel."""

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from farm.alerts.models import Find
from farm.alerts.selectors import finds as selectors
from farm.alerts.services.finds import Question, cancel_find, start_find
from farm.api.auth import person
from farm.api.shapes import fill
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
    names = {"goal", "minutes", "space", "providers", "beside", "hardware"}
    limits = Limits(**payload.model_dump(exclude={"version", *names}))
    question = Question(limits=limits, **payload.model_dump(include=names))
    return Status(202, _make_answer(start_find(version=version(user, payload.version), by=user, question=question)))


@router.get("/finds/{int:find_id}", response=FindOut)
def read_find(request: HttpRequest, find_id: int) -> FindOut:
    """Read a search, with the best answer so far of each race."""
    return _make_answer(selectors.find_first_race(person(request), find_id))


@router.post("/finds/{int:find_id}/cancel", response=FindOut)
def cancel(request: HttpRequest, find_id: int) -> FindOut:
    """Cancel a search. The best answers so far stay."""
    user = person(request)
    return _make_answer(cancel_find(find=selectors.find_first_race(user, find_id), by=user))


def _make_answer(first: Find) -> FindOut:
    search = selectors.summarise_races(first)
    return fill(
        FindOut,
        first,
        id=first.pk,
        url=selectors.address_of(first),
        version=first.version_id,
        goal=first.question["goal"],
        is_open=search.is_open,
        sentence=search.sentence,
        everywhere=None if search.everywhere is None else search.everywhere.settings,
        races=[_make_race(race) for race in search.races],
    )


def _make_race(race: Find) -> RaceOut:
    return fill(
        RaceOut,
        race,
        doing=selectors.describe_progress(race),
        run=race.run_id,
        runs=[step["run"] for step in race.steps],
        minutes=round(race.minutes, 2),
    )
