"""Plans a run: what it would measure, for how long, and which points of the matrix are refused.

Small plans are made at once. Large ones are ordered, and a `prepare` worker makes them with `make_plan`, which stores
the plan or why it failed, and ignores an order that is gone or made already. Each person may order one plan at a time.
"""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from farm.accounts.models import User
from farm.accounts.selectors import can_write
from farm.base.refusals import Conflict, Invalid, Missing, NotAllowed, TooMany, Unprocessable
from farm.contract.base import digest_json
from farm.fleet.selectors import list_unavailable_nodes, node_offers
from farm.registry import selectors as registry
from farm.registry.models import PlanOrder, Version
from farm.registry.models.plan_order import OPEN
from farm.registry.services.messages import MAKE_PLAN, send_hint_on_commit
from farm.registry.services.products import make_claimed_row
from farm.registry.states import MakingState, VersionState
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix import Matrix, count_points
from farm.rules.matrices.settings import read_fraction
from farm.rules.planning import planner
from farm.rules.planning.plans import Plan
from farm.rules.presenting.idle_reasons import describe_unavailable_node
from farm.rules.runtimes.releases import NOTHING_MORE, Known
from farm.runs.selectors.compared_versions import collect_model_facts, list_other_versions
from farm.runs.selectors.paces import add_null_history, read_latencies

Declared = str | Mapping[str, object] | Matrix | None
# the largest plan, in points, for a user who may see a team's models but not start runs of them
MAX_VIEWER_POINTS: Final = 200
# larger plans are not made by a process that answers requests
MAX_POINTS_AT_ONCE: Final = 500
# a large plan that is ordered again within this time is not made again
FRESH_FOR: Final = timedelta(minutes=1)
PLAN_LIFE: Final = timedelta(hours=1)
# an order that is still open after this time is deleted when the same person orders another
ABANDONED_AFTER: Final = timedelta(minutes=2)
ASKED_AGAIN_AFTER_S: Final = 2.0


def read_matrix(declared: Declared) -> Matrix:
    """Read a matrix from a file's text or from plain values; a Matrix comes back as it is, None is the default matrix.

    Raises Invalid for a matrix that cannot be read, or that names a package which this farm does not allow.
    """
    if isinstance(declared, Matrix):
        return declared
    if declared is None:
        return matrices.default_matrix()
    try:
        return matrices.parse(declared, allowed=settings.ALLOWED_PACKAGES)
    except MatrixProblem as problem:
        raise Invalid(str(problem), code="matrix", hint="docs/matrix.md shows a file with every key.") from problem


def plan_run(
    *, version: Version, matrix: Declared, seed: int = 0, known: Known = NOTHING_MORE, with_null_pair: bool = True
) -> Plan:
    """Plan the matrix for this version on the nodes that the farm has now, without writing anything.

    A plan that cannot be run is returned with its `problem`; `check_plan` raises Unprocessable for it. `known` holds
    the releases that package indexes offer. With `with_null_pair`, blocks get an A/A pair if their node is due to
    measure one. Raises Invalid for a matrix that cannot be read or names versions that do not exist or have the same
    files, and Conflict for a version that is not ready.
    """
    declared = read_matrix(matrix)
    versions = [*list_other_versions(version, declared), version]
    for compared in versions:
        check_is_ready(compared)

    # the nodes that may measure all of the versions
    uploaders = {compared.uploaded_by_id for compared in versions}
    uploader = version.uploaded_by if len(uploaders) == 1 else None
    fleet = add_null_history(node_offers(team=version.model.team, uploader=uploader))

    # facts of the models, with latencies of earlier runs
    facts = []
    for model_facts, compared in zip(collect_model_facts(versions), versions, strict=True):
        measured = read_latencies(compared)
        facts.append(model_facts if measured is None else model_facts.model_copy(update=measured._asdict()))

    unavailable = () if fleet else list_unavailable_nodes(version.model.team, uploader=uploader)
    idle_reasons = [describe_unavailable_node(node.name, reason) for node, reason in unavailable]
    return planner.plan(
        declared,
        facts,
        fleet,
        seed=seed,
        known=known,
        with_null_pair=with_null_pair,
        idle_reasons=idle_reasons,
    )


def check_plan(plan: Plan) -> None:
    if plan.problem:
        raise Unprocessable(plan.problem, code="plan")


def check_is_ready(version: Version) -> None:
    """Check that the version was inspected, accepted and not deleted. Raises Conflict if that is not so."""
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


def plan_or_order(
    *,
    version: Version,
    matrix: Declared,
    asked_by: User,
    seed: int = 0,
    known: Known = NOTHING_MORE,
    wish: str | float | None = None,
    replaces_waiting: bool = False,
) -> Plan | PlanOrder:
    """Return the plan, or for a large matrix the order of one; `find_plan_order` returns that order with its plan.

    `wish` is the smallest change to detect, such as 0.03 or `3%`; None leaves the matrix's own. With
    `replaces_waiting`, an earlier order of this person that no worker has begun is deleted. Asking for the same large
    plan again returns the same order, or the plan itself for a minute after it was made. Raises NotAllowed for more
    than MAX_VIEWER_POINTS points without the right to run, TooMany while another plan of this person is being made,
    Invalid for a wrong wish, and what `plan_run` raises.
    """
    declared = read_matrix(matrix)
    if wish is not None:
        try:
            declared = replace(declared, wish=read_fraction(wish))
        except MatrixProblem as problem:
            raise Invalid(str(problem), code="wish") from problem
    points = count_points(declared) * (1 + len(declared.models))
    _check_may_plan(asked_by, version, points)
    check_is_ready(version)
    request: dict[str, object] = {"matrix": declared.as_plain(), "seed": seed, "known": known.model_dump(mode="json")}

    # a large plan is ordered, unless it was made a moment ago
    is_large = points > MAX_POINTS_AT_ONCE
    if is_large and (earlier := _find_same_plan(asked_by, version, request)) is not None:
        return Plan.model_validate_json(earlier.plan_json) if earlier.state == MakingState.READY else earlier
    order = _create_order(
        asked_by, version, request, points=points, is_large=is_large, replaces_waiting=replaces_waiting
    )
    if is_large:
        return order

    # a small plan has an order only while it is made, so that each person makes one plan at a time
    try:
        return plan_run(version=version, matrix=declared, seed=seed, known=known)
    finally:
        order.delete()


def make_plan(order_id: int) -> None:
    make_claimed_row(PlanOrder.objects.select_related("version").filter(pk=order_id).first(), _make_ordered_plan)


def find_plan_order(user: User, order_id: int) -> PlanOrder:
    """Return this person's order of a plan, ready or still open.

    Raises Missing if there is none of theirs or they may not see its version any more, and Unprocessable with the
    reason if it could not be planned.
    """
    order = PlanOrder.objects.filter(pk=order_id, asked_by=user).first()
    if order is None:
        raise Missing(f"There is no plan {order_id} that you asked for in the last hour: ask for it again.")
    registry.version(user, order.version_id)
    if order.state == MakingState.FAILED:
        raise Unprocessable(order.reason_text, code="plan")
    return order


def _check_may_plan(user: User, version: Version, points: int) -> None:
    team = version.model.team
    if points > MAX_VIEWER_POINTS and not can_write(user, team=team):
        raise NotAllowed(
            f"You can view the models of team “{team.name}” but not start runs of them, so that at most "
            f"{MAX_VIEWER_POINTS} points are planned for you, and this matrix has {points:,}.",
            hint="Drop values, or ask an admin of the team.",
        )


def _find_same_plan(user: User, version: Version, request: Mapping[str, object]) -> PlanOrder | None:
    """Find this person's order of the same plan, if it was made within a minute or is open."""
    same = PlanOrder.objects.filter(asked_by=user, version=version, order_sha256=digest_json(request))
    fresh = same.filter(state=MakingState.READY, finished_at__gte=timezone.now() - FRESH_FOR)
    return fresh.last() or same.filter(state__in=OPEN).first()


def _create_order(
    user: User, version: Version, request: dict[str, object], *, points: int, is_large: bool, replaces_waiting: bool
) -> PlanOrder:
    """Write the order of a plan, after deleting old ones. Raises TooMany if the person has an open one."""
    now = timezone.now()
    over = Q(finished_at__lt=now - PLAN_LIFE) | Q(asked_by=user, state__in=OPEN, asked_at__lt=now - ABANDONED_AFTER)
    if replaces_waiting:
        over |= Q(asked_by=user, state=MakingState.PENDING)
    PlanOrder.objects.filter(over).delete()
    try:
        with transaction.atomic():
            order = PlanOrder.objects.create(
                asked_by=user,
                version=version,
                order_json=request,
                order_sha256=digest_json(request),
                points=points,
                state=MakingState.PENDING if is_large else MakingState.MAKING,
            )
            if is_large:
                send_hint_on_commit(MAKE_PLAN, order.pk)
    except IntegrityError:
        raise TooMany(
            "Another plan that you asked for is being made, and each person has one at a time: ask again in a moment.",
            retry_s=ASKED_AGAIN_AFTER_S,
            code="one_plan_at_a_time",
        ) from None
    return order


def _make_ordered_plan(order: PlanOrder) -> None:
    request = order.order_json
    # orders that the previous release wrote have no `known`
    releases = Known.model_validate(request.get("known", {}))
    plan = plan_run(version=order.version, matrix=request["matrix"], seed=request["seed"], known=releases)
    check_plan(plan)
    order.body = zlib.compress(plan.model_dump_json().encode(), 1)
