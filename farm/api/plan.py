"""Planning over HTTP: what a matrix would measure."""

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema, Status
from pydantic import Field

from farm.alerts.services.index import find_releases_for_matrix
from farm.api.auth import GATED, check_gate_token, person
from farm.api.shapes import fill
from farm.contract.api.runs import OpenPlanOut
from farm.registry.models import PlanOrder
from farm.registry.selectors import version
from farm.rules.planning.plans import PlannedBlock, RefusedPoint
from farm.runs.services import check_plan, find_plan_order, plan_or_order

router = Router(tags=["runs"])
MAX_SEED = 2**31 - 1


class RunOrder(Schema):
    """`matrix`: plain values as in a matrix file, or the file's text; left out: the default matrix."""

    version: int = Field(ge=1, le=2**62, description="the version to measure, by its number on the farm")
    matrix: dict[str, object] | str | None = Field(
        default=None, description="plain values as in a matrix file, or the file's text; left out: the default matrix"
    )
    seed: int = Field(default=0, ge=0, le=MAX_SEED, description="decides the order of arms and what inputs are made of")


class PlanOrderIn(RunOrder):
    """`wish`: a change to be seen, `3%` or 0.03, in place of the matrix's own `wish`."""

    wish: Annotated[float | str, Field(union_mode="left_to_right")] | None = Field(
        default=None, description="a change to be seen, `3%` or 0.03, in place of the matrix's own `wish`"
    )


class PlanOut(Schema):
    """`cells`: different points that would be measured; `minutes`: all blocks one after another, on one node.

    `problem`: always null; a matrix that cannot be meant is refused with 422, as its run would be.
    """

    cells: int = Field(description="how many different points would be measured")
    blocks: tuple[PlannedBlock, ...] = Field(description="what would be measured together, block by block")
    refused: tuple[RefusedPoint, ...] = Field(description="points that cannot be measured, each with its reason")
    excluded: int = Field(description="how many points the matrix itself leaves out")
    minutes: float = Field(description="all blocks one after another, on one node")
    budget: str = Field(description="glance, quick, standard or precise")
    fail_fast: bool = Field(description="whether the first failure ends the rest")
    max_parallel: int | None = Field(description="how many nodes may work on it at once; null: all")
    problem: str | None = Field(description="why nothing would be measured; null: something would")


@router.post("/plan", response={200: PlanOut, 202: OpenPlanOut}, auth=GATED)
def plan(request: HttpRequest, payload: PlanOrderIn) -> HttpResponse | Status[OpenPlanOut]:
    """Plan a matrix: cells, blocks, minutes, the smallest change each comparison will see, and refused points.

    A plan of more than 500 points is made by a worker: the answer is then 202 with the address to ask. A person has one
    plan at a time (429), and somebody who may not start runs at most 200 points (403). A token that may only gate plans
    versions of its own team alone.
    """
    user = person(request)
    row = version(user, payload.version)
    check_gate_token(request, row.model.team)
    result = plan_or_order(
        version=row,
        matrix=payload.matrix,
        asked_by=user,
        seed=payload.seed,
        wish=payload.wish,
        known=find_releases_for_matrix(payload.matrix),
    )
    if isinstance(result, PlanOrder):
        return _answer_open(result)
    check_plan(result)
    return _answer_json(result.model_dump_json())


@router.get("/plans/{int:plan_id}", response={200: PlanOut, 202: OpenPlanOut}, auth=GATED)
def large_plan(request: HttpRequest, plan_id: int) -> HttpResponse | Status[OpenPlanOut]:
    """A plan of many points that was asked for in the last hour: 200 once it is made, 202 before.

    A token that may only gate reads plans for versions of its own team alone.
    """
    order = find_plan_order(person(request), plan_id)
    check_gate_token(request, order.version.model.team)
    return _answer_open(order) if order.is_open else _answer_json(order.plan_json)


def _answer_open(order: PlanOrder) -> Status[OpenPlanOut]:
    return Status(202, fill(OpenPlanOut, order, url=f"/api/v1/plans/{order.pk}"))


def _answer_json(plan: str | bytes) -> HttpResponse:
    # the plan is JSON already: to parse and write thousands of cells again would take longer than to plan them
    return HttpResponse(plan, content_type="application/json; charset=utf-8")
