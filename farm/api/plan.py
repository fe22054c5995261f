"""Planning over HTTP: what a matrix would measure."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from farm.alerts.selectors.releases import for_planning
from farm.api.auth import person
from farm.registry.selectors import version
from farm.rules.planning.plans import PlannedBlock, RefusedPoint
from farm.runs.services import must_be_meant, plan_run

router = Router(tags=["runs"])
MAX_SEED = 2**31 - 1


class RunOrder(Schema):
    """`matrix`: plain values as in a matrix file, or the file's text; left out: the default matrix."""

    version: int = Field(ge=1, le=2**62, description="the version to measure, by its number on the farm")
    matrix: dict[str, object] | str | None = Field(
        default=None, description="plain values as in a matrix file, or the file's text; left out: the default matrix"
    )
    seed: int = Field(default=0, ge=0, le=MAX_SEED, description="decides the order of arms and what inputs are made of")


class PlanOrder(RunOrder):
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


@router.post("/plan", response=PlanOut)
def plan(request: HttpRequest, payload: PlanOrder) -> PlanOut:
    """Cells, blocks, minutes, comparisons with the smallest change they will see, and refused points with reasons."""
    user = person(request)
    model = version(user, payload.version)
    found = plan_run(version=model, matrix=payload.matrix, seed=payload.seed, wish=payload.wish, **for_planning())
    must_be_meant(found)
    return PlanOut(**{name: getattr(found, name) for name in PlanOut.model_fields})
