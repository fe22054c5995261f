"""Removes models and versions with their files, and restores them; measured versions are only hidden.

Each removal and each restoration is written to the audit log.
"""

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
# how long a search for orphans may take
BUDGET_S: Final = 20.0
# files of the store are named by 64 hex digits
NAME_LENGTH: Final = 64


class Removed(NamedTuple):
    """The bytes that a removal freed, and how many versions it deleted, or hid because they have runs."""

    freed_bytes: int = 0
    deleted: int = 0
    hidden: int = 0


def remove_version(*, version: Version, by: User) -> Removed:
    """Delete a version with the files that nothing else uses, or hide it where runs have measured it.

    A hidden version keeps its files and can be restored. The last version takes its model along: the model is deleted,
    or hidden with hidden versions. Raises NotAllowed for a person who may not write in the team.
    """
    _check_may_remove(version.model, by)
    return _remove_versions(version.model, [version], by=by, kind="version", name=str(version))


def remove_model(*, model: Model, by: User) -> Removed:
    """Remove a model with all of its versions, each as `remove_version` does.

    The model is deleted where no version is left, and hidden otherwise. Raises NotAllowed for a person who may not
    write in the team.
    """
    _check_may_remove(model, by)
    return _remove_versions(
        model, model.versions.not_removed().select_related("artifact", "model"), by=by, kind="model", name=model.name
    )


def expire_model(model: Model) -> int:
    """Remove a model with all of its versions, because its retention is over; return 1.

    If a run has measured a version, or measured another version beside one, the model stays and 0 is returned. The
    caller has to check that the retention is over.
    """
    if model.versions.filter(Q(runs__isnull=False) | Q(beside__isnull=False)).exists():
        return 0
    _remove_versions(model, model.versions.select_related("artifact", "model"), by=None, kind="model", name=model.name)
    return 1


def expire_branch_version(version: Version) -> int:
    """Remove a branch's version whose retention is over; return 1, or 0 if it was protected or deleted meanwhile.

    A version that runs have measured is hidden, and its files are deleted too, unless something else uses them.
    """
    with transaction.atomic():
        Team.objects.select_for_update().get(pk=version.model.team_id)
        if not Version.objects.not_removed().filter(pk=version.pk, is_kept=False).exclude(branch="").exists():
            return 0
        removed = _remove_versions(version.model, [version], by=None, kind="branch's version", name=str(version))
        if removed.hidden:
            _sweep_files(version.artifact)
    return 1


def _sweep_files(artifact: Artifact) -> None:
    """Delete the artifact's files that nothing else uses, but keep its rows and variants. Call inside a transaction."""
    others = artifact.derived_by.exclude(artifact=artifact)
    if others.exists() or artifact.versions.filter(Q(branch="") | Q(removed_at=None)).exists():
        return
    for blob in Blob.objects.filter(uses__artifact=artifact, swept_at=None):
        if not blob.uses.exclude(artifact=artifact).exists() and not _is_used(blob, ignoring=ArtifactFile):
            Blob.objects.filter(pk=blob.pk).update(swept_at=timezone.now())
            transaction.on_commit(partial(remove_file, team_id=blob.team_id, sha256=blob.sha256))


def check_has_files(version: Version) -> None:
    """Raise Conflict where retention has removed files of the version."""
    swept = version.artifact.files.exclude(blob__swept_at=None).select_related("blob").first()
    if swept is not None:
        text = f"The files of {version} were removed on {swept.blob.swept_at:%Y-%m-%d}, some time after its gate."
        raise Conflict(text, code="swept", hint="Upload the model again.")


def _remove_versions(model: Model, versions: Iterable[Version], *, by: User | None, kind: str, name: str) -> Removed:
    """Remove these versions, and the model if none is left. `kind` and `name` are for the audit log."""
    with transaction.atomic():
        Team.objects.select_for_update().get(pk=model.team_id)
        now = timezone.now()
        removed = [_remove_or_hide(version, at=now) for version in versions]
        total = Removed(*(sum(figures) for figures in zip(*removed, strict=True)))
        if not model.versions.exists():
            model.delete()
        elif not model.versions.not_removed().exists():
            Model.objects.not_removed().filter(pk=model.pk).update(removed_at=now)
        facts = {"freed_bytes": total.freed_bytes, "deleted": total.deleted, "hidden": total.hidden}
        record(verb=f"{kind} removed", subject=name, actor=by, team=model.team, facts=facts)
    return total


def _check_may_remove(model: Model, by: User) -> None:
    if not can_write(by, team=model.team):
        raise NotAllowed(f"You can view the models of team “{model.team.name}” but not delete or restore them.")


def _remove_or_hide(version: Version, *, at: datetime) -> Removed:
    """Delete a version, or hide it where runs name it. Call inside a transaction that has locked the team."""
    artifact = version.artifact
    rows = EvaluationData.objects.filter(version=version)
    labelled = [pk for pair in rows.values_list("given_id", "data_id") for pk in pair]
    try:
        with transaction.atomic():
            version.delete()
    except ProtectedError:
        Version.objects.not_removed().filter(pk=version.pk).update(removed_at=at)
        return Removed(hidden=1)
    return Removed(freed_bytes=_remove_artifact(artifact) + remove_unused_blobs(labelled), deleted=1)


def _remove_artifact(artifact: Artifact) -> int:
    """Delete an artifact and its products, unless another row uses it; return the bytes freed."""
    if artifact.versions.exists() or artifact.derived_by.exclude(artifact=artifact).exists():
        return 0
    derived = [variant.derived for variant in artifact.variants.all() if variant.derived not in (None, artifact)]
    candidates: set[int | None] = {file.blob_id for file in artifact.files.all()}
    candidates |= {artifact.inputs_id, artifact.expected_id, artifact.prompts_id, artifact.calibration_id}
    candidates |= set(Outline.objects.filter(artifact=artifact).values_list("blob_id", flat=True))
    for preparation in artifact.preparations.all():
        candidates |= {preparation.inputs_id, preparation.reference_id}
    Variant.objects.filter(artifact=artifact).delete()
    artifact.delete()
    return remove_unused_blobs(candidates) + sum(
        _remove_artifact(artifact) for artifact in derived if artifact is not None
    )


def remove_unused_blobs(candidates: Iterable[int | None]) -> int:
    """Delete those of these blobs (by id) that nothing refers to any more; return their size in bytes.

    Call this inside a transaction: the files are deleted once it is committed, so that a rollback loses none. It locks
    the blobs' teams; a caller that also locks runs or blocks has to do so before.
    """
    freed = 0
    blobs = Blob.objects.filter(pk__in=[pk for pk in candidates if pk is not None])
    # the locks keep out uploads of the same content, whose rows are not written yet
    list(Team.objects.select_for_update().filter(pk__in=blobs.values("team")).order_by("pk"))
    for blob in blobs:
        if _is_used(blob):
            continue
        blob.delete()
        transaction.on_commit(partial(remove_file, team_id=blob.team_id, sha256=blob.sha256))
        freed += blob.bytes
    return freed


def remove_file(*, team_id: int, sha256: str) -> bool:
    """Delete a file from the store and the bucket, unless a row names it; lock the team meanwhile.

    Return False where the file stays. Errors of the bucket or the disk are only logged.
    """
    with transaction.atomic():
        Team.objects.select_for_update().filter(pk=team_id).first()
        if Blob.objects.filter(team=team_id, sha256=sha256, swept_at=None).exists():
            return False
        try:
            bucket.delete_file(team_id=team_id, sha256=sha256)
            blob_path(team_id=team_id, sha256=sha256).unlink(missing_ok=True)
        except (Away, OSError) as problem:
            log.warning("The file %s… of team %s is in nobody's use and stays: %s", sha256[:12], team_id, problem)
            return False
    return True


def _is_used(blob: Blob, *, ignoring: type[models.Model] | None = None) -> bool:
    """Say whether any row of any app refers to the blob; rows of the model `ignoring` do not count."""
    fields = Blob._meta.get_fields(include_hidden=True)
    relations = [field for field in fields if isinstance(field, ForeignObjectRel)]
    return any(
        relation.related_model._base_manager.filter(**{relation.field.name: blob}).exists()
        for relation in relations
        if relation.related_model is not ignoring
    )


def clear_orphans(*, older_than_s: float = DRAFT_LIFE_S, budget_s: float = BUDGET_S) -> int:
    """Delete files of teams in the store that no row names and that are older than `older_than_s`; return how many.

    Younger files are left alone, because their rows may not be written yet. The search stops after `budget_s` seconds,
    and begins in another folder each day.
    """
    until = time.monotonic() + budget_s
    limit = time.time() - older_than_s
    removed = 0
    for team_id, folder in _list_folders():
        if time.monotonic() > until:
            break
        old = {
            path.name for path in folder.iterdir() if len(path.name) == NAME_LENGTH and path.lstat().st_mtime < limit
        }
        stored = Blob.objects.filter(team=team_id, sha256__in=old, swept_at=None).values_list("sha256", flat=True)
        removed += sum(remove_file(team_id=team_id, sha256=sha256) for sha256 in sorted(old - set(stored)))
    return removed


def _list_folders() -> Iterator[tuple[int, Path]]:
    """Yield a team's id and a folder for all folders with files of teams, from another starting point each day."""
    store = Path(settings.STORE_DIR)
    teams = [path for path in store.iterdir() if path.name.isdecimal()] if store.is_dir() else []
    entries = [(int(team.name), path) for team in teams if int(team.name) != OF_THE_FARM for path in team.iterdir()]
    folders = sorted((entry for entry in entries if entry[1].is_dir()), key=lambda entry: str(entry[1]))
    # each day begins 97 folders further on, so that a search within its budget reaches all folders in time
    start = int(time.time() // 86_400) * 97 % len(folders) if folders else 0
    return iter(folders[start:] + folders[:start])


def restore_model(*, model: Model, by: User) -> Model:
    """Restore a hidden model with the versions that were hidden together with it.

    Versions whose files retention has removed stay hidden. Raises NotAllowed for a person who may not write in the
    team, and Conflict where another model has its name by now.
    """
    _check_may_remove(model, by)
    with _reserve_own_name(model):
        Model.objects.filter(pk=model.pk).update(removed_at=None)
        if model.removed_at is not None:
            swept = ArtifactFile.objects.exclude(blob__swept_at=None).values("artifact")
            model.versions.filter(removed_at=model.removed_at).exclude(artifact__in=swept).update(removed_at=None)
        model.removed_at = None
        record(verb="model restored", subject=model.name, actor=by, team=model.team)
    return model


def restore_version(*, version: Version, by: User) -> Version:
    """Restore a hidden version, and its model if that is hidden too.

    The model's other versions stay as they are. Raises NotAllowed for a person who may not write in the team, and
    Conflict where retention has removed the version's files or another model has the model's name by now.
    """
    _check_may_remove(version.model, by)
    check_has_files(version)
    with _reserve_own_name(version.model):
        Model.objects.filter(pk=version.model_id).update(removed_at=None)
        Version.objects.filter(pk=version.pk).update(removed_at=None)
        version.removed_at = version.model.removed_at = None
        record(verb="version restored", subject=str(version), actor=by, team=version.model.team)
    return version


def _reserve_own_name(model: Model) -> AbstractContextManager[None]:
    return reserve_model_name(
        model,
        model.name,
        refusal=f"There is another model “{model.name}” in team “{model.team.name}” by now.",
        hint="Rename that one first, then restore this one.",
    )
