"""Makes what a document says of a cell's outputs beyond the reference: other engines, no optimisations, and models."""

from collections.abc import Collection, Sequence

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


def compare_engines(
    arm: Arm, report: EnginesReport | None, block: PlannedBlock, *, model: ModelFacts, labelled: Collection[int] = ()
) -> list[doc_cells.EngineParity]:
    """Compare the cell with each earlier cell of its block that was given the same inputs.

    A report with a reason makes a single entry, of what was not measured, against the first cell. Of two models no
    difference is judged where `labelled`, the arms whose accuracy on labelled data is known, holds both.
    """
    arms = block.arms
    if report is not None and report.reason is not None:
        # said once, of the second cell on, against the first
        reason = {"verdict": "not_measured", "text": report.reason.text}
        return [doc_cells.EngineParity.model_validate({**reason, "cell": arms[0].id})] if arm.arm > 0 else []
    pairs = report.pairs if report is not None else ()
    return [
        _engine(pair, block, model=model, is_labelled={pair.one, pair.other} <= set(labelled))
        for pair in pairs
        if pair.other == arm.arm and pair.one < len(arms)
    ]


def make_command(spec: CellSpec, main: str, *, against: CellSpec | None = None) -> str:
    """Return the command that finds the node where outputs differ from the reference's, or another runtime's; empty if
    none can."""
    is_able = against is None or (against.provider == CPU and against.session.optimization == "all")
    is_able = is_able and (against is None or against.artifact_sha256 == spec.artifact_sha256)
    if not is_able or (against is not None and against.recipe != spec.recipe):
        return ""
    return diverge_command(spec, main, against=against.runtime if against is not None else None)


def unoptimised(check: CheckReport | None, *, preset: Preset) -> doc_cells.Parity | None:
    """Compare the cell with its own runtime without optimisations; None where that was not looked at."""
    if check is None or not check.unoptimised:
        return None
    preset = preset if preset in (parity.FP16, parity.BF16) else LEVELS
    judgement = parity.judge(check.unoptimised, preset).with_reference_named(UNOPTIMISED)
    return _parity(judgement, preset, check.unoptimised, reference=UNOPTIMISED)


def replace_reference(spec: CellSpec, check: CheckReport) -> doc_cells.Parity | None:
    """Return the parity with its own runtime without optimisations, where no reference exists and both are the same.

    Return None otherwise: what differs by more may still be within a wider tolerance, and is not judged.
    """
    if spec.recipe != Recipe() or any(output.reference_shape is not None for output in check.outputs):
        return None
    found = unoptimised(check, preset=LEVELS)
    reference = f"{spec.runtime} CPU, no optimisations"
    return found.model_copy(update={"reference": reference}) if found is not None and found.verdict == "pass" else None


def describe_reference(found: doc_cells.Parity) -> str:
    """Say what passing outputs were compared with: `same as unoptimised 1.31.1`, or `close to` it where no absolute
    tolerance was given; empty for outputs that did not pass, and without a named reference."""
    made_by, is_plain, _ = (found.reference or "").partition(" CPU, no optimisations")
    named = f"unoptimised {made_by.removeprefix('onnxruntime==')}" if is_plain else found.reference
    near = "same as" if found.atol is not None else "close to"
    return f"{near} {named}" if found.verdict == "pass" and named else ""


def ran_in_other_precision(cell: doc_cells.Cell) -> bool:
    """Whether it is known to have run in a precision that is neither the one asked for nor that of the upload."""
    return cell.executed_precision not in (None, "", cell.precision, cell.uploaded)


def outputs_of(outputs: Sequence[OutputParity]) -> list[doc_cells.ParityOutput]:
    """Return the compared outputs in the form of the document."""
    fields = set(doc_cells.ParityOutput.model_fields)
    return [
        doc_cells.ParityOutput(**output.model_dump(include=fields))
        for output in outputs
        if output.reference_shape is not None
    ]


def _engine(pair: EnginePair, block: PlannedBlock, *, model: ModelFacts, is_labelled: bool) -> doc_cells.EngineParity:
    first, second = block.arms[pair.one], block.arms[pair.other]
    if model.draws:
        return doc_cells.EngineParity(cell=first.id, text=parity.judge_random(model.draws).text, unjudged=True)
    if first.spec.artifact_sha256 != second.spec.artifact_sha256:
        preset = parity.ANY
        judgement = parity.judge_models(
            pair.outputs, own=parity.presets_from_tolerances(block.tolerances), is_labelled=is_labelled
        ).with_reference_named(f"{first.id}'s")
    else:
        preset = parity.preset_between(first.spec, second.spec, model.uploaded)
        judgement = parity.judge(pair.outputs, preset).with_reference_named(f"{first.id}'s")
    found = _parity(judgement, preset, pair.outputs, reference=f"{first.id}, {first.spec.runtime}")
    known = dict(found)
    known["renamed"] = {output.reference_name: output.name for output in pair.outputs if output.reference_name}
    if judgement.verdict == "fail":
        known["command"] = make_command(second.spec, model.main, against=first.spec)
    elif judgement.verdict == "pass":
        # the sentence is enough
        known["outputs"] = []
    return doc_cells.EngineParity(**known, cell=first.id)


def _parity(
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
        outputs=outputs_of(outputs),
        unjudged=judgement.is_unjudged,
    )


def find_runtime_changes(document: doc.Document) -> list[tuple[doc_cells.Cell, doc_cells.Cell, doc_cells.EngineParity]]:
    """Return (that cell, this cell, their parity) where outputs differ and only the runtime does too."""
    cells = {cell.id: cell for cell in document.cells}
    same = ("model_sha256", *(field for axis in WORKLOAD for field in axis.fields))
    return [
        (other, cell, pair)
        for cell in document.cells
        for pair in cell.engines
        if pair.verdict == "fail"
        and (other := cells.get(pair.cell)) is not None
        and other.runtime != cell.runtime
        and all(getattr(other, field) == getattr(cell, field) for field in same)
    ]


def change_sentence(document: doc.Document) -> str:
    """Say that outputs changed between runtimes, by the first pair that shows it; empty where none did."""
    changes = find_runtime_changes(document)
    if not changes:
        return ""
    old, new, pair = changes[0]
    more = f" (and {len(changes) - 1} more pairs)" if len(changes) > 1 else ""
    return f"The outputs changed between {_release(old, new)} and {_release(new, old)}{more}: {pair.text}"


def models_sentence(document: doc.Document) -> str:
    """Say whether the outputs of two models agree, by the first pair, preferring one that fails.

    Where labelled data judge them, their sentence is taken; it is empty where the headline says already that they are
    wrong.
    """
    cells = {cell.id: cell for cell in document.cells}
    known = [
        (cells[comparison.candidate], pair)
        for comparison in document.comparisons
        if comparison.axis == "model" and comparison.candidate in cells
        for pair in cells[comparison.candidate].engines
        if pair.cell == comparison.baseline
    ]
    if not known:
        return ""
    cell, first = min(known, key=lambda found: found[1].verdict != "fail")
    judged = cell.accuracy
    if first.verdict == "fail" or judged is None or judged.baseline != first.cell:
        return first.text
    return "" if is_wrong(cell) else judged.text


def _release(cell: doc_cells.Cell, beside: doc_cells.Cell) -> str:
    is_same = cell.runtime.distribution == beside.runtime.distribution
    return cell.runtime.version if is_same else str(cell.runtime)
