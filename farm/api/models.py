"""The registry over HTTP: models, their versions and their files."""

from typing import BinaryIO, TypeVar

from django.http import FileResponse, HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from farm.accounts.selectors import can_write
from farm.api.auth import GATED, check_gate_token, person
from farm.api.description import describe_file
from farm.api.shapes import Paging, fill, username
from farm.base.refusals import NotAllowed
from farm.contract.api.registry import (
    CalibrationOut,
    EvaluationOut,
    FileOut,
    ModelOut,
    ModelPageOut,
    RemovedOut,
    VersionOut,
)
from farm.registry import selectors, services
from farm.registry.models import EvaluationData, Model, Version
from farm.rules.quality.evaluation import format_recipe

router = Router(tags=["registry"])
PAGE = 100
AnyModel = TypeVar("AnyModel", bound=ModelOut)


class Described(Schema):
    """Changes of a model; what is null or left out stays."""

    name: str | None = Field(
        default=None, description="null or left out: unchanged; what was measured keeps the name of then"
    )
    description: str | None = Field(default=None, description="null or left out: unchanged")
    labels: list[str] | None = Field(default=None, description="null or left out: unchanged")


class VersionNote(Schema):
    """Changes of a version; what is null or left out stays."""

    note: str | None = Field(default=None, description="replaces what was said at its upload")
    is_kept: bool | None = Field(default=None, description="whether one of a branch stays when its time is over")


class Search(Schema):
    search: str = Field(default="", max_length=100, description="part of a name")
    removed: bool = Field(
        default=False, description="those that were deleted and can be restored, in place of the others"
    )


@router.get("/models", response=list[ModelOut])
def models(request: HttpRequest, query: Query[Search], paging: Query[Paging]) -> list[ModelOut]:
    """Models of your teams, by name."""
    user = person(request)
    rows = selectors.removed_models(user) if query.removed else selectors.models_visible_to(user)
    matching = rows.filter(name__icontains=query.search.replace("\x00", "")) if query.search else rows
    return [_shape_model(ModelOut, model) for model in paging.slice(matching)]


@router.get("/models/{int:model_id}", response=ModelPageOut)
def model(request: HttpRequest, model_id: int) -> ModelPageOut:
    """Read a model with its newest versions."""
    user = person(request)
    row = selectors.model(user, model_id)
    versions = selectors.newest_versions(row, user=user, limit=PAGE)
    removed = selectors.removed_versions(row, user=user)[:PAGE]
    return _shape_model(
        ModelPageOut,
        row,
        versions=[shape_version(version) for version in versions],
        removed_versions=[shape_version(version) for version in removed],
    )


@router.patch("/models/{int:model_id}", response=ModelOut)
def describe(request: HttpRequest, model_id: int, payload: Described) -> ModelOut:
    """Change a model's name, description or labels; what is left out stays."""
    user = person(request)
    model = selectors.model(user, model_id)
    services.edit_model(model=model, by=user, name=payload.name, description=payload.description, labels=payload.labels)
    return _shape_model(ModelOut, model)


@router.delete("/models/{int:model_id}", response=RemovedOut)
def remove_model(request: HttpRequest, model_id: int) -> RemovedOut:
    """Delete a model with its versions. Runs and their results stay, and with them the versions that they measured."""
    user = person(request)
    return fill(RemovedOut, services.remove_model(model=selectors.model(user, model_id), by=user))


@router.post("/models/{int:model_id}/restore", response=ModelOut)
def restore_model(request: HttpRequest, model_id: int) -> ModelOut:
    """Restore a deleted model, with the versions that runs have measured."""
    user = person(request)
    services.restore_model(model=selectors.model(user, model_id), by=user)
    return _shape_model(ModelOut, selectors.model(user, model_id))


@router.get("/versions/{int:version_id}", response=VersionOut, auth=GATED)
def version(request: HttpRequest, version_id: int) -> VersionOut:
    """Read a version and what inspection found. A token that may only gate reads versions of its own team alone."""
    row = selectors.version(person(request), version_id)
    # a gate may read versions of the main line too, because it compares with them
    check_gate_token(request, row.model.team)
    return shape_version(row)


@router.get(
    "/versions/{int:version_id}/files/{name}",
    openapi_extra=describe_file("application/octet-stream", "the file as it was uploaded"),
)
def version_file(request: HttpRequest, version_id: int, name: str) -> FileResponse:
    """One file of a version, byte by byte: its .onnx, its external data, or the program that came with it."""
    row = selectors.version(person(request), version_id)
    if not can_write(person(request), team=row.model.team):
        raise NotAllowed(f"Only members can download the files of {row}.")
    return _download(selectors.open_version_file(row, name), name)


@router.get(
    "/variants/{int:variant_id}/files/{name}",
    openapi_extra=describe_file("application/octet-stream", "the file as the farm made it"),
)
def variant_file(request: HttpRequest, variant_id: int, name: str) -> FileResponse:
    """One file of a variant that the farm made of a model: its .onnx, or its external data."""
    row = selectors.variant(person(request), variant_id)
    if not can_write(person(request), team=row.artifact.team):
        raise NotAllowed(f"Only members can download the files of variant {variant_id}: it is a model.")
    return _download(selectors.open_variant_file(row, name), name)


def _download(stored: BinaryIO, name: str) -> FileResponse:
    return FileResponse(stored, content_type="application/octet-stream", filename=name, as_attachment=True)


@router.patch("/versions/{int:version_id}", response=VersionOut)
def describe_version(request: HttpRequest, version_id: int, payload: VersionNote) -> VersionOut:
    """Change a version's note, or keep a version that a branch uploaded."""
    user = person(request)
    version = selectors.version(user, version_id)
    if payload.note is not None:
        services.edit_version_note(version=version, by=user, note=payload.note)
    if payload.is_kept is not None:
        services.keep_version(version=version, by=user, is_kept=payload.is_kept)
    return shape_version(version)


@router.delete("/versions/{int:version_id}", response=RemovedOut)
def remove_version(request: HttpRequest, version_id: int) -> RemovedOut:
    """Delete a version and the files that nothing else uses. One that runs have measured is hidden: the runs stay."""
    user = person(request)
    return fill(RemovedOut, services.remove_version(version=selectors.version(user, version_id), by=user))


@router.post("/versions/{int:version_id}/restore", response=VersionOut)
def restore_version(request: HttpRequest, version_id: int) -> VersionOut:
    """Restore a deleted version that runs have measured."""
    user = person(request)
    return shape_version(services.restore_version(version=selectors.version(user, version_id), by=user))


def _shape_model(shape: type[AnyModel], model: Model, **more: object) -> AnyModel:
    return fill(shape, model, team=model.team.name, version_count=getattr(model, "version_count", 0), **more)


def shape_version(version: Version) -> VersionOut:
    """Make the API's answer for a version. What it does not have is None: a problem, labelled data, calibration."""
    model, artifact, evaluation = version.model, version.artifact, selectors.evaluation_of(version)
    calibration = None
    if artifact.calibration or artifact.calibration_problem:
        calibration = CalibrationOut(
            samples=artifact.calibration_samples,
            sha256=artifact.calibration and artifact.calibration.sha256,
            problem=artifact.calibration_problem or None,
        )
    return fill(
        VersionOut,
        version,
        model=model.name,
        team=model.team.name,
        problem=version.problem or None,
        sha256=artifact.sha256,
        bytes=artifact.bytes,
        files=[fill(FileOut, file, sha256=file.blob.sha256, bytes=file.blob.bytes) for file in artifact.files.all()],
        evaluation=evaluation and _shape_evaluation(evaluation),
        calibration=calibration,
        uploaded_by=username(version.uploaded_by),
    )


def _shape_evaluation(data: EvaluationData) -> EvaluationOut:
    return fill(
        EvaluationOut,
        data,
        problem=data.reason_text or None,
        recipe=format_recipe(data.recipe),
        sha256=data.given.sha256,
        bytes=data.given.bytes,
        output=data.output or None,
    )
