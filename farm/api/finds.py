"""Searches for the settings to ship over HTTP: ask, read and cancel."""

from django.http import HttpRequest
from ninja import Router, Status

from farm.alerts.models import Find
from farm.alerts.selectors import finds as selectors
from farm.alerts.services.finds import cancel_find, start_find
from farm.api.auth import person
from farm.api.shapes import fill
from farm.contract.api.finds import FindOrder, FindOut, RaceOut
from farm.registry.selectors import version

router = Router(tags=["finds"])


@router.post("/finds", response={202: FindOut})
def find_settings(request: HttpRequest, payload: FindOrder) -> Status[FindOut]:
    """Find the fastest settings that are accurate enough and fit, by a race on each kind of hardware."""
    user = person(request)
    return Status(202, _shape_find(start_find(version=version(user, payload.version), by=user, order=payload)))


@router.get("/finds/{int:find_id}", response=FindOut)
def read_find(request: HttpRequest, find_id: int) -> FindOut:
    """Read a search, with the best answer so far of each race."""
    return _shape_find(selectors.find_first_race(person(request), find_id))


@router.post("/finds/{int:find_id}/cancel", response=FindOut)
def cancel(request: HttpRequest, find_id: int) -> FindOut:
    """Cancel a search. The best answers so far stay."""
    user = person(request)
    return _shape_find(cancel_find(find=selectors.find_first_race(user, find_id), by=user))


def _shape_find(first: Find) -> FindOut:
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
        races=[_shape_race(race) for race in search.races],
    )


def _shape_race(race: Find) -> RaceOut:
    return fill(
        RaceOut,
        race,
        doing=selectors.describe_progress(race),
        run=race.run_id,
        runs=[step["run"] for step in race.steps],
        minutes=round(race.minutes, 2),
    )
