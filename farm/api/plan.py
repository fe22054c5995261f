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

    version: int = Field(ge=1, le=2**62)
    matrix: dict[str, object] | str | None = None
    seed: int = Field(default=0, ge=0, le=MAX_SEED)


class PlanOrder(RunOrder):
    """`wish`: a change to be seen, `3%` or 0.03, in place of the matrix's own `wish`."""

    wish: Annotated[float | str, Field(union_mode="left_to_right")] | None = None


class PlanOut(Schema):
    """`cells`: different points that would be measured; `minutes`: all blocks one after another, on one node.

    `problem`: always null; a matrix that cannot be meant is refused with 422, as its run would be.
    """

    cells: int
    blocks: tuple[PlannedBlock, ...]
    refused: tuple[RefusedPoint, ...]
    excluded: int
    minutes: float
    budget: str
    fail_fast: bool
    max_parallel: int | None
    problem: str | None


@router.post("/plan", response=PlanOut)
def plan(request: HttpRequest, payload: PlanOrder) -> PlanOut:
    """Cells, blocks, minutes, comparisons with the smallest change they will see, and refused points with reasons."""
    user = person(request)
    model = version(user, payload.version)
    found = plan_run(version=model, matrix=payload.matrix, seed=payload.seed, wish=payload.wish, **for_planning())
    must_be_meant(found)
    return PlanOut(**{name: getattr(found, name) for name in PlanOut.model_fields})
