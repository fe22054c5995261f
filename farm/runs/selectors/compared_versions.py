"""Finds the versions that a run measures side by side, and their facts for planning and documents.

Their prompts are mapped by sha256; versions without prompts are left out.
"""

import re
from collections.abc import Mapping, Sequence

from farm.accounts.selectors import Anyone
from farm.base.refusals import Invalid
from farm.contract.cells import FileRef
from farm.registry.models import EvaluationData, Model, Version
from farm.registry.selectors import evaluation_of, model_facts, prompts_ref
from farm.registry.states import VersionState
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.settings import PREVIOUS
from farm.rules.planning.beside import align_models
from farm.rules.runtimes.models import ModelFacts
from farm.runs.models import Comparison, Run

_NAMED = re.compile(r"(?P<model>.+)@v?(?P<number>\d{1,9})")


def list_other_versions(version: Version, matrix: Matrix) -> list[Version]:
    """List the other versions that the matrix names, in its order. All are of the team of `version`.

    Raises Invalid for a name that the team has no version of, for `previous` if there is no earlier accepted version,
    and for a version with the same files as another.
    """
    sides = [version]
    for name in matrix.models:
        named = previous_version(version) if name == PREVIOUS else _find_version(version, name)
        if named is None:
            problem = f"which team “{version.model.team.name}” does not have."
            if name == PREVIOUS:
                problem = f"and {version} has no version before it that was accepted."
            hint = "NAME@VERSION names one; `onnxfarm models` lists them."
            raise Invalid(f"models names {name}, {problem}", code="models", hint=hint)
        if twin := next((side for side in sides if side.artifact_id == named.artifact_id), None):
            problem = "is the version that is measured" if twin.pk == named.pk else f"has the same files as {twin}"
            raise Invalid(f"models names {name}, which {problem}: there is nothing to compare.", code="models")
        sides.append(named)
    return sides[1:]


def previous_version(version: Version) -> Version | None:
    """Find the newest accepted version before this one, on the model's main line and with other files, or None."""
    accepted = version.model.versions.not_removed().on_main_line().filter(state=VersionState.READY)
    before = accepted.filter(number__lt=version.number).exclude(artifact=version.artifact_id)
    return before.select_related("model__team", "artifact").order_by("-number").first()


def _find_version(version: Version, name: str) -> Version | None:
    match = _NAMED.fullmatch(name)
    rows = Version.objects.not_removed().filter(model__team=version.model.team_id, model__removed_at=None)
    named = rows.filter(model__name=match["model"], number=int(match["number"])) if match else rows.none()
    return named.select_related("model__team", "artifact").first()


def compared_with_before(user: Anyone, model: Model) -> dict[int, Comparison]:
    """Map version numbers to their newest comparison with another version of the model as the baseline.

    Only runs that the user may see are read. Versions that were never compared so are left out.
    """
    runs = Run.objects.visible_to(user).filter(version__model=model, beside__version__model=model)
    rows = Comparison.objects.filter(
        axis="model",
        # read first: these runs are few, and a database that joins all at once scans the arms of every run
        run__in=list(runs.values_list("pk", flat=True)),
        candidate__cell__beside=None,
        candidate__twin_of=None,
        baseline__cell__beside__version__model=model,
    )
    related = ("run__version", "baseline__cell__beside__version", "candidate__cell")
    newest = rows.select_related(*related).defer("operators", "run__matrix").order_by("pk")
    return {row.run.version.number: row for row in newest}


def collect_model_facts(versions: Sequence[Version]) -> list[ModelFacts]:
    """Collect the facts of versions measured side by side, in their order, for planning and documents.

    Of several versions, each gets its own name, and if all take the same inputs, all use the inputs and prompts that
    were uploaded with the last version that has some.
    """
    if len(versions) == 1:
        return [model_facts(versions[0])]
    named = _collect_named_facts(versions)
    aligned, difference = align_models(named)
    return aligned if difference else [facts.model_copy(update=_choose_uploads(named)) for facts in aligned]


def explain_different_inputs(versions: Sequence[Version]) -> str:
    """Say how the inputs of these versions differ; empty if all take the same."""
    return align_models(_collect_named_facts(versions))[1]


def _collect_named_facts(versions: Sequence[Version]) -> list[ModelFacts]:
    return [model_facts(version).model_copy(update={"name": str(version)}) for version in versions]


def _choose_uploads(all_facts: Sequence[ModelFacts]) -> dict[str, object]:
    """Return the fields for the uploaded inputs and prompts of the last version that has some."""
    last_first = all_facts[::-1]
    with_inputs = next((facts for facts in last_first if facts.inputs_sha256), last_first[0])
    with_prompts = next((facts for facts in last_first if facts.prompts), last_first[0])
    chosen: dict[str, object] = {"inputs_sha256": with_inputs.inputs_sha256, "prompts": with_prompts.prompts}
    sizes = {"inputs_batch": with_inputs.inputs_batch, "sizes": with_inputs.sizes}
    return chosen | sizes if with_inputs.inputs_sha256 else chosen


def find_evaluation(versions: Sequence[Version]) -> EvaluationData | None:
    """Return the labelled data of the last of these versions that has data ready to be judged on; None if none has."""
    return next((data for version in versions[::-1] if (data := evaluation_of(version)) and data.order), None)


def map_prompts(versions: Sequence[Version]) -> Mapping[str, FileRef]:
    return {ref.sha256: ref for version in versions if (ref := prompts_ref(version.artifact)) is not None}
