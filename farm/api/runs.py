"""Runs over HTTP: start, follow, read, stop, continue."""

import gzip
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import cache_control
from django.views.decorators.http import condition
from ninja import Query, Router, Schema, Status
from pydantic import Field

from farm.alerts.services.index import find_releases_for_matrix
from farm.api.auth import GATED, check_gate_token, find_gate_token, person
from farm.api.description import describe_file
from farm.api.plan import RunOrder
from farm.api.shapes import Paging, fill
from farm.base.refusals import Invalid
from farm.contract.api.runs import ProgressOut, RunOut
from farm.registry.selectors import find_stored_file, version
from farm.rules.presenting.spreadsheets import list_rows, make_csv
from farm.runs import selectors, services
from farm.runs.models import Event, Run
from farm.runs.selectors.files import MEDIA_TYPE, make_parquet
from farm.runs.selectors.forecasts import Forecast

if TYPE_CHECKING:
    from django.db.models import QuerySet

router = Router(tags=["runs"])
EVENTS = 1000
JSON, CSV = "application/json", "text/csv; charset=utf-8"


class EventOut(Schema):
    id: int = Field(description="the event's number; later ones are larger")
    at: datetime = Field(description="when it happened")
    kind: str = Field(description="what happened, for programs")
    block: int | None = Field(description="the number of the block it happened to; null: to the run")
    text: str = Field(description="what happened, for people")
    facts: dict[str, object] = Field(description="values that belong to it")

    @staticmethod
    def resolve_block(event: Event) -> int | None:
        return event.block.number if event.block else None


class TraceOut(Schema):
    """A raw trace of a cell."""

    id: int = Field(description="the trace's number")
    round: int = Field(description="0: the first trace; others were taken for an explanation")
    bytes: int = Field(description="its size, compressed")
    url: str = Field(description="where it is fetched")


class MoreOrder(Schema):
    """`blocks`: their numbers (3 or "b3"); left out: every done block with an undecided comparison."""

    rounds: int = Field(description="how many more each of the blocks gets")
    blocks: list[int | str] | None = Field(
        default=None, description='their numbers (3 or "b3"); left out: every done block with an undecided comparison'
    )


class After(Schema):
    """`after`: only events with a larger number."""

    after: int = Field(default=0, ge=0, le=2**62, description="only events with a larger number")


@router.post("/runs", response={201: RunOut}, auth=GATED)
def start(request: HttpRequest, payload: RunOrder) -> Status[RunOut]:
    """Start a run of a matrix. A token that may only gate starts runs of versions of its own team alone."""
    user = person(request)
    row = version(user, payload.version)
    check_gate_token(request, row.model.team)
    run = services.start_run(
        version=row,
        matrix=payload.matrix,
        requested_by=user,
        seed=payload.seed,
        known=find_releases_for_matrix(payload.matrix),
        gate=find_gate_token(request),
    )
    return Status(201, _shape_run(selectors.run(user, run.pk)))


@router.get("/runs", response=list[RunOut])
def runs(request: HttpRequest, paging: Query[Paging]) -> list[RunOut]:
    """List the runs of your teams, newest first."""
    forecast = Forecast()
    return [_shape_run(run, forecast) for run in paging.slice(selectors.runs_visible_to(person(request)))]


@router.get("/runs/{int:run_id}", response=RunOut, auth=GATED)
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    """Read a run and its progress. Ask again with If-None-Match: 304 while nothing has changed.

    A token that may only gate reads the runs that it started, and no others.
    """
    row = _get_readable_run(request, run_id)
    return _answer_if_changed(request, row, lambda: _shape_run(row).model_dump_json())


@router.get(
    "/runs/{int:run_id}/results",
    auth=GATED,
    openapi_extra=describe_file(
        "application/json",
        "a document of `onnxfarm.bench/1`, see docs/bench.md",
        type="object",
        format="onnxfarm.bench/1",
    ),
)
def results(request: HttpRequest, run_id: int) -> HttpResponse:
    """The bench document, `onnxfarm.bench/1`; partial while the run goes on.

    A token that may only gate reads the results of runs that it started, and no others.
    """
    row = _get_readable_run(request, run_id)
    return _answer_if_changed(request, row, lambda: selectors.document_json(row))


@router.get(
    "/runs/{int:run_id}/results.csv",
    openapi_extra=describe_file("text/csv", "one line a cell, with its names in the first"),
)
def results_csv(request: HttpRequest, run_id: int) -> HttpResponse:
    """The cells as a table."""
    row = selectors.run(person(request), run_id)
    return _answer_if_changed(request, row, lambda: make_csv(selectors.document(row, with_operators=False)), CSV)


@router.get(
    "/runs/{int:run_id}/results.parquet",
    openapi_extra=describe_file(MEDIA_TYPE, "one row a cell, with the columns of results.csv"),
)
def results_parquet(request: HttpRequest, run_id: int) -> HttpResponse:
    """The cells as Parquet; 422 where the farm's server has no pyarrow."""
    row = selectors.run(person(request), run_id)
    response = _answer_if_changed(
        request, row, lambda: make_parquet(list_rows(selectors.document(row, with_operators=False))), MEDIA_TYPE
    )
    response["Content-Disposition"] = f'attachment; filename="run-{run_id}.parquet"'
    return response


@router.get(
    "/runs/{int:run_id}/cells/{str:cell}/timings.csv",
    openapi_extra=describe_file("text/csv", "one line an inference"),
)
def timings(request: HttpRequest, run_id: int, cell: str) -> StreamingHttpResponse:
    """Every timing behind a cell, in nanoseconds: round, number of the inference, time."""
    lines = selectors.timing_lines(selectors.run(person(request), run_id), cell)
    named = {"Content-Disposition": f'attachment; filename="run-{run_id}-{quote(cell)}.timings.csv"'}
    return StreamingHttpResponse(lines, content_type=CSV, headers=named)


@router.post("/runs/{int:run_id}/cancel", response=RunOut)
def cancel(request: HttpRequest, run_id: int) -> RunOut:
    """Stop a run; what was measured stays. Stopping it again changes nothing."""
    user = person(request)
    services.cancel_run(run=selectors.run(user, run_id), by=user)
    return _shape_run(selectors.run(user, run_id))


@router.post("/runs/{int:run_id}/more", response=RunOut)
def more(request: HttpRequest, run_id: int, payload: MoreOrder) -> RunOut:
    """Measure more rounds of blocks that are done."""
    user = person(request)
    numbers = None if payload.blocks is None else [_parse_block_number(block) for block in payload.blocks]
    services.measure_more_rounds(run=selectors.run(user, run_id), by=user, rounds=payload.rounds, blocks=numbers)
    return _shape_run(selectors.run(user, run_id))


@router.get("/runs/{int:run_id}/events", response=list[EventOut])
def events(request: HttpRequest, run_id: int, query: Query[After]) -> "QuerySet[Event]":
    """The run's log, oldest first, a thousand lines at a time."""
    return selectors.events(selectors.run(person(request), run_id), after=query.after)[:EVENTS]


@router.get("/runs/{int:run_id}/cells/{str:cell}/traces", response=list[TraceOut])
def traces(request: HttpRequest, run_id: int, cell: str) -> list[TraceOut]:
    """The raw traces of a cell, by round."""
    rows = selectors.traces_of(selectors.run(person(request), run_id), cell)
    return [
        TraceOut(id=row.pk, round=row.trace_round, bytes=row.bytes, url=f"/api/v1/traces/{row.pk}.json") for row in rows
    ]


@router.get(
    "/traces/{int:trace_id}.json",
    openapi_extra=describe_file(
        "application/json", "ONNX Runtime's profile in Chrome's trace format", type="array", format="trace"
    ),
)
def trace(request: HttpRequest, trace_id: int) -> FileResponse:
    """A raw Chrome trace, as Perfetto opens it; compressed where `Accept-Encoding` names gzip."""
    row = selectors.trace(person(request), trace_id)
    name = f"run-{row.attempt.block.run_id}-{row.attempt.block.number}-{row.arm}-{row.trace_round}.json"
    path, takes_gzip = find_stored_file(row.sha256), "gzip" in request.headers.get("Accept-Encoding", "")
    # the file is unpacked piece by piece; farm.contract.node limits the unpacked size
    body = path.open("rb") if takes_gzip else gzip.open(path)  # noqa: SIM115 (the response closes it)
    response = FileResponse(body, content_type="application/json", filename=name)
    if takes_gzip:
        response.headers["Content-Encoding"] = "gzip"
    else:
        # FileResponse took the length of the packed file
        response.headers.pop("Content-Length", None)
    patch_vary_headers(response, ["Accept-Encoding"])
    return response


def _get_readable_run(request: HttpRequest, run_id: int) -> Run:
    """Return a run that the request may read.

    Raises Missing where the person may not see it, or where the request's token may only gate and did not start it.
    """
    row = selectors.run(person(request), run_id)
    gate = find_gate_token(request)
    check_gate_token(request, row.team, is_its_own=gate is not None and row.gate_id == gate.pk)
    return row


def _shape_run(run: Run, forecast: Forecast | None = None) -> RunOut:
    progress = selectors.progress(run, forecast=forecast)
    return fill(
        RunOut,
        progress,
        id=run.pk,
        url=selectors.address_of(run),
        version_id=run.version_id,
        team=run.team.name,
        reason=run.reason,
        budget=run.budget,
        seed=run.seed,
        minutes=run.minutes,
        cell_count=run.cell_count,
        progress=fill(
            ProgressOut,
            progress,
            cells_done=progress.counts.ended,
            cells_planned=progress.counts.planned,
            block=progress.words,
            waiting=progress.outlook.idle_reason,
            is_slowed=progress.outlook.is_slowed,
            begins_in_minutes=_to_minutes(progress.outlook.begins_s),
            begins_in_minutes_at_least=_to_minutes(progress.outlook.earliest_s),
            ends_in_minutes=_to_minutes(progress.outlook.ends_s),
        ),
    )


def _to_minutes(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 60.0


def _parse_block_number(block: int | str) -> int:
    digits = str(block).removeprefix("b")
    if not (digits.isdecimal() and len(digits) < 10):
        raise Invalid(f"“{str(block)[:40]}” is no block: give its number, such as 3 or b3.", code="unknown_block")
    return int(digits)


def _revision(request: HttpRequest, run: Run, *_: object) -> str:
    return selectors.make_etag(run)


@cache_control(private=True, no_cache=True)
@condition(etag_func=_revision)
def _answer_if_changed(
    request: HttpRequest, run: Run, body: Callable[[], str | bytes], kind: str = JSON
) -> HttpResponse:
    # Django reads the revision before the body, so that the tag is never newer than the body. Nobody is checked here:
    # the caller has to know that the reader may see the run.
    return HttpResponse(body(), content_type=kind)
