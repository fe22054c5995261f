"""The registry: models, versions and the matrix schema."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO

from django.http import FileResponse, HttpRequest
from ninja import Query, Router, Schema
from ninja.pagination import paginate
from pydantic import Field

from farm.accounts.selectors import can_write
from farm.api.auth import person
from farm.api.description import answering
from farm.api.pages import Page
from farm.base.refusals import NotAllowed
from farm.registry import selectors, services
from farm.registry.models import Artifact, EvaluationData, Model, Version
from farm.rules.quality.evaluation import recipe_text

if TYPE_CHECKING:
    from django.db.models import QuerySet

router = Router(tags=["registry"])
PAGE = 100


class FileOut(Schema):
    name: str = Field(description="its name in the bundle")
    role: str = Field(description="model, external data, inputs, expected, prompts, calibration or evaluation")
    sha256: str = Field(
        validation_alias="blob.sha256", description="digest of its bytes; of the .onnx file, the model file digest"
    )
    bytes: int = Field(validation_alias="blob.bytes", description="its size")


class ModelOut(Schema):
    id: int = Field(description="the model's number")
    name: str = Field(description="its name, unique in its team")
    team: str = Field(validation_alias="team.name", description="the team that it belongs to")
    description: str = Field(description="what its people wrote about it")
    labels: list[str] = Field(description="words by which watches and lists find it")
    created_at: datetime = Field(description="when it was first uploaded")
    removed_at: datetime | None = Field(description="when it was deleted; null: it was not")
    version_count: int = Field(description="how many versions it has")

    @staticmethod
    def resolve_version_count(model: Model) -> int:
        return getattr(model, "version_count", 0)


class EvaluationOut(Schema):
    """Labelled data. `state`: pending, making (being checked), ready or failed; `problem` says what does not fit."""

    state: str = Field(description="pending, making (being checked), ready or failed")
    problem: str | None = Field(description="what does not fit; null: nothing")
    recipe: str = Field(description="how outputs are judged: top1, top5, mse, softmax+mse, threshold=0.5, …@output")
    sha256: str = Field(validation_alias="given.sha256", description="digest of the file as it was given")
    bytes: int = Field(validation_alias="given.bytes", description="size of the file as it was given")
    samples: int | None = Field(description="how many labelled samples there are; null: not inspected yet")
    classes: int | None = Field(description="how many classes the labels have; null: they have none")
    output: str | None = Field(description="the output that is judged; null: the first")

    @staticmethod
    def resolve_problem(given: EvaluationData) -> str | None:
        return given.reason_text or None

    @staticmethod
    def resolve_recipe(given: EvaluationData) -> str:
        return recipe_text(given.recipe)

    @staticmethod
    def resolve_output(given: EvaluationData) -> str | None:
        return given.output or None


class CalibrationOut(Schema):
    """What static quantisation reads ranges from. `problem`: why the data that were given cannot serve."""

    samples: int | None = Field(
        validation_alias="calibration_samples", description="how many there are; null: none that serve"
    )
    sha256: str | None = Field(description="digest of the data; null: there are none")
    problem: str | None = Field(
        description="why the data that were given cannot serve; null: they do, or none were given"
    )

    @staticmethod
    def resolve_sha256(artifact: Artifact) -> str | None:
        return artifact.calibration.sha256 if artifact.calibration else None

    @staticmethod
    def resolve_problem(artifact: Artifact) -> str | None:
        return artifact.calibration_problem or None


class VersionOut(Schema):
    """`state`: pending, inspecting, ready or rejected; `problem` says why it was rejected."""

    id: int = Field(description="the version's number on the farm")
    model_id: int = Field(description="the model's number")
    model: str = Field(validation_alias="model.name", description="the model's name")
    number: int = Field(description="1 for the first version of its model")
    team: str = Field(validation_alias="model.team.name", description="the team that it belongs to")
    state: str = Field(description="pending, inspecting, ready or rejected")
    problem: str | None = Field(description="why it was rejected; null: it was not")
    note: str = Field(description="what was said at its upload")
    sha256: str = Field(
        validation_alias="artifact.sha256",
        description="bundle digest: of the names and contents of the .onnx file and its external data",
    )
    bytes: int = Field(validation_alias="artifact.bytes", description="size of the whole bundle")
    files: list[FileOut] = Field(validation_alias="artifact.files", description="each file of the bundle")
    inspection: dict[str, object] | None = Field(
        description="what was found in it: inputs, outputs, opsets, operators, findings; null: not inspected yet"
    )
    evaluation: EvaluationOut | None = Field(description="labelled data to judge it on; null: none")
    calibration: CalibrationOut | None = Field(
        description="data that static quantisation reads ranges from; null: none"
    )
    uploaded_by: str | None = Field(description="who uploaded it; null: a deleted user")
    created_at: datetime = Field(description="when it was uploaded")
    removed_at: datetime | None = Field(description="when it was deleted; null: it was not")

    @staticmethod
    def resolve_problem(version: Version) -> str | None:
        return version.problem or None

    @staticmethod
    def resolve_evaluation(version: Version) -> EvaluationData | None:
        return selectors.evaluation_of(version)

    @staticmethod
    def resolve_calibration(version: Version) -> Artifact | None:
        given = version.artifact
        return given if given.calibration or given.calibration_problem else None

    @staticmethod
    def resolve_uploaded_by(version: Version) -> str | None:
        return version.uploaded_by.username if version.uploaded_by else None


class ModelPageOut(ModelOut):
    versions: list[VersionOut] = Field(description="newest first")

    @staticmethod
    def resolve_versions(model: Model, context: Mapping[str, HttpRequest]) -> "QuerySet[Version]":
        return selectors.versions_of(model, user=person(context["request"]))[:PAGE]

    removed_versions: list[VersionOut] = Field(description="those that were deleted and stay for their runs")

    @staticmethod
    def resolve_removed_versions(model: Model, context: Mapping[str, HttpRequest]) -> "QuerySet[Version]":
        return selectors.versions_removed(model, user=person(context["request"]))[:PAGE]


class Described(Schema):
    """Null or left out: unchanged."""

    name: str | None = Field(
        default=None, description="null or left out: unchanged; what was measured keeps the name of then"
    )
    description: str | None = Field(default=None, description="null or left out: unchanged")
    labels: list[str] | None = Field(default=None, description="null or left out: unchanged")


class VersionNote(Schema):
    """What is said of a version."""

    note: str = Field(description="replaces what was said at its upload")


class RemovedOut(Schema):
    """What a removal came to. Versions that runs have measured are hidden: the runs stay, and it can be taken back."""

    freed_bytes: int = Field(description="bytes of the team's quota that became free")
    deleted: int = Field(description="versions deleted permanently, as no run measured them")
    hidden: int = Field(description="versions that stay for the runs that measured them, and can be restored")


class Search(Schema):
    search: str = Field(default="", max_length=100, description="part of a name")
    removed: bool = Field(
        default=False, description="those that were deleted and can be restored, in place of the others"
    )


@router.get("/models", response=list[ModelOut])
@paginate(Page)
def models(request: HttpRequest, asked: Query[Search]) -> "QuerySet[Model]":
    """Models of your teams, by name."""
    user = person(request)
    rows = selectors.models_removed(user) if asked.removed else selectors.models_visible_to(user)
    return rows.filter(name__icontains=asked.search.replace("\x00", "")) if asked.search else rows


@router.get("/models/{int:model_id}", response=ModelPageOut)
def model(request: HttpRequest, model_id: int) -> Model:
    """One model with its newest versions."""
    return selectors.model(person(request), model_id)


@router.patch("/models/{int:model_id}", response=ModelOut)
def describe(request: HttpRequest, model_id: int, payload: Described) -> Model:
    """Change a model's name, description or labels; what is left out stays."""
    user = person(request)
    model = selectors.model(user, model_id)
    services.describe_model(
        model=model, by=user, name=payload.name, description=payload.description, labels=payload.labels
    )
    return model


@router.delete("/models/{int:model_id}", response=RemovedOut)
def remove_model(request: HttpRequest, model_id: int) -> RemovedOut:
    """Delete a model with its versions. Runs and their results stay, and with them the versions that they measured."""
    user = person(request)
    return _removed(services.remove_model(model=selectors.model(user, model_id), by=user))


@router.post("/models/{int:model_id}/restore", response=ModelOut)
def restore_model(request: HttpRequest, model_id: int) -> Model:
    """Take back that a model was deleted, with the versions that runs kept."""
    user = person(request)
    services.restore_model(model=selectors.model(user, model_id), by=user)
    return selectors.model(user, model_id)


@router.get("/versions/{int:version_id}", response=VersionOut)
def version(request: HttpRequest, version_id: int) -> Version:
    """One version and what inspection found."""
    return selectors.version(person(request), version_id)


@router.get(
    "/versions/{int:version_id}/files/{name}",
    openapi_extra=answering("application/octet-stream", "the file as it was uploaded"),
)
def version_file(request: HttpRequest, version_id: int, name: str) -> FileResponse:
    """One file of a version, byte by byte: its .onnx, its external data, or the program that came with it."""
    row = selectors.version(person(request), version_id)
    if not can_write(person(request), team=row.model.team):
        raise NotAllowed(f"Only members can download the files of {row}.")
    return _download(selectors.version_file(row, name), name)


@router.get(
    "/variants/{int:variant_id}/files/{name}",
    openapi_extra=answering("application/octet-stream", "the file as the farm made it"),
)
def variant_file(request: HttpRequest, variant_id: int, name: str) -> FileResponse:
    """One file of a variant that the farm made of a model: its .onnx, or its external data."""
    row = selectors.variant(person(request), variant_id)
    if not can_write(person(request), team=row.artifact.team):
        raise NotAllowed(f"Only members can download the files of variant {variant_id}: it is a model.")
    return _download(selectors.variant_file(row, name), name)


def _download(stored: BinaryIO, name: str) -> FileResponse:
    """A file of a model as bytes to keep, which no browser opens by itself."""
    return FileResponse(stored, content_type="application/octet-stream", filename=name, as_attachment=True)


@router.patch("/versions/{int:version_id}", response=VersionOut)
def describe_version(request: HttpRequest, version_id: int, payload: VersionNote) -> Version:
    """Change what is said of a version."""
    user = person(request)
    return services.describe_version(version=selectors.version(user, version_id), by=user, note=payload.note)


@router.delete("/versions/{int:version_id}", response=RemovedOut)
def remove_version(request: HttpRequest, version_id: int) -> RemovedOut:
    """Delete a version and the files that nothing else uses. One that runs have measured is hidden: the runs stay."""
    user = person(request)
    return _removed(services.remove_version(version=selectors.version(user, version_id), by=user))


@router.post("/versions/{int:version_id}/restore", response=VersionOut)
def restore_version(request: HttpRequest, version_id: int) -> Version:
    """Take back that a version was deleted, where runs kept it."""
    user = person(request)
    return services.restore_version(version=selectors.version(user, version_id), by=user)


def _removed(removed: services.Removed) -> RemovedOut:
    return RemovedOut(freed_bytes=removed.freed_bytes, deleted=removed.deleted, hidden=removed.hidden)
