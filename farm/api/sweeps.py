"""Sweeps over HTTP: a run of one version of a model over many releases, and its lines with change points."""

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from farm.alerts.selectors import releases
from farm.api.auth import person
from farm.api.shapes import StrictSchema
from farm.base.refusals import Invalid
from farm.registry.selectors import version
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices.matrix import parse
from farm.rules.matrices.points import explain_unpairable
from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.runtimes.providers import EVERY_DISTRIBUTION
from farm.rules.runtimes.ranges import ALL, RangeProblem, parse_versions
from farm.rules.searches.sweeps import make_lines
from farm.runs import selectors, services

router = Router(tags=["runs"])


class SweepOrder(StrictSchema):
    """`ort`: all, 1.15..1.31 or a list; `reference`: stands in every block, the newest of them unless named.

    `matrix`: the other axes, such as {"batch": [1], "provider": ["cpu"]}; `runtime` is set by the sweep.
    """

    version: int = Field(ge=1, le=2**62, description="the version to measure, by its number on the farm")
    ort: str = Field(default=ALL, max_length=2000, description="all, 1.15..1.31 or a list")
    reference: str = Field(
        default="", max_length=64, description="measured in every block; default: the newest of them"
    )
    distribution: str = Field(default="onnxruntime", max_length=64, description="the package of the runtimes")
    matrix: dict[str, object] = Field(default={}, description="further axes, without `runtime`")


class SweepStarted(Schema):
    """`sweep`: where the lines are read, while it goes on too."""

    run: int = Field(description="the run that measures it")
    url: str = Field(description="its page")
    sweep: str = Field(description="where the lines are read, while it goes on too")
    reference: str = Field(description="the release measured in every block")
    versions: list[str] = Field(description="the releases, oldest first")


class LineOut(Schema):
    """`points`: each release with its `ratio` to the reference and 95 % interval; `turns`: change points."""

    series: str = Field(description="the line's name for programs")
    label: str = Field(description="the cell in words")
    provider: str = Field(description="the execution provider")
    distribution: str = Field(description="the package of the runtimes")
    reference: str = Field(description="the release that all others are compared with")
    sentence: str = Field(description="what the line shows")
    points: list[dict[str, object]] = Field(
        description="each release with its `ratio` to the reference and 95 % interval"
    )
    turns: list[dict[str, object]] = Field(description="change points: from where, to where, by how much")


class SweepOut(Schema):
    run: int = Field(description="the run that measures it")
    state: str = Field(description="planned, running or finished")
    reference: str = Field(description="the release that all others are compared with")
    lines: list[LineOut] = Field(description="one a cell")


class Pinned(Schema):
    """`reference`: left out: the first runtime of the run's matrix."""

    reference: str = Field(default="", max_length=64, description="left out: the first runtime of the run's matrix")


@router.post("/sweeps", response={202: SweepStarted})
def start_sweep(request: HttpRequest, payload: SweepOrder) -> Status[SweepStarted]:
    """Measure a version of a model over many releases, the reference in every block."""
    user = person(request)
    if payload.distribution not in EVERY_DISTRIBUTION:
        raise Invalid(choice_sentence("distribution", payload.distribution, EVERY_DISTRIBUTION), code="unknown_runtime")
    row = version(user, payload.version)
    versions, reference = _parse_releases(payload)
    runtimes = [f"{payload.distribution}=={release}" for release in dict.fromkeys([reference, *versions])]
    run = services.start_run(
        version=row,
        matrix=_make_matrix(payload.matrix, runtimes),
        requested_by=user,
        known=releases.list_known_releases(),
    )
    address = f"/api/v1/runs/{run.pk}/sweep"
    started = SweepStarted(
        run=run.pk, url=selectors.address_of(run), sweep=address, reference=reference, versions=versions
    )
    return Status(202, started)


@router.get("/runs/{int:run_id}/sweep", response=SweepOut)
def read_sweep(request: HttpRequest, run_id: int, query: Query[Pinned]) -> SweepOut:
    """A run over releases as lines: each release as a ratio to the reference, and where it changed."""
    run = selectors.run(person(request), run_id)
    runtimes = parse(run.matrix).axes.get("runtime", ())
    reference = query.reference or (str(getattr(runtimes[0], "version", "")) if runtimes else "")
    lines = make_lines([selectors.document(run)], reference=reference)
    measured = {point.version for line in lines for point in line.points}
    if lines and reference not in measured:
        raise Invalid(
            f"Run {run_id}: {choice_sentence('release', reference, sorted(measured))}", code="unknown_runtime"
        )
    return SweepOut(
        run=run.pk,
        state=run.state,
        reference=reference,
        lines=[LineOut.model_validate(line.as_plain()) for line in lines],
    )


def _parse_releases(payload: SweepOrder) -> tuple[list[str], str]:
    """Return the releases of a sweep in release order, and its reference. Raises Invalid for a bad range or release."""
    published = releases.list_published(payload.distribution)
    try:
        versions = parse_versions(payload.ort, published)
        pinned = parse_versions(payload.reference, published) if payload.reference else versions[-1:]
    except RangeProblem as problem:
        raise Invalid(str(problem), code="unknown_runtime") from problem
    if len(pinned) != 1:
        raise Invalid(f"The reference {payload.reference} names several releases: pin one.", code="unknown_runtime")
    return versions, pinned[0]


def _make_matrix(further_axes: dict[str, object], runtimes: list[str]) -> dict[str, object]:
    """Make the matrix of a sweep: its other axes and the runtimes. Raises Invalid for a bad matrix."""
    if not further_axes:
        return {"matrix": {"runtime": runtimes}}
    try:
        declared = parse(further_axes)
    except MatrixProblem as problem:
        raise Invalid(str(problem), code="matrix") from problem
    if "runtime" in declared.axes:
        raise Invalid("A sweep sets the runtimes by `ort`: leave `runtime` out of its matrix.", code="matrix")
    if (sentence := explain_unpairable(declared)) is not None:
        raise Invalid(sentence, code="matrix")
    matrix = declared.as_plain()
    matrix["matrix"]["runtime"] = runtimes
    return dict(matrix)
