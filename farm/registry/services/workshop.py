"""Makes the pending rows of the `prepare` workers, each step in the workshop's sandboxed child process.

Versions are inspected first: pending → inspecting → ready | rejected. Data that came with an upload are accepted where
their names, dtypes and shapes fit the model.

The functions that take the id of a row do nothing unless that row is pending. They store an error as the reason of its
failure, and raise nothing.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from farm.accounts.services import record
from farm.base.refusals import Conflict, Refusal
from farm.registry.bundles import Part
from farm.registry.models import (
    Artifact,
    ArtifactFile,
    Blob,
    EvaluationData,
    Outline,
    Preparation,
    Variant,
    VariantReport,
    Version,
)
from farm.registry.services.products import ensure_outline, keep_claim_alive, make_claimed_row
from farm.registry.services.uploads import store_artifact, store_made_blob
from farm.registry.states import FileRole, VersionState
from farm.registry.storage import copy_to_draft, fetch_blob
from farm.registry.work_folders import copy_artifact_into, copy_file, make_work_folder
from farm.rules.cells import fills, recipes
from farm.rules.runtimes.models import PromptFacts
from farm.workshop import orders
from farm.workshop.inspection import Feed

log = logging.getLogger(__name__)
NOT_INSPECTED = "The farm could not inspect this model because of an internal error; upload it again later."
Side = Literal["input", "output"]
GIVEN = "expected"
Row = TypeVar("Row", Variant, Preparation, EvaluationData, VariantReport, Outline)


def inspect_version(version_id: int) -> None:
    """Inspect a pending version with its data, and store it as ready or rejected; order the outline of a ready one.

    The result is written to the audit log. Nothing is raised: a bug of the farm is logged, and rejects the version too.
    """
    rows = Version.objects.filter(pk=version_id, state=VersionState.PENDING)
    if not rows.update(state=VersionState.INSPECTING, tries=F("tries") + 1, asked_at=timezone.now()):
        return
    version = Version.objects.select_related("artifact__team", "model__team").get(pk=version_id)
    try:
        with keep_claim_alive(version):
            inspection, problem = _inspect(version)
    except Refusal as refusal:
        inspection, problem = None, str(refusal)
    except Exception:
        # a bug of the farm: log the trace, and end the row, which would wait for ever
        log.exception("inspection of version %s broke", version_id)
        inspection, problem = None, NOT_INSPECTED
    _record_inspection(version, inspection=inspection, problem=problem)


def _inspect(version: Version) -> tuple[dict[str, object] | None, str]:
    """Return the inspection and an empty text, or None and the problem in one sentence."""
    artifact = version.artifact
    with make_work_folder() as folder:
        out = folder / "out"
        out.mkdir()
        bundle = copy_artifact_into(artifact, folder / "bundle")
        inspection = orders.inspect(bundle, artifact.main, timeout_s=settings.INSPECTION_TIMEOUT_S, keep_alive=True)
        if inspection.problem is not None:
            return None, inspection.problem.text

        # check the data that came with the model
        folders = ArtifactFolders(artifact=artifact, bundle=bundle, out=out)
        try:
            sizes = accept_inputs(folders)
            accept_prompts(folders)
        except orders.WorkshopError as problem:
            return None, problem.reason.text
        accept_calibration(folders)

        # find out what the model can be converted to and fed with
        opset_range = orders.find_opset_range(bundle, artifact.main, keep_alive=True)
        if sizes is None:
            feed = orders.choose_feed(bundle, artifact.main, out_dir=out)
        else:
            feed = Feed(sizes=dict(sizes), inputs={port.name: fills.GIVEN for port in inspection.inputs})
        inspection = inspection.model_copy(update={"opset_reach": opset_range, "feed": feed})
    return inspection.model_dump(mode="json"), ""


def _record_inspection(version: Version, *, inspection: dict[str, object] | None, problem: str) -> None:
    state = VersionState.REJECTED if problem else VersionState.READY
    current = Version.objects.filter(pk=version.pk, state=VersionState.INSPECTING, tries=version.tries)
    with transaction.atomic():
        if current.update(state=state, inspection=inspection, problem=problem[:4000]):
            facts = {"problem": problem[:500]} if problem else {}
            if state == VersionState.READY:
                ensure_outline(version.artifact)
            record(verb=f"version {state}", subject=str(version), team=version.model.team, facts=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFolders:
    """The folder with copies of an artifact's files, and the folder that the child process may write to."""

    artifact: Artifact
    bundle: Path
    out: Path


def accept_inputs(folders: ArtifactFolders) -> Mapping[str, int] | None:
    """Check the inputs that came with the artifact, and store them and the expected outputs as `.npz`.

    Of several sets of test data only the first is used. Inputs that were stored before are only checked again. Return
    by name the sizes that the inputs give to dynamic dimensions; None where no inputs came. Raises orders.WorkshopError
    where the inputs do not fit the model.
    """
    artifact = folders.artifact
    if not artifact.files_of(FileRole.INPUTS):
        return None
    inputs = _make_npz(folders, FileRole.INPUTS, side="input")
    accepted = orders.accept_inputs(folders.bundle, artifact.main, inputs=inputs, out_dir=folders.out)
    if artifact.inputs_id is not None:
        return accepted.sizes
    artifact.inputs = store_made_blob(team=artifact.team, draft=copy_to_draft(accepted.path))
    artifact.inputs_batch = accepted.batch
    if artifact.files_of(FileRole.EXPECTED):
        expected = _make_npz(folders, FileRole.EXPECTED, side="output")
        artifact.expected = store_made_blob(team=artifact.team, draft=copy_to_draft(expected))
    artifact.save(update_fields=["inputs", "inputs_batch", "expected"])
    return accepted.sizes


def accept_prompts(folders: ArtifactFolders) -> None:
    """Check the prompts that came with the artifact and store them as one `.npz`, unless that was done before.

    Raises orders.WorkshopError where they do not fit the model.
    """
    artifact = folders.artifact
    files = artifact.files_of(FileRole.PROMPTS)
    if not files or artifact.prompts_id is not None:
        return
    prompts = _copy_beside_bundle(folders, files[0], name="given-prompts.npz")
    accepted = orders.accept_prompts(folders.bundle, artifact.main, prompts=prompts, out_dir=folders.out)
    blob = store_made_blob(team=artifact.team, draft=copy_to_draft(accepted.path))
    facts = PromptFacts(
        sha256=blob.sha256, rows=accepted.rows, tokens=accepted.tokens, text_tokens=accepted.text_tokens
    )
    artifact.prompts, artifact.prompts_json = blob, facts.model_dump(mode="json")
    artifact.save(update_fields=["prompts", "prompts_json"])


def accept_calibration(folders: ArtifactFolders) -> None:
    """Check the calibration data that came with the artifact, and store them as one `.npz`, or else their problem.

    The data are `calibration.npz`, or without it every set of ONNX's own test data. Data that do not fit the model
    raise no error. Nothing happens without data, or where they were checked before.
    """
    artifact = folders.artifact
    if artifact.calibration_id is not None or artifact.calibration_problem:
        return
    files = artifact.files_of(FileRole.CALIBRATION) or [
        file for file in artifact.files_of(FileRole.INPUTS) if not file.name.endswith(".npz")
    ]
    if not files:
        return
    archive = next((file for file in files if file.name.endswith(".npz")), None)
    data = _copy_beside_bundle(folders, archive, name="calibration.npz") if archive else None
    sets = [] if archive else _copy_test_sets(folders, files)
    try:
        accepted = orders.accept_calibration(folders.bundle, artifact.main, data=data, sets=sets, out_dir=folders.out)
    except orders.WorkshopError as problem:
        artifact.calibration_problem = problem.reason.text
    else:
        artifact.calibration = store_made_blob(team=artifact.team, draft=copy_to_draft(accepted.path))
        artifact.calibration_samples = accepted.samples
    artifact.save(update_fields=["calibration", "calibration_samples", "calibration_problem"])


def _copy_test_sets(folders: ArtifactFolders, files: list[ArtifactFile]) -> list[list[Path]]:
    """Copy test data beside the bundle; return their paths by set, in the order of the inputs."""
    sets: dict[int, list[Path]] = {}
    for file in sorted(files, key=_parse_place):
        number, index = _parse_place(file)
        sets.setdefault(number, []).append(_copy_beside_bundle(folders, file, name=f"calibration-{number}-{index}.pb"))
    return list(sets.values())


def _make_npz(folders: ArtifactFolders, role: FileRole, *, side: Side) -> Path:
    """Make one `.npz` of the files of a role; of several sets of test data only the first one is used."""
    files = folders.artifact.files_of(role)
    archives = [file for file in files if file.name.endswith(".npz")]
    if archives:
        return _copy_beside_bundle(folders, archives[0], name=f"given-{side}s.npz")
    first = min(files, key=_parse_place).name.partition("-")[0]
    chosen = sorted((file for file in files if file.name.partition("-")[0] == first), key=_parse_place)
    copies = [_copy_beside_bundle(folders, file, name=f"{side}_{number}.pb") for number, file in enumerate(chosen)]
    return orders.unpack_test_data(folders.bundle, folders.artifact.main, files=copies, side=side, out_dir=folders.out)


def _parse_place(file: ArtifactFile) -> tuple[int, int]:
    folder, _, name = file.name.rpartition("-")
    return int(folder.rpartition("_")[2]), int(name.removesuffix(".pb").rpartition("_")[2])


def _copy_beside_bundle(folders: ArtifactFolders, file: ArtifactFile, *, name: str) -> Path:
    target = folders.bundle.parent / name
    copy_file(fetch_blob(team_id=folders.artifact.team_id, sha256=file.blob.sha256), target)
    return target


def make_variant(variant_id: int) -> None:
    _make_in_folder(Variant.objects.select_related("artifact__team").filter(pk=variant_id).first(), _make_variant)


def prepare_inputs(preparation_id: int) -> None:
    rows = Preparation.objects.select_related("artifact__team", "artifact__inputs", "artifact__expected")
    _make_in_folder(rows.filter(pk=preparation_id).first(), _make_preparation)


def check_evaluation(evaluation_id: int) -> None:
    rows = EvaluationData.objects.select_related("version__artifact__team", "given")
    _make_in_folder(rows.filter(pk=evaluation_id).first(), _check_evaluation)


def report_variant(report_id: int) -> None:
    rows = VariantReport.objects.select_related("variant__artifact__team", "variant__derived")
    _make_in_folder(rows.filter(pk=report_id).first(), _report_variant)


def make_outline(outline_id: int) -> None:
    rows = Outline.objects.select_related("artifact__team")
    _make_in_folder(rows.filter(pk=outline_id).first(), _make_outline, only_main=True)


def _make_in_folder(row: Row | None, make: Callable[[Row, ArtifactFolders], None], *, only_main: bool = False) -> None:
    """Claim the row, make it in a folder with the artifact's files, and store it as ready or failed.

    With `only_main` the folder has the model without its external data.
    """

    def make_in_folder(row: Row) -> None:
        with make_work_folder() as folder:
            out = folder / "out"
            out.mkdir()
            bundle = copy_artifact_into(row.artifact, folder / "bundle", only_main=only_main)
            make(row, ArtifactFolders(artifact=row.artifact, bundle=bundle, out=out))

    make_claimed_row(row, make_in_folder)


def _make_variant(variant: Variant, folders: ArtifactFolders) -> None:
    variant_files = orders.make_variant(
        folders.bundle,
        folders.artifact.main,
        recipe=variant.recipe,
        out_dir=folders.out,
        calibration=_copy_samples(variant, folders),
        timeout_s=settings.MAKING_TIMEOUT_S,
    )
    roles = {name: FileRole.MODEL if name == variant_files.main else FileRole.DATA for name in variant_files.files}
    parts = [Part(name, role, copy_to_draft(variant_files.folder / name)) for name, role in roles.items()]
    try:
        with transaction.atomic():
            variant.derived = store_artifact(team=folders.artifact.team, parts=parts)
    finally:
        for part in parts:
            part.draft.discard()
    variant.history = list(variant_files.history)
    variant.coverage = [coverage.model_dump(mode="json") for coverage in variant_files.coverage]


def _copy_samples(variant: Variant, folders: ArtifactFolders) -> Path | None:
    """Copy the calibration samples that the recipe names beside the bundle; None where it names none."""
    samples_sha256 = variant.recipe.options.get(recipes.SAMPLES, recipes.RANDOM)
    if samples_sha256 == recipes.RANDOM:
        return None
    target = folders.bundle.parent / "calibration.npz"
    copy_file(fetch_blob(team_id=folders.artifact.team_id, sha256=samples_sha256), target)
    return target


def _report_variant(report: VariantReport, folders: ArtifactFolders) -> None:
    variant = report.variant
    if variant.derived is None:
        raise Conflict(f"{variant} is {variant.state}: it can be analysed once it is ready.", code="not_ready")
    quantised = orders.report_quantised(
        folders.bundle,
        folders.artifact.main,
        variant_dir=copy_artifact_into(variant.derived, folders.bundle.parent / "variant"),
        out_dir=folders.out,
        data=_copy_samples(variant, folders),
    )
    report.report_json = quantised.model_dump(mode="json")


def _make_preparation(preparation: Preparation, folders: ArtifactFolders) -> None:
    workload, artifact = preparation.workload, folders.artifact
    if workload.inputs_sha256 is not None:
        preparation.inputs = artifact.team.blobs.get(sha256=workload.inputs_sha256)
        inputs = folders.bundle.parent / "inputs.npz"
        copy_file(fetch_blob(team_id=artifact.team_id, sha256=workload.inputs_sha256), inputs)
        if artifact.expected is not None and artifact.inputs == preparation.inputs:
            preparation.reference, preparation.reference_of = artifact.expected, GIVEN
            return
    else:
        prepared = orders.prepare_inputs(
            folders.bundle,
            artifact.main,
            out_dir=folders.out,
            batch=workload.batch,
            shapes=workload.shapes,
            seed=workload.seed,
            inputs=workload.inputs,
        )
        inputs = prepared.path
        preparation.inputs = _store_file(artifact, inputs)
    _make_reference(preparation, folders, inputs=inputs)


def _make_reference(preparation: Preparation, folders: ArtifactFolders, *, inputs: Path) -> None:
    """Make the reference outputs with the original model; if that fails, store why: parity is not measured then."""
    try:
        reference = orders.make_reference(folders.bundle, folders.artifact.main, inputs=inputs, out_dir=folders.out)
    except orders.WorkshopError as problem:
        preparation.reference_problem = problem.reason.text
        return
    preparation.reference = _store_file(folders.artifact, reference.path)
    preparation.reference_of = reference.made_by
    if reference.skipped:
        preparation.reference_problem = f"No reference for {', '.join(reference.skipped)}: they are not tensors."


def _check_evaluation(evaluation: EvaluationData, folders: ArtifactFolders) -> None:
    data = folders.bundle.parent / "evaluation.npz"
    copy_file(fetch_blob(team_id=folders.artifact.team_id, sha256=evaluation.given.sha256), data)
    checked = orders.check_evaluation(
        folders.bundle, folders.artifact.main, data=data, recipe=evaluation.recipe, out_dir=folders.out
    )
    evaluation.data = _store_file(folders.artifact, checked.path)
    evaluation.samples, evaluation.classes, evaluation.output = checked.n, checked.classes, checked.output


def _make_outline(outline: Outline, folders: ArtifactFolders) -> None:
    path = orders.make_outline(folders.bundle, folders.artifact.main, out_dir=folders.out)
    outline.blob = _store_file(folders.artifact, path)


def _store_file(artifact: Artifact, path: Path) -> Blob:
    return store_made_blob(team=artifact.team, draft=copy_to_draft(path))
