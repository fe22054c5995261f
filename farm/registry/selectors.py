"""Reads models, versions, variants and stored files. `visible_to` leaves out the rows that the user may not see.

Models are sorted by name, removed ones by the time of their removal (the last first), and versions from the newest to
the oldest. Functions about an artifact, a variant or a version do not check who may read it. They return None for what
was not uploaded or is not made yet (`coverage_of` an empty list). `version_of_artifact` is the newest that the user may
see.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypedDict, cast

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from farm.accounts.models import User
from farm.base.refusals import Conflict, Missing, require_row
from farm.contract.blocks import WheelFile
from farm.contract.cells import FileRef, Runtime
from farm.registry import storage
from farm.registry.models import (
    Artifact,
    ArtifactFile,
    Blob,
    EvaluationData,
    IndexedWheel,
    Model,
    PackageIndex,
    PartialUpload,
    Variant,
    VariantReport,
    Version,
)
from farm.registry.states import BUNDLE_ROLES
from farm.rules.cells import recipes
from farm.rules.runtimes import indexes
from farm.rules.runtimes.models import PROMPTS, ModelFacts, PromptFacts
from farm.workshop.inspection import Coverage, Inspection, QuantisedReport

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

Anyone = User | AnonymousUser
# how many duplicates of a version are listed
MAX_DUPLICATES = 10


class Counted(TypedDict):
    """Columns that queries for models add: `version_count` counts the versions that were not deleted."""

    version_count: int


def package_indexes() -> QuerySet[PackageIndex]:
    return PackageIndex.objects.select_related("created_by")


def index_wheels(runtime: Runtime) -> tuple[WheelFile, ...]:
    """Return the wheels of a runtime that comes from an added package index, as they were first seen there.

    Empty for any other runtime, and where no index was seen to offer it.
    """
    if not indexes.split_index(runtime.version)[1]:
        return ()
    rows = IndexedWheel.objects.filter(distribution=runtime.distribution, version=runtime.version)
    return tuple(row.file for row in rows)


def models_visible_to(user: Anyone) -> "QuerySet[WithAnnotations[Model, Counted]]":
    """Return the models of the user's teams that were not deleted, sorted by name, each with a `version_count`."""
    return _count_versions(user).filter(removed_at=None)


def removed_models(user: Anyone) -> "QuerySet[WithAnnotations[Model, Counted]]":
    return _count_versions(user).exclude(removed_at=None).order_by("-removed_at", "-pk")


def _count_versions(user: Anyone) -> "QuerySet[WithAnnotations[Model, Counted]]":
    models = Model.objects.visible_to(user).select_related("team", "created_by")
    # counted by a subquery for each model, as a join would group whole rows
    versions = Version.objects.filter(model=OuterRef("pk"), removed_at=None).order_by().values("model")
    count = Coalesce(Subquery(versions.annotate(n=Count("pk")).values("n")), 0)
    return cast("QuerySet[WithAnnotations[Model, Counted]]", models.annotate(version_count=count))


def model(user: Anyone, model_id: int) -> Model:
    """Return a model by its id, deleted ones too. Raises Missing where there is none that the user may see."""
    return require_row(
        _count_versions(user).filter(pk=model_id),
        f"There is no model {model_id} that you can access.",
        hint="List yours with `onnxfarm models`.",
    )


def versions_visible_to(user: Anyone) -> QuerySet[Version]:
    return _versions(user).filter(removed_at=None)


def version_ids_of_model_name(text: str) -> list[int]:
    """Return the ids of all versions whose model's name contains the text in any case, of all teams, deleted ones too.

    Queries use these ids as a list: PostgreSQL cannot estimate how many names contain a text, and a join with them
    reads everything of each model.
    """
    return list(Version.objects.filter(model__name__icontains=text).order_by().values_list("pk", flat=True))


def _versions(user: Anyone) -> QuerySet[Version]:
    related = Version.objects.visible_to(user).select_related(
        "model__team", "artifact__calibration", "uploaded_by", "evaluation__given"
    )
    return related.prefetch_related("artifact__files__blob")


def version(user: Anyone, version_id: int) -> Version:
    """Return a version by its id, deleted ones too. Raises Missing where there is none that the user may see."""
    return require_row(
        _versions(user).filter(pk=version_id),
        f"There is no version {version_id} that you can access.",
        hint="List yours with `onnxfarm models`.",
    )


def versions_of(model: Model, *, user: Anyone) -> QuerySet[Version]:
    return versions_visible_to(user).filter(model=model)


def newest_versions(model: Model, *, user: Anyone, limit: int) -> list[Version]:
    """List at most `limit` versions that were not deleted, the newest first.

    If there are more, versions of the model's main line are preferred to those of branches, however old they are.
    """
    chosen = versions_of(model, user=user).annotate(is_own=Q(branch="")).order_by("-is_own", "-pk")[:limit]
    return sorted(chosen, key=lambda version: -version.pk)


def removed_versions(model: Model, *, user: Anyone) -> QuerySet[Version]:
    return _versions(user).filter(model=model).exclude(removed_at=None)


def versions_with_same_bundle(version: Version, *, user: Anyone) -> list[Version]:
    """List other versions that the user may see, of any model, with the same model and external data, newest first.

    Deleted ones are left out, and at most MAX_DUPLICATES are listed.
    """
    same = versions_visible_to(user).filter(artifact__sha256=version.artifact.sha256).exclude(pk=version.pk)
    return list(same.defer("inspection").prefetch_related(None)[:MAX_DUPLICATES])


class Removal(NamedTuple):
    """The effect of a deletion. Versions without runs are deleted, and those that runs have measured are hidden.

    `unmeasured` and `measured` count them, and `runs` counts the runs of the measured ones. At most `unmeasured_bytes`
    are freed, as other versions may use the same files.
    """

    unmeasured: int
    unmeasured_bytes: int
    measured: int
    runs: int


def estimate_removal(model: Model, *, version: Version | None = None) -> Removal:
    """Estimate what deleting a model would do, or with `version` deleting only that version; delete nothing.

    Versions that were deleted before do not count.
    """
    rows = Version.objects.not_removed().filter(model=model, **({} if version is None else {"pk": version.pk}))
    counts = list(rows.order_by().annotate(run_count=Count("runs")).values_list("run_count", "artifact__bytes"))
    unmeasured = [size for count, size in counts if not count]
    runs = [count for count, _ in counts if count]
    return Removal(len(unmeasured), sum(unmeasured), len(runs), sum(runs))


def newest_version_states(models: Iterable[Model]) -> dict[int, str]:
    """Map model ids to the state of the newest version on the main line; models without versions are left out."""
    rows = Version.objects.not_removed().on_main_line().filter(model__in=list(models)).order_by("model", "number")
    return dict(rows.values_list("model", "state"))


def partial_upload(user: Anyone, key: str) -> PartialUpload:
    """Return one of the user's resumable uploads by its key, expired and completed ones too.

    Raises Missing where the user has none with this key.
    """
    rows = PartialUpload.objects.visible_to(user).select_related("team", "version__model__team")
    return require_row(rows.filter(key=key.replace("\x00", "")), "You have no such upload; start it again.")


def variants_of(artifact: Artifact) -> QuerySet[Variant]:
    return artifact.variants.select_related("derived").prefetch_related("derived__files__blob")


def variant(user: Anyone, variant_id: int) -> Variant:
    """Return a variant by its id, whatever its state. Raises Missing where there is none that the user may see."""
    related = ("artifact__team", "artifact__calibration", "derived", "report")
    rows = Variant.objects.filter(artifact__in=Artifact.objects.visible_to(user)).select_related(*related)
    return require_row(
        rows.filter(pk=variant_id),
        f"There is no variant {variant_id} that you can access.",
        hint="Models list theirs on their page.",
    )


def open_version_file(version: Version, name: str) -> BinaryIO:
    """Open a file of the upload by its name, reference data included; the caller has to check who may read it.

    Raises Missing where there is no such file, and Away where the bucket does not answer.
    """
    files = {file.name: file.blob.sha256 for file in version.artifact.files.all()}
    if name not in files:
        raise Missing(f"{version} has no file {name[:200]!r}: it has {', '.join(files) or 'none any more'}.")
    return open_stored_file(files[name])


def open_variant_file(variant: Variant, name: str) -> BinaryIO:
    """Open a file of the derived model by its name in the bundle; the caller has to check who may read it.

    Raises Missing where there is no such file or the variant is not made yet, and Away where the bucket does not
    answer.
    """
    files = ArtifactFile.objects.filter(artifact=variant.derived_id, role__in=BUNDLE_ROLES, name=name)
    file = files.select_related("blob").first()
    if file is None:
        raise Missing(f"Variant {variant.pk} has no file {name[:100]!r}.", hint="Its page lists its files.")
    return open_stored_file(file.blob.sha256)


def coverage_of(variant: Variant) -> list[Coverage]:
    return [Coverage.model_validate(coverage) for coverage in variant.coverage]


def quantised_report(variant: Variant) -> QuantisedReport | None:
    report = VariantReport.objects.filter(variant=variant).first()
    return QuantisedReport.model_validate(report.report_json) if report and report.report_json else None


def version_of_artifact(user: Anyone, artifact: Artifact) -> Version | None:
    return versions_visible_to(user).filter(artifact=artifact).first()


def evaluation_of(version: Version) -> EvaluationData | None:
    return getattr(version, "evaluation", None)


def prompts_ref(artifact: Artifact) -> FileRef | None:
    blob = artifact.prompts
    return FileRef(name=PROMPTS, sha256=blob.sha256, bytes=blob.bytes) if blob is not None else None


def find_stored_file(sha256: str) -> Path:
    """Return the path of a stored file with this digest, of any team; a file that only the bucket has is downloaded.

    The caller has to check who may read it. Raises Missing where there is no such file, and Away where the bucket does
    not answer.
    """
    for blob in Blob.objects.filter(sha256=sha256):
        path = storage.fetch_blob(team_id=blob.team_id, sha256=sha256)
        if path.is_file():
            return path
    raise Missing(f"There is no stored file {sha256[:12]}….")


def open_stored_file(sha256: str) -> BinaryIO:
    return find_stored_file(sha256).open("rb")


def inspection_of(version: Version) -> Inspection | None:
    return Inspection.model_validate(version.inspection) if version.inspection else None


def describe_uploaded_numbers(versions: Iterable[Version]) -> dict[int, str]:
    """Map the ids of uploaded versions to the name of their number format, as `fp16`.

    The name is empty where it is not known, for example before inspection.
    """
    facts = (f"inspection__{fact}" for fact in recipes.UPLOADED)
    rows = Version.objects.filter(pk__in=[version.pk for version in versions]).values_list("pk", *facts)
    return {key: recipes.describe_uploaded(*stored) for key, *stored in rows}


def model_facts(version: Version) -> ModelFacts:
    """Collect the facts of a version for planning. Raises Conflict for a version that inspection has not accepted."""
    inspection = inspection_of(version)
    if inspection is None:
        raise Conflict(f"{version} is {version.state}; it can be planned once it is inspected.", code="not_inspected")
    artifact = version.artifact
    facts = inspection.make_facts(
        artifact.bundle,
        name=version.model.name,
        inputs_sha256=artifact.inputs.sha256 if artifact.inputs else None,
        inputs_batch=artifact.inputs_batch,
    )
    data = {
        "prompts": PromptFacts.model_validate(stored) if (stored := artifact.prompts_json) else None,
        "calibration_sha256": artifact.calibration.sha256 if artifact.calibration else None,
        "calibration_problem": artifact.calibration_problem,
    }
    return facts.model_copy(update=data)
