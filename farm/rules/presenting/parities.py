"""Compares a cell's outputs with those of other engines, models and unoptimised runs, and describes the result."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from farm.contract import document as doc
from farm.contract import document_cells as doc_cells
from farm.contract.cells import CellSpec, Recipe
from farm.contract.reports import CheckReport, EnginePair, EnginesReport, OutputParity
from farm.rules.cells.commands import diverge_command
from farm.rules.cells.label import WORKLOAD
from farm.rules.planning.plans import Arm, PlannedBlock
from farm.rules.presenting.lines import is_wrong
from farm.rules.quality import parity
from farm.rules.quality.parity import LEVELS, Judgement, Preset
from farm.rules.runtimes.models import ModelFacts

CPU = "CPUExecutionProvider"
UNOPTIMISED = "the same runtime without optimisations"
# the end of a reference's name: `onnxruntime==1.31.1 CPU, no optimisations`
UNOPTIMISED_CPU = " CPU, no optimisations"


def compare_engines(
    arm: Arm, report: EnginesReport | None, block: PlannedBlock, *, model: ModelFacts, labelled: Collection[int] = ()
) -> list[doc_cells.EngineParity]:
    """Compare a cell with each earlier cell of its block that was given the same inputs.

    `labelled` are the arms, by number, whose accuracy on labelled data is known: outputs of two models are not judged
    where it has both. Where the report has a reason, the only entry is `not_measured` with that reason, against the
    first cell. The list is empty without a report.
    """
    if report is None:
        return []
    arms = block.arms
    if report.reason is not None:
        if arm.arm == 0:
            return []
        return [doc_cells.EngineParity(cell=arms[0].id, verdict="not_measured", text=report.reason.text)]
    return [
        _compare_pair(pair, block, model=model, are_labelled={pair.one, pair.other} <= set(labelled))
        for pair in report.pairs
        if pair.other == arm.arm and pair.one < len(arms)
    ]


def make_diverge_command(spec: CellSpec, main: str, *, against: CellSpec | None = None) -> str:
    """Return the command that finds the first node whose outputs differ from the reference's, or from `against`.

    It is empty where no command can: `against` has to be the same file on the CPU provider, fully optimised.
    """
    if against is None:
        return diverge_command(spec, main, against=None)
    is_plain = against.provider == CPU and against.session.optimization == "all"
    is_same_file = (against.artifact_sha256, against.recipe) == (spec.artifact_sha256, spec.recipe)
    return diverge_command(spec, main, against=against.runtime) if is_plain and is_same_file else ""


def compare_with_unoptimised(check: CheckReport | None, *, preset: Preset) -> doc_cells.Parity | None:
    """Compare a cell with its own runtime without optimisations; None where that was not run.

    Any preset but those of FP16 and BF16 is replaced by LEVELS.
    """
    if check is None or not check.unoptimised:
        return None
    preset = preset if preset in (parity.FP16, parity.BF16) else LEVELS
    judgement = parity.judge(check.unoptimised, preset).with_reference_named(UNOPTIMISED)
    return _make_parity(judgement, preset, check.unoptimised, reference=UNOPTIMISED)


def replace_reference(spec: CellSpec, check: CheckReport) -> doc_cells.Parity | None:
    """Return the parity with the cell's own runtime without optimisations, in place of a missing reference.

    Return None for a variant, where there is a reference, and where the outputs differ: they may still be within a
    wider tolerance, so they are not judged.
    """
    if spec.recipe != Recipe() or any(output.reference_shape is not None for output in check.outputs):
        return None
    passed = compare_with_unoptimised(check, preset=LEVELS)
    if passed is None or passed.verdict != "pass":
        return None
    return passed.model_copy(update={"reference": f"{spec.runtime}{UNOPTIMISED_CPU}"})


def describe_reference(result: doc_cells.Parity) -> str:
    """Say what passing outputs were compared with: `same as unoptimised 1.31.1`, or `close to` it where no absolute
    tolerance was given; empty for outputs that did not pass, and without a named reference."""
    reference = result.reference or ""
    if result.verdict != "pass" or not reference:
        return ""
    if reference.endswith(UNOPTIMISED_CPU):
        release = reference.removesuffix(UNOPTIMISED_CPU).removeprefix("onnxruntime==")
        reference = f"unoptimised {release}"
    return f"{'same as' if result.atol is not None else 'close to'} {reference}"


def ran_in_other_precision(cell: doc_cells.Cell) -> bool:
    """Whether a cell ran in a precision that is neither the requested one nor that of the upload; False if unknown."""
    return cell.executed_precision not in (None, "", cell.precision, cell.uploaded)


def make_parity_outputs(outputs: Sequence[OutputParity]) -> list[doc_cells.ParityOutput]:
    """Return the outputs that were compared, in the form of the document."""
    fields = set(doc_cells.ParityOutput.model_fields)
    return [
        doc_cells.ParityOutput(**output.model_dump(include=fields))
        for output in outputs
        if output.reference_shape is not None
    ]


def _compare_pair(
    pair: EnginePair, block: PlannedBlock, *, model: ModelFacts, are_labelled: bool
) -> doc_cells.EngineParity:
    """Compare the outputs of two cells: those of two models by their tolerances, those of one by the precision's."""
    first, second = block.arms[pair.one], block.arms[pair.other]
    if model.draws:
        return doc_cells.EngineParity(cell=first.id, text=parity.judge_random_model(model.draws).text, unjudged=True)
    if first.spec.artifact_sha256 != second.spec.artifact_sha256:
        preset = parity.ANY
        judgement = parity.judge_models(
            pair.outputs, by_output=parity.presets_from_tolerances(block.tolerances), is_labelled=are_labelled
        ).with_reference_named(f"{first.id}'s")
    else:
        preset = parity.preset_between(first.spec, second.spec, model.uploaded)
        judgement = parity.judge(pair.outputs, preset).with_reference_named(f"{first.id}'s")
    fields = dict(_make_parity(judgement, preset, pair.outputs, reference=f"{first.id}, {first.spec.runtime}"))
    fields["renamed"] = {output.reference_name: output.name for output in pair.outputs if output.reference_name}
    if judgement.verdict == "fail":
        fields["command"] = make_diverge_command(second.spec, model.main, against=first.spec)
    elif judgement.verdict == "pass":
        # The text is enough to describe outputs that pass.
        fields["outputs"] = []
    return doc_cells.EngineParity(**fields, cell=first.id)


def _make_parity(
    judgement: Judgement, preset: Preset, outputs: Sequence[OutputParity], *, reference: str
) -> doc_cells.Parity:
    preset = judgement.preset or preset
    is_elementwise = preset.min_cosine is None and preset is not parity.ANY
    return doc_cells.Parity(
        verdict=judgement.verdict,
        text=judgement.text,
        reference=reference,
        atol=preset.atol if is_elementwise else None,
        rtol=preset.rtol if is_elementwise else None,
        outputs=make_parity_outputs(outputs),
        unjudged=judgement.is_unjudged,
    )


class ChangedOutputs(NamedTuple):
    """Two cells that differ only in the runtime, and the parity of their outputs, which differ."""

    old: doc_cells.Cell
    new: doc_cells.Cell
    parity: doc_cells.EngineParity


def find_changed_outputs(document: doc.Document) -> list[ChangedOutputs]:
    """Find the pairs of cells of one model that differ only in the runtime and whose outputs were judged to differ."""
    cells = {cell.id: cell for cell in document.cells}
    same = ("model_sha256", *(field for axis in WORKLOAD for field in axis.fields))
    return [
        ChangedOutputs(other, cell, pair)
        for cell in document.cells
        for pair in cell.engines
        if pair.verdict == "fail"
        and (other := cells.get(pair.cell)) is not None
        and other.runtime != cell.runtime
        and all(getattr(other, field) == getattr(cell, field) for field in same)
    ]


def describe_changed_outputs(document: doc.Document) -> str:
    """Say that outputs changed between runtimes, with the first such pair of cells; empty where none did."""
    changes = find_changed_outputs(document)
    if not changes:
        return ""
    old, new, parity = changes[0]
    more = f" (and {len(changes) - 1} more pairs)" if len(changes) > 1 else ""
    return f"The outputs changed between {_name_release(old, new)} and {_name_release(new, old)}{more}: {parity.text}"


def describe_model_outputs(document: doc.Document) -> str:
    """Say whether the outputs of two models agree, by the first pair that fails, or else the first of all.

    Where labelled data judge the pair, say what they show. Return an empty string where no models are compared, and
    where the headline already says that the outputs are wrong.
    """
    cells = {cell.id: cell for cell in document.cells}
    pairs = [
        (cells[comparison.candidate], pair)
        for comparison in document.comparisons
        if comparison.axis == "model" and comparison.candidate in cells
        for pair in cells[comparison.candidate].engines
        if pair.cell == comparison.baseline
    ]
    if not pairs:
        return ""
    cell, pair = min(pairs, key=lambda entry: entry[1].verdict != "fail")
    accuracy = cell.accuracy
    if pair.verdict == "fail" or accuracy is None or accuracy.baseline != pair.cell:
        return pair.text
    return "" if is_wrong(cell) else accuracy.text


def _name_release(cell: doc_cells.Cell, beside: doc_cells.Cell) -> str:
    is_same = cell.runtime.distribution == beside.runtime.distribution
    return cell.runtime.version if is_same else str(cell.runtime)
