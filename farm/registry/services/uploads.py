"""Stores uploads: drafts become blobs within the team's quota, an artifact, and a version to be inspected.

Files that retention has removed do not count against the quota. `free_quota_bytes` is never below 0.
"""

from collections.abc import Iterable, Mapping, Sequence

from django.db import IntegrityError, transaction
from django.db.models import Max, Sum
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.accounts.selectors import can_write, team_to_write
from farm.accounts.services import record
from farm.base.refusals import Conflict, Invalid, NotAllowed, TooLarge, require_row
from farm.contract.base import digest_json
from farm.contract.evaluation import EvaluationRecipe
from farm.registry.bundles import Part, sort_into_parts
from farm.registry.models import Artifact, ArtifactFile, Blob, EvaluationData, Model, Version
from farm.registry.services.descriptions import clean_name, clean_note
from farm.registry.services.messages import CHECK_EVALUATION, INSPECT, send_hint_on_commit
from farm.registry.services.origins import OWN_LINE, Origin
from farm.registry.services.removal import remove_unused_blobs
from farm.registry.states import BUNDLE_ROLES, FileRole, MakingState, VersionState
from farm.registry.storage import Draft, blob_path
from farm.registry.unzip import unpack
from farm.rules.quality import evaluation
from farm.rules.quality.accuracy_metrics import METRICS


def parse_recipe(text: str) -> EvaluationRecipe:
    """Parse the evaluation recipe of a form; an empty text means `top1`. Raises Invalid for a bad recipe."""
    try:
        return evaluation.parse_recipe(text or "top1")
    except evaluation.RecipeProblem as problem:
        raise Invalid(
            str(problem),
            code="bad_recipe",
            hint=f"Recipes are like top1, softmax+mse or top1@scores, of {', '.join(METRICS)}.",
        ) from problem


def store_evaluation(*, version: Version, blob: Blob, recipe: EvaluationRecipe) -> EvaluationData:
    """Make `blob` the version's labelled data, order the check of the data, and return their row.

    If the version has the same data with the same recipe, that row is returned, and checked again only if its check
    failed. Other earlier data are deleted. Call this inside a transaction.
    """
    earlier = EvaluationData.objects.filter(version=version).first()
    recipe_json = recipe.model_dump(mode="json")
    if earlier is not None:
        is_same = (earlier.given_id, earlier.recipe_json) == (blob.pk, recipe_json)
        if is_same and earlier.state != MakingState.FAILED:
            return earlier
        earlier.delete()
    data = EvaluationData.objects.create(version=version, given=blob, recipe_json=recipe_json)
    if earlier is not None:
        remove_unused_blobs([earlier.given_id, earlier.data_id])
    send_hint_on_commit(CHECK_EVALUATION, data.pk)
    return data


def add_evaluation(*, version: Version, by: User, draft: Draft, recipe: str = "") -> EvaluationData:
    """Give a version labelled data, which replace earlier ones; running runs use them from their next block on.

    A worker checks the content later. The draft is always discarded, and the audit log gets an entry. Raises NotAllowed
    for a person who may not write in the team, Conflict for a rejected version, Invalid for a bad recipe or a file that
    is not named `.npz`, TooLarge over the quota, NoSpace, and Away where the bucket does not answer.
    """
    team = version.model.team
    try:
        if not can_write(by, team=team):
            raise NotAllowed(f"You can view the models of team “{team.name}” but not add data to them.")
        if version.state == VersionState.REJECTED:
            raise Conflict(f"{version} was rejected; upload the model again with its data.", code="rejected")
        parsed_recipe = parse_recipe(recipe)
        if not draft.name.lower().endswith(".npz"):
            raise Invalid(
                "Labelled data come as an .npz of the inputs by name and `labels`.",
                code="bad_evaluation",
                hint="Write it with numpy.savez.",
            )
        with transaction.atomic():
            team = Team.objects.select_for_update().get(pk=team.pk)
            check_quota(team, {draft.sha256: draft.bytes})
            blob = store_blob_of_locked_team(team, draft)
            data = store_evaluation(version=version, blob=blob, recipe=parsed_recipe)
            facts = {"sha256": draft.sha256}
            record(verb="evaluation data given", subject=str(version), actor=by, team=team, facts=facts)
    finally:
        draft.discard()
    return data


def free_quota_bytes(team: Team) -> int:
    used: int = team.blobs.filter(swept_at=None).aggregate(total=Sum("bytes"))["total"] or 0
    return max(0, team.quota_bytes - used)


def check_quota(team: Team, sizes: Mapping[str, int]) -> None:
    """Raise TooLarge where files would exceed the team's quota.

    `sizes` holds their bytes by sha256; files that the team has stored already do not count.
    """
    stored = set(team.blobs.filter(sha256__in=sizes, swept_at=None).values_list("sha256", flat=True))
    check_free_quota(team, sum(size for sha256, size in sizes.items() if sha256 not in stored))


def check_free_quota(team: Team, added_bytes: int, *, reserved_bytes: int = 0) -> None:
    """Raise TooLarge where `added_bytes` and `reserved_bytes` together exceed what is left of the team's quota."""
    free = max(0, free_quota_bytes(team) - reserved_bytes)
    if added_bytes > free:
        raise TooLarge(
            f"The upload adds {added_bytes:,} bytes; team “{team.name}” has {free:,} of its {team.quota_bytes:,} left.",
            code="quota",
            hint="Remove versions that no run has measured, or ask an administrator for a larger quota.",
        )


def store_made_blob(*, team: Team, draft: Draft) -> Blob:
    """Store a file that the farm itself made, such as inputs, whether or not the quota has room for it.

    This locks the team, and always discards the draft.
    """
    try:
        with transaction.atomic():
            # the lock keeps out a removal of the same content
            return store_blob_of_locked_team(Team.objects.select_for_update().get(pk=team.pk), draft)
    finally:
        draft.discard()


def store_blob_within_quota(*, team: Team, draft: Draft) -> Blob:
    """Store a file within the team's quota. Call this inside a transaction; it locks the team. Discard the draft after.

    Raises TooLarge over the quota, NoSpace where the disk is full, and Away where the bucket does not answer.
    """
    # lock the team, so that its uploads are checked against the quota one after the other
    locked = Team.objects.select_for_update().get(pk=team.pk)
    check_quota(locked, {draft.sha256: draft.bytes})
    return store_blob_of_locked_team(locked, draft)


def store_blob_of_locked_team(team: Team, draft: Draft) -> Blob:
    """Find or make the blob's row and put the draft's file into the store, without checking the quota.

    Call this with the team locked. A rollback leaves at most a file without a row, never a row without a file.
    """
    try:
        with transaction.atomic():
            blob, is_new = Blob.objects.get_or_create(team=team, sha256=draft.sha256, defaults={"bytes": draft.bytes})
    except IntegrityError:
        blob, is_new = Blob.objects.get(team=team, sha256=draft.sha256), False
    if is_new or not blob_path(team_id=team.pk, sha256=draft.sha256).exists():
        draft.keep(team_id=team.pk)
    if blob.swept_at is not None:
        Blob.objects.filter(pk=blob.pk).update(swept_at=None)
    return blob


def receive_upload(
    *,
    user: User,
    files: Sequence[Draft],
    roles: Mapping[str, FileRole] | None = None,
    model: str = "",
    note: str = "",
    team: str = "",
    recipe: str = "",
    origin: Origin = OWN_LINE,
) -> Version:
    """Store sealed drafts as one pending version and order its inspection.

    `files` are an `.onnx` with its external data and reference data, or one `.zip` of those. `roles` maps names of
    files to their roles where the names do not tell them. `recipe` says how outputs are judged on evaluation data among
    the files. `model` is the model's name (empty: that of the file), and `team` the team's (empty: the user's default
    one). If the model has a version with the same content that `origin` allows, that version is returned, and restored
    if it was deleted; only a new one is written to the audit log. Raises Invalid for bad files, names or recipe, or a
    recipe without evaluation data, Missing where a gate would add a model, TooLarge over the quota, NoSpace, Away where
    the bucket does not answer, and what `team_to_write` raises. Drafts that are not stored are removed.
    """
    drafts = list(files)
    try:
        owner = team_to_write(user, name=team)
        drafts = _unpack_zip(files, team=owner)
        parts = sort_into_parts(drafts, roles=roles or {})
        name = clean_name(model or parts[0].name.removesuffix(".onnx"))
        parsed_recipe = parse_recipe(recipe)
        if recipe and all(part.role != FileRole.EVALUATION for part in parts):
            text = f"The recipe {recipe[:60]!r} came without labelled data to judge: add evaluation.npz."
            raise Invalid(text, code="bad_recipe")
        note = clean_note(note)
        with transaction.atomic():
            version = _create_version(user=user, team=owner, parts=parts, name=name, note=note, origin=origin)
            data = version.artifact.blob_of(FileRole.EVALUATION)
            if data is not None:
                store_evaluation(version=version, blob=data, recipe=parsed_recipe)
        return version
    finally:
        for draft in (*files, *drafts):
            draft.discard()


def store_artifact(*, team: Team, parts: Sequence[Part]) -> Artifact:
    """Find or create the team's artifact with these files, and store the files. The caller discards the drafts.

    Call this inside a transaction with the team locked. One part has to be the model. The quota is not checked.
    """
    blobs = {part.name: store_blob_of_locked_team(team, part.draft) for part in parts}
    main = next(part.name for part in parts if part.role == FileRole.MODEL)
    artifact, is_new = Artifact.objects.get_or_create(
        team=team,
        sha256=_digest_parts(parts, inside=True),
        data_sha256=_digest_parts(parts, inside=False),
        defaults={"main": main, "bytes": sum(part.draft.bytes for part in parts)},
    )
    if is_new:
        ArtifactFile.objects.bulk_create(
            ArtifactFile(artifact=artifact, blob=blobs[part.name], name=part.name, role=part.role) for part in parts
        )
    return artifact


def _unpack_zip(files: Sequence[Draft], *, team: Team) -> list[Draft]:
    """Unpack the one zip, or return the files themselves where none is a zip. Raises Invalid for a zip among others."""
    archives = [draft for draft in files if draft.name.lower().endswith(".zip")]
    if not archives:
        return list(files)
    if len(files) > 1:
        raise Invalid(f"{archives[0].name} came with other files; upload the zip alone.", code="zip_and_files")
    return unpack(archives[0], limit_bytes=free_quota_bytes(team))


def _create_version(*, user: User, team: Team, parts: Sequence[Part], name: str, note: str, origin: Origin) -> Version:
    with transaction.atomic():
        # lock the team, so that its uploads get quota and version numbers one after the other
        team = Team.objects.select_for_update().get(pk=team.pk)
        check_quota(team, {part.draft.sha256: part.draft.bytes for part in parts})
        line = _find_or_create_model(team, name, user, may_create=not origin.is_gate)
        sent_at = timezone.now() if origin.branch else None
        # an upload without reference data matches a version with them, so that its accuracy is found
        digests = {
            "artifact__sha256": _digest_parts(parts, inside=True),
            "artifact__data_sha256": _digest_parts(parts, inside=False),
        }
        versions = line.versions.exclude(state=VersionState.REJECTED).filter(origin.make_version_filter(digests))
        same = versions.order_by("-number").filter(**{name: sha for name, sha in digests.items() if sha}).first()
        if same is not None:
            # restore a deleted version that is uploaded again, and its files
            for part in parts:
                store_blob_of_locked_team(team, part.draft)
            # an upload of a branch does not change a version of the main line
            is_same_line = bool(origin.branch) == bool(same.branch)
            row = {"branch": origin.branch, "sent_at": sent_at} | ({"commit": origin.commit} if origin.commit else {})
            Version.objects.filter(pk=same.pk).update(removed_at=None, **(row if is_same_line else {}))
            return same
        artifact = store_artifact(team=team, parts=parts)
        last = line.versions.aggregate(last=Max("number"))["last"] or 0
        # a gate may upload anybody's branch, so no node may take the version for an upload of its owner
        uploader = None if origin.is_gate else user
        version = Version.objects.create(
            model=line, number=last + 1, artifact=artifact, note=note, uploaded_by=uploader, branch=origin.branch,
            commit=origin.commit, sent_at=sent_at,
        )  # fmt: skip
        record(verb="version uploaded", subject=str(version), actor=user, team=team, facts={"sha256": artifact.sha256})
        send_hint_on_commit(INSPECT, version.pk)
    return version


def _find_or_create_model(team: Team, name: str, user: User, *, may_create: bool) -> Model:
    """Find or create the model of a new version. Raises Missing where it would be new and `may_create` is False."""
    if may_create:
        return Model.objects.get_or_create(team=team, name=name, removed_at=None, defaults={"created_by": user})[0]
    return require_row(
        Model.objects.not_removed().filter(team=team, name=name),
        f"Team “{team.name}” has no model “{name}”, and a token that may only gate adds none.",
        hint="Upload a first version of it with another token.",
    )


def _digest_parts(parts: Iterable[Part], *, inside: bool) -> str:
    """Digest the bundle's files (`inside`) or the reference data beside it; empty where there are none."""
    chosen = [part for part in parts if (part.role in BUNDLE_ROLES) == inside]
    if inside:
        return digest_json(sorted([part.name, part.draft.sha256, part.draft.bytes] for part in chosen))
    return digest_json(sorted([part.role, part.name, part.draft.sha256] for part in chosen)) if chosen else ""
