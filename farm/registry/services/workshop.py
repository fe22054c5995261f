"""What the `prepare` workers make of pending rows, each step in the workshop's sandboxed child."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.db import transaction

from farm.base.refusals import Conflict
from farm.registry.bundles import Part
from farm.registry.models import Artifact, Blob, EvaluationData, Outline, Preparation, Variant, VariantReport
from farm.registry.services.given import Bench
from farm.registry.services.pending_rows import carry_out
from farm.registry.services.room import store_blob
from farm.registry.services.uploads import store_artifact
from farm.registry.states import FileRole
from farm.registry.storage import draft_of, fetched
from farm.registry.workbench import bench, copy, lay_out
from farm.rules.cells import recipes
from farm.workshop import orders

GIVEN = "expected"
Row = TypeVar("Row", Variant, Preparation, EvaluationData, VariantReport, Outline)


def make_variant(variant_id: int) -> None:
    """Make a pending variant; a second message for the same row does nothing."""
    _work(Variant.objects.select_related("artifact__team").filter(pk=variant_id).first(), _make_variant)


def prepare_inputs(preparation_id: int) -> None:
    """Make the inputs and the reference of a pending preparation; a second message does nothing."""
    rows = Preparation.objects.select_related("artifact__team", "artifact__inputs", "artifact__expected")
    _work(rows.filter(pk=preparation_id).first(), _prepare)


def check_evaluation(evaluation_id: int) -> None:
    """Look at pending labelled data; a second message does nothing."""
    rows = EvaluationData.objects.select_related("version__artifact__team", "given")
    _work(rows.filter(pk=evaluation_id).first(), _check_evaluation)


def report_variant(report_id: int) -> None:
    """Look into what quantisation did to a variant; a second message does nothing."""
    rows = VariantReport.objects.select_related("variant__artifact__team", "variant__derived")
    _work(rows.filter(pk=report_id).first(), _report_variant)


def make_outline(outline_id: int) -> None:
    """Make the pending outline of an artifact's graph; a second message does nothing."""
    rows = Outline.objects.select_related("artifact__team")
    _work(rows.filter(pk=outline_id).first(), _make_outline, only_main=True)


def _work(row: Row | None, make: Callable[[Row, Bench], None], *, only_main: bool = False) -> None:
    """Claim the row, make it, and write how it went. `only_main`: weights that lie outside the model are not needed."""

    def made(row: Row) -> None:
        with bench() as folder:
            make(row, _set_up(row.artifact, folder, only_main=only_main))

    carry_out(row, made)


def _set_up(artifact: Artifact, folder: Path, *, only_main: bool) -> Bench:
    out = folder / "out"
    out.mkdir()
    return Bench(artifact=artifact, bundle=lay_out(artifact, folder / "bundle", only_main=only_main), out=out)


def _make_variant(variant: Variant, bench: Bench) -> None:
    made = orders.make_variant(
        bench.bundle,
        bench.artifact.main,
        recipe=variant.recipe,
        out_dir=bench.out,
        calibration=_calibration(variant, bench),
        timeout_s=settings.MAKING_TIMEOUT_S,
    )
    parts = _parts(made)
    try:
        with transaction.atomic():
            variant.derived = store_artifact(team=bench.artifact.team, parts=parts)
    finally:
        for part in parts:
            part.draft.discard()
    variant.history = list(made.history)
    variant.coverage = [one.model_dump(mode="json") for one in made.coverage]


def _calibration(variant: Variant, bench: Bench) -> Path | None:
    """The samples that the recipe names, laid out beside the bundle; None where it takes random ones or none."""
    named = variant.recipe.options.get(recipes.SAMPLES, recipes.RANDOM)
    if named == recipes.RANDOM:
        return None
    target = bench.bundle.parent / "calibration.npz"
    copy(fetched(team_id=bench.artifact.team_id, sha256=named), target)
    return target


def _report_variant(report: VariantReport, bench: Bench) -> None:
    variant = report.variant
    if variant.derived is None:
        raise Conflict(f"{variant} is {variant.state}: it can be analysed once it is ready.", code="not_ready")
    found = orders.report_quantised(
        bench.bundle,
        bench.artifact.main,
        variant_dir=lay_out(variant.derived, bench.bundle.parent / "variant"),
        out_dir=bench.out,
        data=_calibration(variant, bench),
    )
    report.report_json = found.model_dump(mode="json")


def _parts(made: orders.Variant) -> list[Part]:
    """The files of a made variant as parts of an artifact, the model first."""
    roles = {name: FileRole.MODEL if name == made.main else FileRole.DATA for name in made.files}
    return [Part(name, role, draft_of(made.folder / name)) for name, role in roles.items()]


def _prepare(preparation: Preparation, bench: Bench) -> None:
    workload, artifact = preparation.workload, bench.artifact
    if workload.inputs_sha256 is not None:
        preparation.inputs = artifact.team.blobs.get(sha256=workload.inputs_sha256)
        inputs = bench.bundle.parent / "inputs.npz"
        copy(fetched(team_id=artifact.team_id, sha256=workload.inputs_sha256), inputs)
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
        preparation.inputs = _kept(artifact, inputs)
    _make_reference(preparation, bench, inputs=inputs)


def _make_reference(preparation: Preparation, bench: Bench, *, inputs: Path) -> None:
    """The original's outputs; that there are none is said on the row, and parity is then not measured."""
    try:
        made = orders.make_reference(bench.bundle, bench.artifact.main, inputs=inputs, out_dir=bench.out)
    except orders.WorkshopError as problem:
        preparation.reference_problem = problem.reason.text
        return
    preparation.reference = _kept(bench.artifact, made.path)
    preparation.reference_of = made.made_by
    if made.skipped:
        preparation.reference_problem = f"No reference for {', '.join(made.skipped)}: they are not tensors."


def _check_evaluation(evaluation: EvaluationData, bench: Bench) -> None:
    given = bench.bundle.parent / "evaluation.npz"
    copy(fetched(team_id=bench.artifact.team_id, sha256=evaluation.given.sha256), given)
    checked = orders.check_evaluation(
        bench.bundle, bench.artifact.main, data=given, recipe=evaluation.recipe, out_dir=bench.out
    )
    evaluation.data = _kept(bench.artifact, checked.path)
    evaluation.samples, evaluation.classes, evaluation.output = checked.n, checked.classes, checked.output


def _make_outline(outline: Outline, bench: Bench) -> None:
    made = orders.make_outline(bench.bundle, bench.artifact.main, out_dir=bench.out)
    outline.blob = _kept(bench.artifact, made)


def _kept(artifact: Artifact, path: Path) -> Blob:
    return store_blob(team=artifact.team, draft=draft_of(path))
