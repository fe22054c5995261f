"""What the registry knows. Everything a person sees goes through `visible_to`."""

from pathlib import Path
from typing import BinaryIO

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, QuerySet

from farm.accounts.models import User
from farm.accounts.refusals import Conflict, Missing
from farm.registry import storage
from farm.registry.models import Artifact, Blob, Model, Preparation, Variant, Version
from farm.rules.planning.plans import ModelFacts
from farm.workshop.inspection import Inspection

Anyone = User | AnonymousUser


def models_visible_to(user: Anyone) -> QuerySet[Model]:
    """Models of the user's teams, by name, with `version_count`."""
    models = Model.objects.visible_to(user).select_related("team", "created_by")
    return models.annotate(version_count=Count("versions", distinct=True))


def model(user: Anyone, model_id: int) -> Model:
    """One model. Raises Missing when there is none that the user may see."""
    found = models_visible_to(user).filter(pk=model_id).first()
    if found is None:
        raise Missing(f"There is no model {model_id} that you may see.", hint="List yours with `onnxfarm models`.")
    return found


def versions_visible_to(user: Anyone) -> QuerySet[Version]:
    """Versions of the user's teams, newest first, with their model, files and uploader."""
    related = Version.objects.visible_to(user).select_related("model__team", "artifact", "uploaded_by")
    return related.prefetch_related("artifact__files__blob")


def version(user: Anyone, version_id: int) -> Version:
    """One version. Raises Missing when there is none that the user may see."""
    found = versions_visible_to(user).filter(pk=version_id).first()
    if found is None:
        raise Missing(f"There is no version {version_id} that you may see.", hint="List yours with `onnxfarm models`.")
    return found


def versions_of(model: Model, *, user: Anyone) -> QuerySet[Version]:
    """A model's versions, newest first."""
    return versions_visible_to(user).filter(model=model)


def variants_of(artifact: Artifact) -> QuerySet[Variant]:
    """Variants made or being made of an artifact."""
    return artifact.variants.select_related("derived").prefetch_related("derived__files__blob")


def preparations_of(artifact: Artifact) -> QuerySet[Preparation]:
    """Prepared workloads of an artifact."""
    return artifact.preparations.select_related("inputs", "reference")


def stored_path(sha256: str) -> Path:
    """Where a stored file with this digest lies, whichever team's: the content is the same by definition.

    Who may read it is the caller's to decide. Raises Missing when there is none.
    """
    for blob in Blob.objects.filter(sha256=sha256):
        path = storage.place(team_id=blob.team_id, sha256=sha256)
        if path.is_file():
            return path
    raise Missing(f"There is no stored file {sha256[:12]}….")


def open_stored(sha256: str) -> BinaryIO:
    """A stored file, opened for reading. Raises Missing when there is none."""
    return stored_path(sha256).open("rb")


def model_facts(version: Version) -> ModelFacts:
    """What planning must know of an inspected version. Raises Conflict before inspection has accepted it."""
    if version.inspection is None:
        raise Conflict(f"{version} is {version.state}; it can be planned once it is inspected.", code="not_inspected")
    found = Inspection.model_validate(version.inspection)
    bundle, given = version.artifact.bundle, version.artifact.inputs
    return ModelFacts(
        name=version.model.name,
        bundle_sha256=bundle.digest,
        main_sha256=bundle.main_sha256,
        opsets=found.opsets,
        ir_version=found.ir_version,
        custom_domains=found.custom_domains,
        batch=found.batch,
        dims={name: None for name in found.dims if name != found.batch},
        is_quantised=found.is_quantised,
        inputs_sha256=given.sha256 if given else None,
        inputs_batch=version.artifact.inputs_batch,
    )
