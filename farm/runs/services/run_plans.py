"""Planning a run: what it would measure, for how long, and what it cannot."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from django.conf import settings

from farm.base.refusals import Conflict, Invalid, Unprocessable
from farm.contract.cells import Runtime
from farm.fleet.selectors import offers
from farm.registry.models import Version
from farm.registry.selectors import model_facts
from farm.registry.states import VersionState
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.settings import read_wish
from farm.rules.planning import planner
from farm.rules.planning.plans import Plan
from farm.rules.runtimes.releases import NONE_YANKED
from farm.runs.selectors.null_pairs import with_null_history
from farm.runs.selectors.paces import latencies

Declared = str | Mapping[str, object] | Matrix | None


def read_matrix(declared: Declared) -> Matrix:
    """The matrix of a file's text or of plain values; the default one for None. Raises Invalid with one sentence."""
    if isinstance(declared, Matrix):
        return declared
    if declared is None:
        return matrices.default()
    try:
        return matrices.parse(declared, allowed=settings.ALLOWED_PACKAGES)
    except MatrixProblem as problem:
        raise Invalid(str(problem), code="matrix", hint="docs/matrix.md shows a file with every key.") from problem


def plan_run(
    *,
    version: Version,
    matrix: Declared,
    seed: int = 0,
    releases: Iterable[Runtime] = (),
    yanked: Mapping[Runtime, str] = NONE_YANKED,
) -> Plan:
    """What the matrix comes to for this version on today's fleet; nothing is written.

    `releases`: runtimes known to exist beyond the farm's table and its nodes, as `distribution==version`; `yanked`:
    those that the package index took back, with the reason.

    Raises Invalid for a matrix that cannot be read and Conflict for a version that is not ready.
    """
    must_be_ready(version)
    fleet = with_null_history(offers(team=version.model.team, uploader=version.uploaded_by))
    known = latencies(version)
    facts = model_facts(version).model_copy(update=known._asdict() if known is not None else {})
    declared = read_matrix(matrix)
    return planner.plan(declared, facts, fleet, seed=seed, releases=releases, yanked=yanked, with_null_pair=True)


def with_wish(matrix: Matrix, wish: str | float | None) -> Matrix:
    """The matrix with a change to be seen in place of its own, where there is one. Raises Invalid for none."""
    if wish is None:
        return matrix
    try:
        return replace(matrix, wish=read_wish(wish))
    except MatrixProblem as problem:
        raise Invalid(str(problem), code="wish") from problem


def must_be_meant(plan: Plan) -> None:
    """Raises Unprocessable for a release that does not exist, or a matrix that no node takes at all."""
    if plan.problem:
        raise Unprocessable(plan.problem, code="plan")


def must_be_ready(version: Version) -> None:
    """Raises Conflict unless the version was inspected and accepted, and not deleted."""
    if version.removed_at is not None:
        raise Conflict(f"{version} was deleted; restore it to measure it again.", code="removed")
    if version.state == VersionState.REJECTED:
        raise Conflict(f"{version} was rejected: {version.problem}", code="rejected")
    if version.state != VersionState.READY:
        raise Conflict(
            f"{version} is {version.state}: it is planned once it is inspected.",
            code="not_inspected",
            hint="Ask again in a few seconds.",
        )
