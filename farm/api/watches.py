"""Watches over HTTP, with their rounds and long series, and the call of a pipeline."""

from datetime import datetime

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from farm.accounts.selectors import Anyone, team_to_write
from farm.alerts.models import Channel, Point, Watch, WatchRound
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors.channels import channel
from farm.alerts.services import causes, watches
from farm.api.auth import person
from farm.api.shapes import LongPaging, Paging, StrictSchema, fill, username
from farm.base.refusals import require_row
from farm.contract.api.alerts import NamedOut, RoundOut, WatchOut
from farm.registry import selectors as registry
from farm.registry.models import Model

router = Router(tags=["watches"])
MAX_NAMED = 100
Id = int


class Changes(StrictSchema):
    """What is left out stays. `rule`: latency, session, first, memory as fractions, and `kinds` that alert."""

    matrix: dict[str, object] | str | None = Field(default=None, description="without `runtime`; null: the default one")
    rule: dict[str, object] | None = Field(
        default=None, description="latency, session, first and memory as fractions, and `kinds` that alert"
    )
    reference: str | None = Field(default=None, max_length=64, description="the pinned release, like 1.29.0")
    schedule: str | None = Field(default=None, max_length=100, description="five fields of cron, UTC; empty: none")
    on_release: bool | None = Field(default=None, description="whether a new release of the runtime is measured")
    on_version: bool | None = Field(default=None, description="whether a new version of a model is measured")
    with_prereleases: bool | None = Field(
        default=None, description="whether release candidates and development builds count as releases"
    )
    compares_versions: bool | None = Field(
        default=None, description="whether each new version is measured beside the one before it, in the same blocks"
    )
    is_active: bool | None = Field(default=None, description="whether it is active")
    channels: list[Id] | None = Field(default=None, max_length=MAX_NAMED, description="channels to notify, by number")


class WatchIn(Changes):
    """`models`: numbers or names; `label`: every model that has it; one of them at least."""

    name: str = Field(max_length=100, description="its name")
    team: str = Field(
        default="", max_length=100, description="the team it belongs to; may be left out where you write in one alone"
    )
    reference: str = Field(max_length=64, description="the pinned release, like 1.29.0")
    models: list[int | str] = Field(default=[], max_length=MAX_NAMED, description="what it watches, by number")
    label: str = Field(default="", max_length=100, description="or every model with this label")
    distribution: str = Field(default="onnxruntime", max_length=64, description="the package of the runtimes")


class PointOut(Schema):
    """`ratio`: to the reference measured in the same block, with its 95 % interval."""

    series: str = Field(description="the line it belongs to")
    label: str = Field(description="the cell in words")
    node: str = Field(description="the machine that measured it")
    runtime: str = Field(description="the release")
    ratio: float = Field(description="to the reference measured in the same block")
    low: float | None = Field(description="lower end of its 95 % interval")
    high: float | None = Field(description="upper end of its 95 % interval")
    p50_ms: float | None = Field(description="median of inference, in milliseconds")
    reference_ms: float | None = Field(description="the reference's own, in milliseconds")
    at: datetime = Field(description="when it was measured")


class Call(StrictSchema):
    """Left out: the newest release against the pinned reference, with the newest version of each model."""

    candidate: str = Field(default="", max_length=64, description="the release to judge; default: the newest")
    baseline: str = Field(
        default="", max_length=64, description="what it is compared with; default: the pinned reference"
    )
    versions: list[Id] = Field(
        default=[],
        max_length=MAX_NAMED,
        description="versions to measure, by number; default: the newest of each model",
    )


class Line(Schema):
    """`series`: one line; left out: all of them."""

    series: str = Field(default="", max_length=32, description="one line; left out: all of them")


@router.get("/watches", response=list[WatchOut])
def list_watches(request: HttpRequest, paging: Query[Paging]) -> list[WatchOut]:
    """Watches of your teams, by name."""
    return [_shape_watch(watch) for watch in paging.slice(selectors.watches_visible_to(person(request)))]


@router.post("/watches", response={201: WatchOut})
def create_watch(request: HttpRequest, payload: WatchIn) -> Status[WatchOut]:
    """Create a watch: from now on these models are measured again when something new appears."""
    user = person(request)
    team = team_to_write(user, name=payload.team)
    columns = payload.dict(exclude_none=True, exclude={"team", "models", "channels", "is_active"})
    watch = watches.create_watch(
        team=team,
        by=user,
        watched=[_find_model(user, wanted, team=team.name) for wanted in payload.models],
        channels=_find_channels(user, payload.channels or []),
        **columns,
    )
    if payload.is_active is False:
        watches.change_watch(watch=watch, by=user, is_active=False)
    return Status(201, _shape_watch(selectors.watch(user, watch.pk)))


@router.get("/watches/{int:watch_id}", response=WatchOut)
def read_watch(request: HttpRequest, watch_id: int) -> WatchOut:
    """Read a watch."""
    return _shape_watch(selectors.watch(person(request), watch_id))


@router.patch("/watches/{int:watch_id}", response=WatchOut)
def change_watch(request: HttpRequest, watch_id: int, payload: Changes) -> WatchOut:
    """Change a watch; what is left out stays. `is_active` pauses it and lets it go on."""
    user = person(request)
    changes = payload.dict(exclude_unset=True)
    if changes.get("channels") is not None:
        changes["channels"] = _find_channels(user, changes["channels"])
    # null is a value only for the matrix, where it means the default one
    changes = {key: value for key, value in changes.items() if value is not None or key == "matrix"}
    watches.change_watch(watch=selectors.watch(user, watch_id), by=user, **changes)
    return _shape_watch(selectors.watch(user, watch_id))


@router.delete("/watches/{int:watch_id}", response={204: None})
def remove_watch(request: HttpRequest, watch_id: int) -> Status[None]:
    """Remove a watch with its rounds and alerts; its runs stay."""
    user = person(request)
    watches.remove_watch(watch=selectors.watch(user, watch_id), by=user)
    return Status(204, None)


@router.post("/watches/{int:watch_id}/call", response={202: list[RoundOut]})
def call_watch(request: HttpRequest, watch_id: int, payload: Call) -> Status[list[RoundOut]]:
    """Measure now: a round for each watched model, to be followed under `rounds`."""
    user = person(request)
    versions = [registry.version(user, reference) for reference in payload.versions]
    opened = causes.call_watch(
        watch=selectors.watch(user, watch_id),
        by=user,
        candidate=payload.candidate,
        baseline=payload.baseline,
        versions=versions,
    )
    return Status(202, [_shape_round(row) for row in opened])


@router.get("/watches/{int:watch_id}/rounds", response=list[RoundOut])
def list_rounds(request: HttpRequest, watch_id: int, paging: Query[Paging]) -> list[RoundOut]:
    """What a watch measured, newest first."""
    return [_shape_round(row) for row in paging.slice(selectors.rounds_of(selectors.watch(person(request), watch_id)))]


@router.get("/watches/{int:watch_id}/points", response=list[PointOut])
def list_points(request: HttpRequest, watch_id: int, query: Query[Line], paging: Query[LongPaging]) -> list[Point]:
    """The watch's long series, oldest point first: each release as a ratio to the pinned reference."""
    points = selectors.points_of(selectors.watch(person(request), watch_id))
    return list(paging.slice(points.filter(series=query.series.replace("\x00", "")) if query.series else points))


def _shape_watch(watch: Watch) -> WatchOut:
    return fill(
        WatchOut,
        watch,
        url=f"{settings.PUBLIC_URL}/watches/{watch.pk}/",
        team=watch.team.name,
        models=[fill(NamedOut, model) for model in watch.watched.all()],
        channels=[fill(NamedOut, channel) for channel in watch.channels.all()],
        rule=watch.rule.model_dump(mode="json"),
        created_by=username(watch.created_by),
    )


def _shape_round(row: WatchRound) -> RoundOut:
    version, model = row.version.number, row.version.model.name
    ids = {"watch": row.watch_id, "run": row.run_id, "confirming": row.confirming_id}
    return fill(RoundOut, row, version=version, model=model, **ids)


def _find_model(user: Anyone, named: int | str, *, team: str) -> Model:
    """Find a model by its number, or by its name in the team. Raises Missing where the user may see none."""
    if isinstance(named, int):
        return registry.model(user, named)
    rows = registry.models_visible_to(user).filter(name=named.replace("\x00", ""), team__name=team)
    return require_row(rows, f"Team “{team}” has no model “{named[:100]}”.", hint="List yours with `onnxfarm models`.")


def _find_channels(user: Anyone, numbers: list[int]) -> list[Channel]:
    return [channel(user, number) for number in numbers]
