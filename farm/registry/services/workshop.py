"""What the `prepare` workers make of pending rows, each step in the workshop's sandboxed child.

Versions are inspected first: pending → inspecting → ready | rejected; what came with an upload is accepted where names,
dtypes and shapes fit the model.
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
from farm.registry.services.uploads import store_artifact, store_blob
from farm.registry.states import FileRole, VersionState
from farm.registry.storage import fetch_blob, make_draft
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
    """Look into a pending version and write what was found; a second message for the same row does nothing."""
    rows = Version.objects.filter(pk=version_id, state=VersionState.PENDING)
    if not rows.update(state=VersionState.INSPECTING, tries=F("tries") + 1, asked_at=timezone.now()):
        return
    version = Version.objects.select_related("artifact__team", "model__team").get(pk=version_id)
    try:
        with keep_claim_alive(version):
            inspection, problem = _inspected(version)
    except Refusal as refusal:
        inspection, problem = None, str(refusal)
    except Exception:
        # whatever broke is ours, not the model's: the row must not wait for ever, and the log has the trace
        log.exception("inspection of version %s broke", version_id)
        inspection, problem = None, NOT_INSPECTED
    _write(version, inspection=inspection, problem=problem)


def _inspected(version: Version) -> tuple[dict[str, object] | None, str]:
    """What was found and no problem, or nothing and the problem in one sentence."""
    artifact = version.artifact
    with make_work_folder() as folder:
        out = folder / "out"
        out.mkdir()
        bundle = copy_artifact_into(artifact, folder / "bundle")
        found = orders.inspect(bundle, artifact.main, timeout_s=settings.INSPECTION_TIMEOUT_S, is_one_of_many=True)
        if found.problem is not None:
            return None, found.problem.text
        try:
            sizes = accept_given(ArtifactFolders(artifact=artifact, bundle=bundle, out=out))
            accept_prompts(ArtifactFolders(artifact=artifact, bundle=bundle, out=out))
        except orders.WorkshopError as problem:
            return None, problem.reason.text
        accept_calibration(ArtifactFolders(artifact=artifact, bundle=bundle, out=out))
        reach = orders.find_opset_range(bundle, artifact.main, is_one_of_many=True)
        if sizes is None:
            feed = orders.choose_feed(bundle, artifact.main, out_dir=out)
        else:
            feed = Feed(sizes=dict(sizes), inputs={port.name: fills.GIVEN for port in found.inputs})
        found = found.model_copy(update={"opset_reach": reach, "feed": feed})
    return found.model_dump(mode="json"), ""


def _write(version: Version, *, inspection: dict[str, object] | None, problem: str) -> None:
    state = VersionState.REJECTED if problem else VersionState.READY
    own = Version.objects.filter(pk=version.pk, state=VersionState.INSPECTING, tries=version.tries)
    with transaction.atomic():
        if own.update(state=state, inspection=inspection, problem=problem[:4000]):
            facts = {"problem": problem[:500]} if problem else {}
            if state == VersionState.READY:
                ensure_outline(version.artifact)
            record(verb=f"version {state}", subject=str(version), team=version.model.team, facts=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFolders:
    """Where an artifact is laid out, and where its child may write."""

    artifact: Artifact
    bundle: Path
    out: Path


def accept_given(bench: ArtifactFolders) -> Mapping[str, int] | None:
    """Checks the artifact's given inputs and keeps them, and its expected outputs, as `.npz` by name.

    The sizes of dynamic dimensions that they have; None where none were given.
    Raises orders.WorkshopError with the sentence that says what does not fit.
    """
    artifact = bench.artifact
    if not artifact.files_of(FileRole.INPUTS):
        return None
    given = _as_npz(bench, FileRole.INPUTS, side="input")
    accepted = orders.accept_inputs(bench.bundle, artifact.main, inputs=given, out_dir=bench.out)
    if artifact.inputs_id is not None:
        return accepted.sizes
    artifact.inputs = store_blob(team=artifact.team, draft=make_draft(accepted.path))
    artifact.inputs_batch = accepted.batch
    if artifact.files_of(FileRole.EXPECTED):
        expected = _as_npz(bench, FileRole.EXPECTED, side="output")
        artifact.expected = store_blob(team=artifact.team, draft=make_draft(expected))
    artifact.save(update_fields=["inputs", "inputs_batch", "expected"])
    return accepted.sizes


def accept_prompts(bench: ArtifactFolders) -> None:
    """Checks the artifact's given prompts and keeps them as one `.npz`.

    Raises orders.WorkshopError with the sentence that says what does not fit.
    """
    artifact = bench.artifact
    files = artifact.files_of(FileRole.PROMPTS)
    if not files or artifact.prompts_id is not None:
        return
    laid = _laid(bench, files[0], name="given-prompts.npz")
    accepted = orders.accept_prompts(bench.bundle, artifact.main, prompts=laid, out_dir=bench.out)
    blob = store_blob(team=artifact.team, draft=make_draft(accepted.path))
    known = PromptFacts(
        sha256=blob.sha256, rows=accepted.rows, tokens=accepted.tokens, text_tokens=accepted.text_tokens
    )
    artifact.prompts, artifact.prompts_json = blob, known.model_dump(mode="json")
    artifact.save(update_fields=["prompts", "prompts_json"])


def accept_calibration(bench: ArtifactFolders) -> None:
    """Checks the artifact's calibration data and keeps them as one `.npz`, or the sentence of why they cannot serve.

    They are `calibration.npz`; without it, every set of ONNX's own test data is a sample or a batch of them.
    """
    artifact = bench.artifact
    if artifact.calibration_id is not None or artifact.calibration_problem:
        return
    files = artifact.files_of(FileRole.CALIBRATION) or [
        file for file in artifact.files_of(FileRole.INPUTS) if not file.name.endswith(".npz")
    ]
    if not files:
        return
    archive = next((file for file in files if file.name.endswith(".npz")), None)
    data = _laid(bench, archive, name="calibration.npz") if archive else None
    sets = [] if archive else _sets(bench, files)
    try:
        accepted = orders.accept_calibration(bench.bundle, artifact.main, data=data, sets=sets, out_dir=bench.out)
    except orders.WorkshopError as problem:
        artifact.calibration_problem = problem.reason.text
    else:
        artifact.calibration = store_blob(team=artifact.team, draft=make_draft(accepted.path))
        artifact.calibration_samples = accepted.samples
    artifact.save(update_fields=["calibration", "calibration_samples", "calibration_problem"])


def _sets(bench: ArtifactFolders, files: list[ArtifactFile]) -> list[list[Path]]:
    """Test data by set and place, laid out beside the bundle."""
    found: dict[int, list[Path]] = {}
    for file in sorted(files, key=_place):
        number, index = _place(file)
        found.setdefault(number, []).append(_laid(bench, file, name=f"calibration-{number}-{index}.pb"))
    return list(found.values())


def _as_npz(bench: ArtifactFolders, role: FileRole, *, side: Side) -> Path:
    """The files of a role as one archive; of several test data sets the first."""
    files = bench.artifact.files_of(role)
    archives = [file for file in files if file.name.endswith(".npz")]
    if archives:
        return _laid(bench, archives[0], name=f"given-{side}s.npz")
    first = min(files, key=_place).name.partition("-")[0]
    chosen = sorted((file for file in files if file.name.partition("-")[0] == first), key=_place)
    laid = [_laid(bench, file, name=f"{side}_{number}.pb") for number, file in enumerate(chosen)]
    return orders.unpack_test_data(bench.bundle, bench.artifact.main, files=laid, side=side, out_dir=bench.out)


def _place(file: ArtifactFile) -> tuple[int, int]:
    folder, _, name = file.name.rpartition("-")
    return int(folder.rpartition("_")[2]), int(name.removesuffix(".pb").rpartition("_")[2])


def _laid(bench: ArtifactFolders, file: ArtifactFile, *, name: str) -> Path:
    target = bench.bundle.parent / name
    copy_file(fetch_blob(team_id=bench.artifact.team_id, sha256=file.blob.sha256), target)
    return target


def make_variant(variant_id: int) -> None:
    _work(Variant.objects.select_related("artifact__team").filter(pk=variant_id).first(), _make_variant)


def prepare_inputs(preparation_id: int) -> None:
    rows = Preparation.objects.select_related("artifact__team", "artifact__inputs", "artifact__expected")
    _work(rows.filter(pk=preparation_id).first(), _prepare)


def check_evaluation(evaluation_id: int) -> None:
    rows = EvaluationData.objects.select_related("version__artifact__team", "given")
    _work(rows.filter(pk=evaluation_id).first(), _check_evaluation)


def report_variant(report_id: int) -> None:
    rows = VariantReport.objects.select_related("variant__artifact__team", "variant__derived")
    _work(rows.filter(pk=report_id).first(), _report_variant)


def make_outline(outline_id: int) -> None:
    rows = Outline.objects.select_related("artifact__team")
    _work(rows.filter(pk=outline_id).first(), _make_outline, only_main=True)


def _work(row: Row | None, make: Callable[[Row, ArtifactFolders], None], *, only_main: bool = False) -> None:
    """Claim the row, make it, and write how it went. `only_main`: weights that lie outside the model are not needed."""

    def made(row: Row) -> None:
        with make_work_folder() as folder:
            out = folder / "out"
            out.mkdir()
            bundle = copy_artifact_into(row.artifact, folder / "bundle", only_main=only_main)
            make(row, ArtifactFolders(artifact=row.artifact, bundle=bundle, out=out))

    make_claimed_row(row, made)


def _make_variant(variant: Variant, bench: ArtifactFolders) -> None:
    made = orders.make_variant(
        bench.bundle,
        bench.artifact.main,
        recipe=variant.recipe,
        out_dir=bench.out,
        calibration=_calibration(variant, bench),
        timeout_s=settings.MAKING_TIMEOUT_S,
    )
    roles = {name: FileRole.MODEL if name == made.main else FileRole.DATA for name in made.files}
    parts = [Part(name, role, make_draft(made.folder / name)) for name, role in roles.items()]
    try:
        with transaction.atomic():
            variant.derived = store_artifact(team=bench.artifact.team, parts=parts)
    finally:
        for part in parts:
            part.draft.discard()
    variant.history = list(made.history)
    variant.coverage = [coverage.model_dump(mode="json") for coverage in made.coverage]


def _calibration(variant: Variant, bench: ArtifactFolders) -> Path | None:
    """The samples that the recipe names, laid out beside the bundle; None where it takes random ones or none."""
    named = variant.recipe.options.get(recipes.SAMPLES, recipes.RANDOM)
    if named == recipes.RANDOM:
        return None
    target = bench.bundle.parent / "calibration.npz"
    copy_file(fetch_blob(team_id=bench.artifact.team_id, sha256=named), target)
    return target


def _report_variant(report: VariantReport, bench: ArtifactFolders) -> None:
    variant = report.variant
    if variant.derived is None:
        raise Conflict(f"{variant} is {variant.state}: it can be analysed once it is ready.", code="not_ready")
    found = orders.report_quantised(
        bench.bundle,
        bench.artifact.main,
        variant_dir=copy_artifact_into(variant.derived, bench.bundle.parent / "variant"),
        out_dir=bench.out,
        data=_calibration(variant, bench),
    )
    report.report_json = found.model_dump(mode="json")


def _prepare(preparation: Preparation, bench: ArtifactFolders) -> None:
    workload, artifact = preparation.workload, bench.artifact
    if workload.inputs_sha256 is not None:
        preparation.inputs = artifact.team.blobs.get(sha256=workload.inputs_sha256)
        inputs = bench.bundle.parent / "inputs.npz"
        copy_file(fetch_blob(team_id=artifact.team_id, sha256=workload.inputs_sha256), inputs)
        if artifact.expected is not None and artifact.inputs == preparation.inputs:
            preparation.reference, preparation.reference_of = artifact.expected, GIVEN
            return
    else:
        prepared = orders.prepare_inputs(
            bench.bundle,
            artifact.main,
            out_dir=bench.out,
            batch=workload.batch,
            shapes=workload.shapes,
            seed=workload.seed,
            inputs=workload.inputs,
        )
        inputs = prepared.path
        preparation.inputs = _stored(artifact, inputs)
    _make_reference(preparation, bench, inputs=inputs)


def _make_reference(preparation: Preparation, bench: ArtifactFolders, *, inputs: Path) -> None:
    """The original's outputs; that there are none is said on the row, and parity is then not measured."""
    try:
        made = orders.make_reference(bench.bundle, bench.artifact.main, inputs=inputs, out_dir=bench.out)
    except orders.WorkshopError as problem:
        preparation.reference_problem = problem.reason.text
        return
    preparation.reference = _stored(bench.artifact, made.path)
    preparation.reference_of = made.made_by
    if made.skipped:
        preparation.reference_problem = f"No reference for {', '.join(made.skipped)}: they are not tensors."


def _check_evaluation(evaluation: EvaluationData, bench: ArtifactFolders) -> None:
    given = bench.bundle.parent / "evaluation.npz"
    copy_file(fetch_blob(team_id=bench.artifact.team_id, sha256=evaluation.given.sha256), given)
    checked = orders.check_evaluation(
        bench.bundle, bench.artifact.main, data=given, recipe=evaluation.recipe, out_dir=bench.out
    )
    evaluation.data = _stored(bench.artifact, checked.path)
    evaluation.samples, evaluation.classes, evaluation.output = checked.n, checked.classes, checked.output


def _make_outline(outline: Outline, bench: ArtifactFolders) -> None:
    made = orders.make_outline(bench.bundle, bench.artifact.main, out_dir=bench.out)
    outline.blob = _stored(bench.artifact, made)


def _stored(artifact: Artifact, path: Path) -> Blob:
    return store_blob(team=artifact.team, draft=make_draft(path))
