"""Watches over HTTP: standing orders, their rounds and long series, and the call of a pipeline."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from farm.accounts.refusals import Missing
from farm.accounts.selectors import Anyone, team_to_write
from farm.alerts.models import Channel, Watch, WatchRound
from farm.alerts.selectors import alerts as selectors
from farm.alerts.services import causes, watches
from farm.api.auth import person
from farm.registry import selectors as registry
from farm.registry.models import Model

router = Router(tags=["watches"])
MOST_NAMED = 100
Id = int


class Changes(Schema):
    """What is left out stays. `rule`: latency, session, first, memory as fractions, and `kinds` that alert."""

    model_config = ConfigDict(extra="forbid")

    matrix: dict[str, Any] | str | None = Field(default=None, description="without `runtime`; null: the default one")
    rule: dict[str, Any] | None = None
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
    team: str
    is_active: bool
    models: list[NamedOut]
    label: str
    matrix: dict[str, Any]
    rule: dict[str, Any]
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


class RoundOut(Schema):
    """`old` is compared with `new`, in one block with `pinned`; `run` measures, `confirming` shows it again."""

    id: int
    watch: int
    model: str
    version: int
    cause: str
    old: str
    new: str
    pinned: str
    state: str
    outcome: str
    sentence: str
    compared: int
    run: int | None
    confirming: int | None
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


class Paging(Schema):
    """`after`: skip so many; `limit`: at most 100."""

    after: int = Field(default=0, ge=0, le=1_000_000)
    limit: int = Field(default=50, ge=1, le=100)


class SeriesPaging(Paging):
    """`series`: one line; `limit`: at most 1000."""

    series: str = Field(default="", max_length=32)
    limit: int = Field(default=1000, ge=1, le=1000)


@router.get("/watches", response=list[WatchOut])
def list_watches(request: HttpRequest, paging: Query[Paging]) -> list[WatchOut]:
    """Watches of your teams, by name."""
    found = selectors.watches_visible_to(person(request))[paging.after : paging.after + paging.limit]
    return [watch_out(one) for one in found]


@router.post("/watches", response={201: WatchOut})
def create_watch(request: HttpRequest, payload: WatchIn) -> Status[WatchOut]:
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
    return Status(201, watch_out(selectors.watch(user, made.pk)))


@router.get("/watches/{int:watch_id}", response=WatchOut)
def read_watch(request: HttpRequest, watch_id: int) -> WatchOut:
    """One watch."""
    return watch_out(selectors.watch(person(request), watch_id))


@router.patch("/watches/{int:watch_id}", response=WatchOut)
def change_watch(request: HttpRequest, watch_id: int, payload: Changes) -> WatchOut:
    """Change a watch; what is left out stays. `is_active` pauses it and lets it go on."""
    user = person(request)
    given = payload.dict(exclude_unset=True)
    if given.get("channels") is not None:
        given["channels"] = _channels(user, given["channels"])
    # null is a value for the matrix alone, where it means the default one
    given = {key: value for key, value in given.items() if value is not None or key == "matrix"}
    watches.change_watch(watch=selectors.watch(user, watch_id), by=user, **given)
    return watch_out(selectors.watch(user, watch_id))


@router.delete("/watches/{int:watch_id}", response={204: None})
def remove_watch(request: HttpRequest, watch_id: int) -> Status[None]:
    """Take a watch out, with its rounds and alerts; its runs stay."""
    user = person(request)
    watches.remove_watch(watch=selectors.watch(user, watch_id), by=user)
    return Status(204, None)


@router.post("/watches/{int:watch_id}/call", response={202: list[RoundOut]})
def call_watch(request: HttpRequest, watch_id: int, payload: Call) -> Status[list[RoundOut]]:
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
    return Status(202, [_round(one) for one in opened])


@router.get("/watches/{int:watch_id}/rounds", response=list[RoundOut])
def list_rounds(request: HttpRequest, watch_id: int, paging: Query[Paging]) -> list[RoundOut]:
    """What a watch measured, newest first."""
    found = selectors.rounds_of(selectors.watch(person(request), watch_id))
    return [_round(one) for one in found[paging.after : paging.after + paging.limit]]


@router.get("/watches/{int:watch_id}/points", response=list[PointOut])
def list_points(request: HttpRequest, watch_id: int, paging: Query[SeriesPaging]) -> list[PointOut]:
    """The watch's long series, oldest point first: each release as a ratio to the pinned reference."""
    found = selectors.points_of(selectors.watch(person(request), watch_id))
    if paging.series:
        found = found.filter(series=paging.series.replace("\x00", ""))
    return [PointOut.from_orm(one) for one in found[paging.after : paging.after + paging.limit]]


def watch_out(watch: Watch) -> WatchOut:
    return WatchOut(
        id=watch.pk,
        url=f"{settings.PUBLIC_URL}/watches/{watch.pk}/",
        name=watch.name,
        team=watch.team.name,
        is_active=watch.is_active,
        models=[NamedOut(id=one.pk, name=one.name) for one in watch.watched.all()],
        label=watch.label,
        matrix=watch.matrix,
        rule=watch.rule.model_dump(mode="json"),
        distribution=watch.distribution,
        reference=watch.reference,
        on_release=watch.on_release,
        on_version=watch.on_version,
        with_prereleases=watch.with_prereleases,
        schedule=watch.schedule,
        next_at=watch.next_at,
        channels=[NamedOut(id=one.pk, name=one.name) for one in watch.channels.all()],
        problem=watch.problem,
        created_by=watch.created_by.username if watch.created_by else None,
        created_at=watch.created_at,
    )


def _round(one: WatchRound) -> RoundOut:
    return RoundOut(
        id=one.pk,
        watch=one.watch_id,
        model=one.version.model.name,
        version=one.version.number,
        cause=one.cause,
        old=one.old,
        new=one.new,
        pinned=one.pinned,
        state=one.state,
        outcome=one.outcome,
        sentence=one.sentence,
        compared=one.compared,
        run=one.run_id,
        confirming=one.confirming_id,
        created_at=one.created_at,
        judged_at=one.judged_at,
    )


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
