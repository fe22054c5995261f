"""Deleting models and versions, so that a team gets its room back, and taking that back; what runs need stays."""

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from django.conf import settings
from django.db import models, transaction
from django.db.models import ForeignObjectRel, ProtectedError, Q
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.accounts.selectors import can_write
from farm.accounts.services import record
from farm.base.refusals import Away, Conflict, NotAllowed
from farm.registry import bucket
from farm.registry.models import Artifact, ArtifactFile, Blob, EvaluationData, Model, Outline, Variant, Version
from farm.registry.services.descriptions import reserve_model_name
from farm.registry.storage import DRAFT_LIFE_S, OF_THE_FARM, blob_path

log = logging.getLogger(__name__)
BUDGET_S: Final = 20.0
NAME_LENGTH: Final = 64


class Removed(NamedTuple):
    """What a removal came to: the bytes that became free, versions that are gone, and those that stay for their runs,
    which are only out of sight."""

    freed_bytes: int = 0
    deleted: int = 0
    hidden: int = 0


def remove_version(*, version: Version, by: User) -> Removed:
    """Remove a version. One without runs is deleted with the files that nothing else uses; one that runs have measured
    is taken out of sight, with its files: the runs and their documents stay as they are, and it can be restored.

    A model whose last version goes, goes too. Raises NotAllowed without the right to write in the team.
    """
    check_may_remove(version.model, by)
    return _removed(version.model, [version], by=by, what="version", name=str(version))


def remove_model(*, model: Model, by: User) -> Removed:
    """Remove a model with all of its versions, each as `remove_version` does. Raises NotAllowed."""
    check_may_remove(model, by)
    return _removed(
        model, model.versions.not_removed().select_related("artifact", "model"), by=by, what="model", name=model.name
    )


def expire_model(model: Model) -> int:
    """Removes a model by the farm's own duty, with every version; 0 where one of them was measured meanwhile."""
    if model.versions.filter(Q(runs__isnull=False) | Q(beside__isnull=False)).exists():
        return 0
    _removed(model, model.versions.select_related("artifact", "model"), by=None, what="model", name=model.name)
    return 1


def expire_branch_version(version: Version) -> int:
    """Removes what a branch uploaded by the farm's own duty, as `remove_version` does; of one that runs have measured
    the files go too, where no other version has them. 0 where somebody kept it meanwhile."""
    with transaction.atomic():
        Team.objects.select_for_update().get(pk=version.model.team_id)
        if not Version.objects.not_removed().filter(pk=version.pk, is_kept=False).exclude(branch="").exists():
            return 0
        removed = _removed(version.model, [version], by=None, what="branch's version", name=str(version))
        if removed.hidden:
            _sweep_files(version.artifact)
    return 1


def _sweep_files(artifact: Artifact) -> None:
    """What was made of it for other precisions stays with the cells that name it. Call inside a transaction."""
    others = artifact.derived_by.exclude(artifact=artifact)
    if others.exists() or artifact.versions.filter(Q(branch="") | Q(removed_at=None)).exists():
        return
    for blob in Blob.objects.filter(uses__artifact=artifact, swept_at=None):
        if not blob.uses.exclude(artifact=artifact).exists() and not _is_used(blob, but=ArtifactFile):
            Blob.objects.filter(pk=blob.pk).update(swept_at=timezone.now())
            transaction.on_commit(partial(remove_file, team_id=blob.team_id, sha256=blob.sha256))


def check_has_files(version: Version) -> None:
    """Raises Conflict where they were swept with a branch."""
    swept = version.artifact.files.exclude(blob__swept_at=None).select_related("blob").first()
    if swept is not None:
        text = f"The files of {version} were removed on {swept.blob.swept_at:%Y-%m-%d}, some time after its gate."
        raise Conflict(text, code="swept", hint="Upload the model again.")


def _removed(model: Model, versions: Iterable[Version], *, by: User | None, what: str, name: str) -> Removed:
    """`versions`: read under the team's lock, where they are a query. `what`, `name`: for the log."""
    with transaction.atomic():
        Team.objects.select_for_update().get(pk=model.team_id)
        now = timezone.now()
        each = [_remove(version, at=now) for version in versions]
        total = Removed(*(sum(figures) for figures in zip(*each, strict=True)))
        if not model.versions.exists():
            model.delete()
        elif not model.versions.not_removed().exists():
            Model.objects.not_removed().filter(pk=model.pk).update(removed_at=now)
        facts = {"freed_bytes": total.freed_bytes, "deleted": total.deleted, "hidden": total.hidden}
        record(verb=f"{what} removed", subject=name, actor=by, team=model.team, facts=facts)
    return total


def check_may_remove(model: Model, by: User) -> None:
    if not can_write(by, team=model.team):
        raise NotAllowed(f"You can view the models of team “{model.team.name}” but not delete or restore them.")


def _remove(version: Version, *, at: datetime) -> Removed:
    """Deletes a version, or hides it where runs name it. Call inside a transaction, with the team's lock."""
    artifact = version.artifact
    rows = EvaluationData.objects.filter(version=version)
    labelled = [pk for pair in rows.values_list("given_id", "data_id") for pk in pair]
    try:
        with transaction.atomic():
            version.delete()
    except ProtectedError:
        Version.objects.not_removed().filter(pk=version.pk).update(removed_at=at)
        return Removed(hidden=1)
    return Removed(freed_bytes=_remove_artifact(artifact) + remove_unused(labelled), deleted=1)


def _remove_artifact(artifact: Artifact) -> int:
    """Remove an artifact that is neither a version nor a variant of another, with what was made of it."""
    if artifact.versions.exists() or artifact.derived_by.exclude(artifact=artifact).exists():
        return 0
    derived = [made.derived for made in artifact.variants.all() if made.derived not in (None, artifact)]
    candidates: set[int | None] = {file.blob_id for file in artifact.files.all()}
    candidates |= {artifact.inputs_id, artifact.expected_id, artifact.prompts_id, artifact.calibration_id}
    candidates |= set(Outline.objects.filter(artifact=artifact).values_list("blob_id", flat=True))
    for preparation in artifact.preparations.all():
        candidates |= {preparation.inputs_id, preparation.reference_id}
    Variant.objects.filter(artifact=artifact).delete()
    artifact.delete()
    return remove_unused(candidates) + sum(_remove_artifact(artifact) for artifact in derived if artifact is not None)


def remove_unused(candidates: Iterable[int | None]) -> int:
    """Remove those blobs that nothing refers to any more; answers their bytes. Their files go once this is committed.

    A file that went first would be missed by its row wherever the transaction is rolled back. Call inside a
    transaction, with the run's and the block's locks taken, if at all: the teams' are taken here.
    """
    freed = 0
    blobs = Blob.objects.filter(pk__in=[pk for pk in candidates if pk is not None])
    # whoever keeps the same content for something else holds its team's lock until that names it
    list(Team.objects.select_for_update().filter(pk__in=blobs.values("team")).order_by("pk"))
    for blob in blobs:
        if _is_used(blob):
            continue
        blob.delete()
        transaction.on_commit(partial(remove_file, team_id=blob.team_id, sha256=blob.sha256))
        freed += blob.bytes
    return freed


def remove_file(*, team_id: int, sha256: str) -> None:
    """Removes a file without a row. Whoever uploads the same content meanwhile holds the team's lock, or waits for it.

    A file that stays, because the bucket is away, costs its room and nothing else.
    """
    with transaction.atomic():
        Team.objects.select_for_update().filter(pk=team_id).first()
        if Blob.objects.filter(team=team_id, sha256=sha256, swept_at=None).exists():
            return
        try:
            bucket.delete_file(team_id=team_id, sha256=sha256)
            blob_path(team_id=team_id, sha256=sha256).unlink(missing_ok=True)
        except (Away, OSError) as problem:
            log.warning("The file %s… of team %s is in nobody's use and stays: %s", sha256[:12], team_id, problem)


def _is_used(blob: Blob, *, but: type[models.Model] | None = None) -> bool:
    """Whether any row of any room names it: bundles, what was made of them, and what nodes sent; `but`: rows of that
    kind do not count."""
    fields = Blob._meta.get_fields(include_hidden=True)
    relations = [field for field in fields if isinstance(field, ForeignObjectRel)]
    return any(
        relation.related_model._base_manager.filter(**{relation.field.name: blob}).exists()
        for relation in relations
        if relation.related_model is not but
    )


def clear_orphans(*, older_than_s: float = DRAFT_LIFE_S, budget_s: float = BUDGET_S) -> int:
    """Removes them, folder by folder and under their team's lock; answers how many. A file of today stays: whoever
    keeps one may not have written its row yet."""
    until = time.monotonic() + budget_s
    limit = time.time() - older_than_s
    removed = 0
    for team_id, folder in _folders():
        if time.monotonic() > until:
            break
        old = {
            path.name for path in folder.iterdir() if len(path.name) == NAME_LENGTH and path.lstat().st_mtime < limit
        }
        known = Blob.objects.filter(team=team_id, sha256__in=old, swept_at=None).values_list("sha256", flat=True)
        for sha256 in sorted(old - set(known)):
            remove_file(team_id=team_id, sha256=sha256)
            removed += 1
    return removed


def _folders() -> Iterator[tuple[int, Path]]:
    """The folders of teams' files with their team's number, in an order that begins elsewhere each day."""
    store = Path(settings.STORE_DIR)
    teams = [path for path in store.iterdir() if path.name.isdecimal()] if store.is_dir() else []
    found = [(int(team.name), folder) for team in teams if int(team.name) != OF_THE_FARM for folder in team.iterdir()]
    found = sorted((entry for entry in found if entry[1].is_dir()), key=lambda entry: str(entry[1]))
    start = int(time.time() // 86_400) * 97 % len(found) if found else 0
    return iter(found[start:] + found[:start])


def restore_model(*, model: Model, by: User) -> Model:
    """The model and the versions that were deleted with it are there again. Raises NotAllowed, and Conflict where
    another model has its name by now."""
    check_may_remove(model, by)
    with _name_again(model):
        Model.objects.filter(pk=model.pk).update(removed_at=None)
        if model.removed_at is not None:
            swept = ArtifactFile.objects.exclude(blob__swept_at=None).values("artifact")
            model.versions.filter(removed_at=model.removed_at).exclude(artifact__in=swept).update(removed_at=None)
        model.removed_at = None
        record(verb="model restored", subject=model.name, actor=by, team=model.team)
    return model


def restore_version(*, version: Version, by: User) -> Version:
    """The version is there again, and so is its model. Raises as `restore_model` does, and Conflict without files."""
    check_may_remove(version.model, by)
    check_has_files(version)
    with _name_again(version.model):
        Model.objects.filter(pk=version.model_id).update(removed_at=None)
        Version.objects.filter(pk=version.pk).update(removed_at=None)
        version.removed_at = version.model.removed_at = None
        record(verb="version restored", subject=str(version), actor=by, team=version.model.team)
    return version


def _name_again(model: Model) -> AbstractContextManager[None]:
    return reserve_model_name(
        model,
        model.name,
        refusal=f"There is another model “{model.name}” in team “{model.team.name}” by now.",
        hint="Rename that one first, then restore this one.",
    )
