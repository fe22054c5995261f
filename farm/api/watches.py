"""Watches over HTTP: standing orders, their rounds and long series, and the call of a pipeline."""

from datetime import datetime
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from ninja.pagination import paginate
from pydantic import ConfigDict, Field

from farm.accounts.refusals import Missing
from farm.accounts.selectors import Anyone, team_to_write
from farm.alerts.models import Channel, Point, Watch, WatchRound
from farm.alerts.selectors import alerts as selectors
from farm.alerts.services import causes, watches
from farm.api.auth import person
from farm.api.pages import LongPage, Page
from farm.registry import selectors as registry
from farm.registry.models import Model

if TYPE_CHECKING:
    from django.db.models import QuerySet

router = Router(tags=["watches"])
MOST_NAMED = 100
Id = int


class Changes(Schema):
    """What is left out stays. `rule`: latency, session, first, memory as fractions, and `kinds` that alert."""

    model_config = ConfigDict(extra="forbid")

    matrix: dict[str, object] | str | None = Field(default=None, description="without `runtime`; null: the default one")
    rule: dict[str, object] | None = None
    reference: str | None = Field(default=None, max_length=64, description="the pinned release, like 1.29.0")
    schedule: str | None = Field(default=None, max_length=100, description="five fields of cron, UTC; empty: none")
    on_release: bool | None = None
    on_version: bool | None = None
    with_prereleases: bool | None = None
    is_active: bool | None = None
    channels: list[Id] | None = Field(default=None, max_length=MOST_NAMED)


class WatchIn(Changes):
    """`models`: numbers or names; `label`: every model that has it; one of them at least."""

    name: str = Field(max_length=100)
    team: str = Field(default="", max_length=100, description="default: your first team")
    reference: str = Field(max_length=64)
    models: list[int | str] = Field(default=[], max_length=MOST_NAMED)
    label: str = Field(default="", max_length=100)
    distribution: str = Field(default="onnxruntime", max_length=64)


class NamedOut(Schema):
    id: int
    name: str


class WatchOut(Schema):
    """`problem`: why the last round could not be started. `next_at`: of the schedule."""

    id: int
    url: str
    name: str
    team: str = Field(validation_alias="team.name")
    is_active: bool
    models: list[NamedOut] = Field(validation_alias="watched")
    label: str
    matrix: dict[str, object]
    rule: dict[str, object]
    distribution: str
    reference: str
    on_release: bool
    on_version: bool
    with_prereleases: bool
    schedule: str
    next_at: datetime | None
    channels: list[NamedOut]
    problem: str
    created_by: str | None
    created_at: datetime

    @staticmethod
    def resolve_url(watch: Watch) -> str:
        return f"{settings.PUBLIC_URL}/watches/{watch.pk}/"

    @staticmethod
    def resolve_rule(watch: Watch) -> dict[str, object]:
        return watch.rule.model_dump(mode="json")

    @staticmethod
    def resolve_created_by(watch: Watch) -> str | None:
        return watch.created_by.username if watch.created_by else None


class RoundOut(Schema):
    """`old` is compared with `new`, in one block with `pinned`; `run` measures, `confirming` shows it again."""

    id: int
    watch: int = Field(validation_alias="watch_id")
    model: str = Field(validation_alias="version.model.name")
    version: int = Field(validation_alias="version.number")
    cause: str
    old: str
    new: str
    pinned: str
    state: str
    outcome: str
    sentence: str
    compared: int
    run: int | None = Field(validation_alias="run_id")
    confirming: int | None = Field(validation_alias="confirming_id")
    created_at: datetime
    judged_at: datetime | None


class PointOut(Schema):
    """`ratio`: to the reference that stood in the same block, with its 95 % interval."""

    series: str
    label: str
    node: str
    runtime: str
    ratio: float
    low: float | None
    high: float | None
    p50_ms: float | None
    reference_ms: float | None
    at: datetime


class Call(Schema):
    """Left out: the newest release against the pinned reference, with the newest version of each model."""

    model_config = ConfigDict(extra="forbid")

    candidate: str = Field(default="", max_length=64)
    baseline: str = Field(default="", max_length=64)
    versions: list[Id] = Field(default=[], max_length=MOST_NAMED)


class Line(Schema):
    """`series`: one line; left out: all of them."""

    series: str = Field(default="", max_length=32)


@router.get("/watches", response=list[WatchOut])
@paginate(Page)
def list_watches(request: HttpRequest) -> "QuerySet[Watch]":
    """Watches of your teams, by name."""
    return selectors.watches_visible_to(person(request))


@router.post("/watches", response={201: WatchOut})
def create_watch(request: HttpRequest, payload: WatchIn) -> Status[Watch]:
    """A standing order: from now on these models are measured again when something new appears."""
    user = person(request)
    team = team_to_write(user, name=payload.team)
    given = payload.dict(exclude_none=True, exclude={"team", "models", "channels", "is_active"})
    made = watches.create_watch(
        team=team,
        by=user,
        watched=[_model(user, one, team=team.name) for one in payload.models],
        channels=_channels(user, payload.channels or []),
        **given,
    )
    if payload.is_active is False:
        watches.change_watch(watch=made, by=user, is_active=False)
    return Status(201, selectors.watch(user, made.pk))


@router.get("/watches/{int:watch_id}", response=WatchOut)
def read_watch(request: HttpRequest, watch_id: int) -> Watch:
    """One watch."""
    return selectors.watch(person(request), watch_id)


@router.patch("/watches/{int:watch_id}", response=WatchOut)
def change_watch(request: HttpRequest, watch_id: int, payload: Changes) -> Watch:
    """Change a watch; what is left out stays. `is_active` pauses it and lets it go on."""
    user = person(request)
    given = payload.dict(exclude_unset=True)
    if given.get("channels") is not None:
        given["channels"] = _channels(user, given["channels"])
    # null is a value for the matrix alone, where it means the default one
    given = {key: value for key, value in given.items() if value is not None or key == "matrix"}
    watches.change_watch(watch=selectors.watch(user, watch_id), by=user, **given)
    return selectors.watch(user, watch_id)


@router.delete("/watches/{int:watch_id}", response={204: None})
def remove_watch(request: HttpRequest, watch_id: int) -> Status[None]:
    """Take a watch out, with its rounds and alerts; its runs stay."""
    user = person(request)
    watches.remove_watch(watch=selectors.watch(user, watch_id), by=user)
    return Status(204, None)


@router.post("/watches/{int:watch_id}/call", response={202: list[RoundOut]})
def call_watch(request: HttpRequest, watch_id: int, payload: Call) -> Status[list[WatchRound]]:
    """Measure now: a round for each watched model, to be followed under `rounds`."""
    user = person(request)
    versions = [registry.version(user, one) for one in payload.versions]
    opened = causes.call_watch(
        watch=selectors.watch(user, watch_id),
        by=user,
        candidate=payload.candidate,
        baseline=payload.baseline,
        versions=versions,
    )
    return Status(202, opened)


@router.get("/watches/{int:watch_id}/rounds", response=list[RoundOut])
@paginate(Page)
def list_rounds(request: HttpRequest, watch_id: int) -> "QuerySet[WatchRound]":
    """What a watch measured, newest first."""
    return selectors.rounds_of(selectors.watch(person(request), watch_id))


@router.get("/watches/{int:watch_id}/points", response=list[PointOut])
@paginate(LongPage)
def list_points(request: HttpRequest, watch_id: int, asked: Query[Line]) -> "QuerySet[Point]":
    """The watch's long series, oldest point first: each release as a ratio to the pinned reference."""
    points = selectors.points_of(selectors.watch(person(request), watch_id))
    return points.filter(series=asked.series.replace("\x00", "")) if asked.series else points


def _model(user: Anyone, named: int | str, *, team: str) -> Model:
    """A model by its number or its name. Raises Missing."""
    if isinstance(named, int):
        return registry.model(user, named)
    rows = registry.models_visible_to(user).filter(name=named.replace("\x00", ""), team__name=team)
    found = rows.first()
    if found is None:
        raise Missing(f"Team “{team}” has no model “{named[:100]}”.", hint="List yours with `onnxfarm models`.")
    return found


def _channels(user: Anyone, numbers: list[int]) -> list[Channel]:
    return [selectors.channel(user, number) for number in numbers]
