"""Receiving an upload: drafts become blobs, an artifact, and a version whose inspection is ordered."""

from collections.abc import Iterable, Mapping, Sequence

from django.db import transaction
from django.db.models import Max

from farm.accounts.models import Team, User
from farm.accounts.selectors import team_to_write
from farm.accounts.services import record
from farm.base.refusals import Invalid
from farm.contract.base import digest_of
from farm.registry.bundles import Part, sort_out
from farm.registry.models import Artifact, ArtifactFile, Model, Version
from farm.registry.services.descriptions import checked_name, checked_note
from farm.registry.services.evaluations import keep_evaluation, read_recipe
from farm.registry.services.messages import INSPECT, hint
from farm.registry.services.room import check_quota, keep_blob, room_left
from farm.registry.states import BUNDLE_ROLES, FileRole, VersionState
from farm.registry.storage import Draft
from farm.registry.unzip import unpack


def receive_upload(
    *,
    user: User,
    files: Sequence[Draft],
    roles: Mapping[str, FileRole] | None = None,
    model: str = "",
    note: str = "",
    team: str = "",
    recipe: str = "",
) -> Version:
    """Store sealed drafts as one version and order its inspection; answers `pending`.

    `files` are an `.onnx` with its external data and reference data, or one `.zip` of those; `roles` says what a file
    is where its name does not, `recipe` how outputs are judged on evaluation data among them. `model` names the line
    (default: the file's own name). The same bundle again in the same line is the version that is already there. Raises
    Invalid, NotAllowed, Missing, TooLarge (quota) and NoSpace. Every draft that is not kept is removed.
    """
    drafts = list(files)
    try:
        owner = team_to_write(user, name=team)
        drafts = _unzipped(files, team=owner)
        parts = sort_out(drafts, roles=roles or {})
        name = checked_name(model or parts[0].name.removesuffix(".onnx"))
        how = read_recipe(recipe)
        if recipe and all(part.role != FileRole.EVALUATION for part in parts):
            text = f"The recipe {recipe[:60]!r} came without labelled data to judge: add evaluation.npz."
            raise Invalid(text, code="bad_recipe")
        note = checked_note(note)
        with transaction.atomic():
            version = _register(user=user, team=owner, parts=parts, name=name, note=note)
            data = version.artifact.blob_of(FileRole.EVALUATION)
            if data is not None:
                keep_evaluation(version=version, blob=data, recipe=how)
        return version
    finally:
        for draft in (*files, *drafts):
            draft.discard()


def store_artifact(*, team: Team, parts: Sequence[Part]) -> Artifact:
    """The team's artifact with these files, created when it is new. Call inside a transaction."""
    blobs = {part.name: keep_blob(team, part.draft) for part in parts}
    main = next(part.name for part in parts if part.role == FileRole.MODEL)
    artifact, is_new = Artifact.objects.get_or_create(
        team=team,
        sha256=_digest(parts, inside=True),
        data_sha256=_digest(parts, inside=False),
        defaults={"main": main, "bytes": sum(part.draft.bytes for part in parts)},
    )
    if is_new:
        ArtifactFile.objects.bulk_create(
            ArtifactFile(artifact=artifact, blob=blobs[part.name], name=part.name, role=part.role) for part in parts
        )
    return artifact


def _unzipped(files: Sequence[Draft], *, team: Team) -> list[Draft]:
    """The content of the one zip, or the files themselves when none of them is a zip."""
    archives = [draft for draft in files if draft.name.lower().endswith(".zip")]
    if not archives:
        return list(files)
    if len(files) > 1:
        raise Invalid(f"{archives[0].name} came with other files; upload the zip alone.", code="zip_and_files")
    return unpack(archives[0], limit_bytes=room_left(team))


def _register(*, user: User, team: Team, parts: Sequence[Part], name: str, note: str) -> Version:
    with transaction.atomic():
        # one upload at a time per team decides about its quota and its version numbers
        team = Team.objects.select_for_update().get(pk=team.pk)
        check_quota(team, {part.draft.sha256: part.draft.bytes for part in parts})
        artifact = store_artifact(team=team, parts=parts)
        line, _ = Model.objects.get_or_create(team=team, name=name, removed_at=None, defaults={"created_by": user})
        same = line.versions.filter(artifact=artifact).exclude(state=VersionState.REJECTED).first()
        if same is not None:
            # what was deleted and is sent again is wanted again
            Version.objects.filter(pk=same.pk).update(removed_at=None)
            return same
        last = line.versions.aggregate(last=Max("number"))["last"] or 0
        version = Version.objects.create(model=line, number=last + 1, artifact=artifact, note=note, uploaded_by=user)
        record(verb="version uploaded", subject=str(version), actor=user, team=team, facts={"sha256": artifact.sha256})
        hint(INSPECT, version.pk)
    return version


def _digest(parts: Iterable[Part], *, inside: bool) -> str:
    """Digest of the bundle's files (`inside`) or of the reference data beside it; empty when there is none."""
    chosen = [part for part in parts if (part.role in BUNDLE_ROLES) == inside]
    if inside:
        return digest_of(sorted([part.name, part.draft.sha256, part.draft.bytes] for part in chosen))
    return digest_of(sorted([part.role, part.name, part.draft.sha256] for part in chosen)) if chosen else ""
