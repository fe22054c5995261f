"""The registry: models, versions and the matrix schema."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from farm.api.auth import person
from farm.registry import selectors, services
from farm.registry.models import Artifact, EvaluationData, Model, Version
from farm.rules.quality.evaluation import recipe_text

router = Router(tags=["registry"])
PAGE = 100


class FileOut(Schema):
    name: str
    role: str
    sha256: str
    bytes: int


class ModelOut(Schema):
    id: int
    name: str
    team: str
    description: str
    labels: list[str]
    created_at: datetime
    version_count: int


class EvaluationOut(Schema):
    """Labelled data. `state`: pending, making (being looked at), ready or failed; `problem` says what does not fit."""

    state: str
    problem: str | None
    recipe: str = Field(description="how outputs are judged: top1, top5, mse, softmax+mse, threshold=0.5, …@output")
    sha256: str = Field(description="digest of the file as it was given")
    bytes: int
    samples: int | None
    classes: int | None
    output: str | None


class CalibrationOut(Schema):
    """What static quantisation reads ranges from. `problem`: why the data that were given cannot serve."""

    samples: int | None
    sha256: str | None
    problem: str | None


class VersionOut(Schema):
    """`state`: pending, inspecting, ready or rejected; `problem` says why it was rejected."""

    id: int
    model_id: int
    model: str
    number: int
    team: str
    state: str
    problem: str | None
    note: str
    sha256: str = Field(description="digest of the bundle: names and contents of the model and its external data")
    bytes: int
    files: list[FileOut]
    inspection: dict[str, Any] | None
    evaluation: EvaluationOut | None
    calibration: CalibrationOut | None
    uploaded_by: str | None
    created_at: datetime


class ModelPageOut(ModelOut):
    versions: list[VersionOut]


class Described(Schema):
    """Null or left out: unchanged."""

    description: str | None = None
    labels: list[str] | None = None


class RemovedOut(Schema):
    """Bytes of the team's quota that became free."""

    freed_bytes: int


class Paging(Schema):
    """`after`: skip so many; `limit`: at most 100."""

    after: int = Field(default=0, ge=0, le=1_000_000)
    limit: int = Field(default=50, ge=1, le=PAGE)
    search: str = Field(default="", max_length=100)


@router.get("/models", response=list[ModelOut])
def models(request: HttpRequest, paging: Query[Paging]) -> list[ModelOut]:
    """Models of your teams, by name."""
    found = selectors.models_visible_to(person(request))
    if paging.search:
        found = found.filter(name__icontains=paging.search.replace("\x00", ""))
    return [model_out(model) for model in found[paging.after : paging.after + paging.limit]]


@router.get("/models/{int:model_id}", response=ModelPageOut)
def model(request: HttpRequest, model_id: int) -> ModelPageOut:
    """One model with its newest versions."""
    user = person(request)
    found = selectors.model(user, model_id)
    versions = [version_out(version) for version in selectors.versions_of(found, user=user)[:PAGE]]
    return ModelPageOut(**model_out(found).dict(), versions=versions)


@router.patch("/models/{int:model_id}", response=ModelOut)
def describe(request: HttpRequest, model_id: int, payload: Described) -> ModelOut:
    """Change a model's description or labels; what is left out stays."""
    user = person(request)
    found = selectors.model(user, model_id)
    services.describe_model(model=found, by=user, description=payload.description, labels=payload.labels)
    return model_out(found)


@router.get("/versions/{int:version_id}", response=VersionOut)
def version(request: HttpRequest, version_id: int) -> VersionOut:
    """One version and what inspection found."""
    return version_out(selectors.version(person(request), version_id))


@router.delete("/versions/{int:version_id}", response=RemovedOut)
def remove_version(request: HttpRequest, version_id: int) -> RemovedOut:
    """Remove a version that no run has measured, and the files that nothing else uses."""
    user = person(request)
    freed = services.remove_version(version=selectors.version(user, version_id), by=user)
    return RemovedOut(freed_bytes=freed)


def model_out(model: Model) -> ModelOut:
    return ModelOut(
        id=model.pk,
        name=model.name,
        team=model.team.name,
        description=model.description,
        labels=model.labels,
        created_at=model.created_at,
        version_count=getattr(model, "version_count", 0),
    )


def version_out(version: Version) -> VersionOut:
    files = version.artifact.files.all()
    return VersionOut(
        id=version.pk,
        model_id=version.model_id,
        model=version.model.name,
        number=version.number,
        team=version.model.team.name,
        state=version.state,
        problem=version.problem or None,
        note=version.note,
        sha256=version.artifact.sha256,
        bytes=version.artifact.bytes,
        files=[FileOut(name=f.name, role=f.role, sha256=f.blob.sha256, bytes=f.blob.bytes) for f in files],
        inspection=version.inspection,
        calibration=_calibration_out(version.artifact),
        evaluation=_evaluation_out(selectors.evaluation_of(version)),
        uploaded_by=version.uploaded_by.username if version.uploaded_by else None,
        created_at=version.created_at,
    )


def _calibration_out(artifact: Artifact) -> CalibrationOut | None:
    if artifact.calibration is None and not artifact.calibration_problem:
        return None
    return CalibrationOut(
        samples=artifact.calibration_samples,
        sha256=artifact.calibration.sha256 if artifact.calibration else None,
        problem=artifact.calibration_problem or None,
    )


def _evaluation_out(found: EvaluationData | None) -> EvaluationOut | None:
    if found is None:
        return None
    return EvaluationOut(
        state=found.state,
        problem=found.reason_text or None,
        recipe=recipe_text(found.recipe),
        sha256=found.given.sha256,
        bytes=found.given.bytes,
        samples=found.samples,
        classes=found.classes,
        output=found.output or None,
    )
