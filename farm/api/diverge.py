"""Searches for the first tensor in which a measured cell differs from the reference or from another cell."""

from datetime import datetime

from django.http import FileResponse, HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from farm.api.auth import person
from farm.api.description import describe_file
from farm.base.refusals import Missing, NotAllowed
from farm.registry.selectors import find_stored_file
from farm.runs import selectors, services
from farm.runs.models import Divergence
from farm.runs.selectors import divergences

router = Router(tags=["runs"])


class Question(Schema):
    """`against`: another cell of the same block; null: the CPU without optimisations."""

    against: str | None = Field(
        default=None, max_length=40, description="another cell of the same block; null: the CPU without optimisations"
    )


class DivergenceOut(Schema):
    """`state`: asked, found or failed; `answer`: `onnxfarm.divergence/1`, null until there is one.

    `part`: address of a zip with the smallest part of the model that shows the difference; null where there is none.
    """

    id: int = Field(description="the question's number")
    cell: str = Field(validation_alias="arm.name", description="the cell that was asked about")
    against: str | None = Field(description="what it is held against; null: the CPU without optimisations")
    state: str = Field(description="asked, found or failed")
    is_open: bool = Field(description="whether an answer is still to come")
    sentence: str = Field(validation_alias="words", description="the answer, or the progress")
    answer: dict[str, object] | None = Field(description="a document of `onnxfarm.divergence/1`; null: none yet")
    part: str | None = Field(description="where the part of the model that shows it is fetched; null: there is none")
    asked_at: datetime = Field(description="when it was asked")
    ended_at: datetime | None = Field(description="when it was answered; null: not yet")

    @staticmethod
    def resolve_against(row: Divergence) -> str | None:
        return row.against.name if row.against else None

    @staticmethod
    def resolve_answer(row: Divergence) -> dict[str, object] | None:
        return row.document.model_dump(mode="json", by_alias=True) if row.document else None

    @staticmethod
    def resolve_part(row: Divergence) -> str | None:
        return f"/api/v1/divergences/{row.pk}/part.zip" if row.part else None


@router.post("/runs/{int:run_id}/cells/{str:cell}/divergences", response={202: DivergenceOut})
def ask(request: HttpRequest, run_id: int, cell: str, payload: Question) -> Status[Divergence]:
    """Ask the node that measured a cell for the first tensor that differs, and the node of the graph that makes it."""
    user = person(request)
    row = services.ask_divergence(run=selectors.run(user, run_id), cell=cell, by=user, against=payload.against)
    return Status(202, divergences.divergence(user, row.pk))


@router.get("/runs/{int:run_id}/cells/{str:cell}/divergences", response=list[DivergenceOut])
def asked(request: HttpRequest, run_id: int, cell: str) -> list[Divergence]:
    """Questions about a cell, with their answers."""
    return list(divergences.divergences_of(selectors.run(person(request), run_id), cell))


@router.get("/divergences/{int:divergence_id}", response=DivergenceOut)
def divergence(request: HttpRequest, divergence_id: int) -> Divergence:
    """Read a question and its answer."""
    return divergences.divergence(person(request), divergence_id)


@router.get(
    "/divergences/{int:divergence_id}/part.zip",
    openapi_extra=describe_file("application/zip", "the part, its inputs, and the result"),
)
def part(request: HttpRequest, divergence_id: int) -> FileResponse:
    """The smallest part of the model that shows the difference, with its inputs and the reference's outputs."""
    row = divergences.divergence(person(request), divergence_id)
    if not selectors.can_write_run(person(request), row.arm.block.run):
        raise NotAllowed(f"Only members can download the part of the model that belongs to divergence {divergence_id}.")
    if row.part is None:
        raise Missing(f"Divergence {divergence_id} has no part to download.")
    path = find_stored_file(row.part.sha256)
    name = f"run-{row.arm.block.run_id}-{row.arm.name}-part.zip"
    return FileResponse(path.open("rb"), content_type="application/zip", filename=name, as_attachment=True)
