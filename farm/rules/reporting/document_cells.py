"""Makes the cells of a bench document: one for each arm that ended, and one for each refused point."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from farm.contract import document_cells as doc_cells
from farm.contract.blocks import Tolerance
from farm.contract.cells import CellSpec
from farm.contract.evaluation import AccuracyReport
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.contract.reports import CheckReport, Operator, PromptTrace, TraceReport
from farm.contract.sustained import CurveReport
from farm.rules.cells import identity, metrics, scenarios, sustained
from farm.rules.cells.commands import repeat_command
from farm.rules.judging.evidence import Evidence
from farm.rules.judging.summaries import CellSummary, summarise_cell
from farm.rules.planning.estimates import OUT_OF_TIME_ALONE
from farm.rules.planning.plans import Arm, PlannedBlock, RefusedPoint
from farm.rules.presenting import parities
from farm.rules.quality import parity
from farm.rules.quality.parity import Preset
from farm.rules.reporting import accuracies, cell_metrics, generated, phases
from farm.rules.reporting.cell_inputs import list_inputs
from farm.rules.reporting.records import BlockRecord, RunRecord
from farm.rules.runtimes import providers
from farm.rules.tracing import executions
from farm.rules.wording.numbers import counted

# A cell lists at most this many operators: those that take the most time.
MAX_OPERATORS = 256
# Fields of a cell that its summary (_SUMMARISED) or its check (_CHECKED) has under the same name.
_SUMMARISED = (
    *("mean_ms", "std_ms", "p90_ms", "p95_ms", "p99_ms", "throughput"),
    *("is_stable", "is_bimodal", "disturbed_samples"),
)
_CHECKED = (
    *("session_ms", "cached_session_ms", "engine_bytes", "first_ms", "import_ms", "packages"),
    *("is_repeatable", "batch_row_max_abs", "executed_precision", "provider_facts"),
)


def make_cells(block: BlockRecord, evidence: Evidence, record: RunRecord) -> list[doc_cells.Cell]:
    """Return a cell for each arm that has ended, in the order of the block's arms; arms still measured have none."""
    return [
        _make_cell(arm, end, block, evidence=evidence, record=record)
        for arm in block.block.arms
        if (end := find_arm_end(arm, block, evidence)) is not None
    ]


def make_refused_cell(point: RefusedPoint, record: RunRecord) -> doc_cells.Cell:
    """Make the cell of a refused point: its reason and the way out, without figures."""
    fields = {
        **_describe_setting(point.spec, point.labels, record),
        "id": point.id,
        "status": point.reason.status,
        "reason": point.reason,
        "way_out": point.way_out,
        "parity": doc_cells.Parity(text="The cell was not run."),
    }
    return doc_cells.Cell.model_validate(fields)


class ArmEnd(NamedTuple):
    """How an arm ended, with the reason where there is one."""

    status: CellStatus
    reason: Reason | None


def find_arm_end(arm: Arm, block: BlockRecord, evidence: Evidence) -> ArmEnd | None:
    """Return how an arm ended; None while it has not ended.

    An arm with samples is done after enough rounds, even while its block goes on. It is also done after fewer rounds
    where the block was cancelled or ended without a reason. The reason of such an arm may say what stopped it, or why
    it has few launches.
    """
    failure = evidence.failure(arm.arm)
    if failure is not None:
        return ArmEnd(failure.status, failure)
    reason = block.reason or (evidence.end.reason if evidence.end is not None else None)
    is_stopped = reason is not None and reason.status == CellStatus.CANCELLED
    is_enough = len(evidence.rounds) >= block.block.min_rounds or (block.is_over and (is_stopped or reason is None))
    if is_enough and evidence.samples(arm.arm):
        reason = _explain_stop(block, evidence) if is_stopped else _explain_few_launches(arm, block, evidence)
        return ArmEnd(CellStatus.DONE, reason)
    if not block.is_over:
        return None
    if reason is None:
        text = f"The block ended before {arm.id} had a sample, without a reason: measure it again."
        reason = Reason(code=ReasonCode.INTERNAL, text=text)
    return ArmEnd(reason.status, reason)


def _explain_stop(block: BlockRecord, evidence: Evidence) -> Reason:
    """Say what stopped the block of an arm that has samples, and after how many rounds."""
    stop = block.reason or Reason(code=ReasonCode.CANCELLED, text="Stopped.")
    rounds = len(evidence.rounds)
    text = f"{stop.text} {counted(rounds, 'round')} {'was' if rounds == 1 else 'were'} measured before."
    return Reason(code=stop.code, text=text)


def _explain_few_launches(arm: Arm, block: BlockRecord, evidence: Evidence) -> Reason | None:
    """Say why a cell has few launches; None where it has enough, and where its comparisons with others say so."""
    samples, min_launches = evidence.samples(arm.arm), block.block.min_rounds
    is_alone = all(other.positions == arm.positions for other in block.block.arms)
    if len(samples) >= min_launches or not evidence.is_out_of_time or not is_alone:
        return None
    disturbed = sum(sample.is_disturbed for sample in samples)
    cause = f"; other work disturbed {counted(disturbed, 'launch', 'launches')}" if disturbed else ""
    text = f"It has {len(samples)} of at least {min_launches} launches{cause}. {OUT_OF_TIME_ALONE}"
    return Reason(code=ReasonCode.TIMEOUT, text=text)


def _make_cell(arm: Arm, end: ArmEnd, block: BlockRecord, *, evidence: Evidence, record: RunRecord) -> doc_cells.Cell:
    spec, workload = arm.spec, arm.spec.workload
    model, scenario, samples = record.model_of(spec), scenarios.of_cell(spec), evidence.samples(arm.arm)
    check, trace = evidence.checks.get(arm.arm), evidence.traces.get((arm.arm, 0))
    summary = summarise_cell(
        samples, batch=workload.batch, concurrency=workload.concurrency, is_loaded=scenario.is_open
    )
    tokens, cell_phases = generated.compare_tokens(arm, block, evidence), phases.summarise_phases(samples)
    judged = _judge_outputs(spec, check, record, tolerances=block.block.tolerances)
    judged = generated.fail_on_tokens(judged, tokens, summary)
    if not model.draws:
        judged = phases.fail_on_answers(judged, summary, what=scenario.differing_phrase)
    figures, checked = _read_figures(summary), _read_check(spec, check)
    tolerances = _select_tolerances(block.block.tolerances, check)
    fields = {
        **_describe_setting(spec, arm.labels, record, sustained_s=block.block.sustained_s),
        **figures,
        **checked,
        **_read_trace(trace),
        **_compare_outputs(arm, block.block, evidence, record),
        "id": arm.id,
        "block": block.block.id,
        "node": block.node,
        "twin_of": None if arm.twin_of is None else block.block.arms[arm.twin_of].id,
        "status": end.status,
        "reason": end.reason,
        "repeat_command": repeat_command(spec, model.main, tolerances=tolerances),
        "parity": judged,
        "sustained": _make_sustained(evidence.curves.get(arm.arm)),
        "model_bytes": record.sizes.get(spec.digest),
        "phases": cell_phases,
        "scenario_text": phases.describe_result(summary, scenario, cell_phases)
        or generated.describe_tokens(summary, tokens, trace, batch=workload.batch or 1),
        "tokens": tokens.tokens,
    }
    cell = doc_cells.Cell.model_validate(fields)
    timed = figures.keys() - checked.keys()
    listed = cell_metrics.list_metrics(cell, scenario=scenario, check=check, summary=summary, timed=timed)
    return cell.model_copy(update={"metrics": listed})


def _compare_outputs(arm: Arm, block: PlannedBlock, evidence: Evidence, record: RunRecord) -> dict[str, object]:
    """Compare an arm's outputs with those of other cells, of its runtime without optimisations, and with labels."""
    model, preset = record.model_of(arm.spec), _choose_preset(arm.spec, record)
    check, report = evidence.checks.get(arm.arm), evidence.accuracies.get(arm.arm)
    labelled = [number for number, judged in evidence.accuracies.items() if judged.reason is None]
    return {
        "engines": parities.compare_engines(arm, evidence.engines, block, model=model, labelled=labelled),
        "unoptimised": None if model.draws else parities.compare_with_unoptimised(check, preset=preset),
        "accuracy": None if report is None else _make_accuracy(report, arm, block),
    }


def _describe_setting(
    spec: CellSpec, labels: Mapping[str, str], record: RunRecord, *, sustained_s: float = 0.0
) -> dict[str, object]:
    """Return the fields of a cell that are known before it is measured: its model, inputs, providers and settings."""
    model = record.model_of(spec)
    return {
        "model": model.name,
        "model_sha256": model.main_sha256,
        "uploaded": model.uploaded if spec.recipe.precision == "fp32" else "",
        "inputs": scenarios.of_cell(spec).describe_inputs(spec.workload) or list_inputs(spec, model),
        "requested_providers": list(providers.requested_list(providers.provider_of(spec.provider))),
        **identity.document_fields(
            spec, opset=model.opset, session=labels.get("session", "default"), sustained_s=sustained_s
        ),
    }


def _read_figures(summary: CellSummary | None) -> dict[str, object]:
    if summary is None:
        return {}
    figures: dict[str, object] = {name: getattr(summary, name) for name in _SUMMARISED}
    for name, figure in summary.launched.items():
        figures |= metrics.BY_NAME[name].document_fields(figure)
    return figures


def _read_check(spec: CellSpec, check: CheckReport | None) -> dict[str, object]:
    if check is None:
        return {}
    requested = check.requested_providers or providers.requested_list(providers.provider_of(spec.provider))
    # The check only loads and runs the model, so its peak is the model's own and replaces that of the samples.
    peak = {} if check.peak_memory_bytes is None else {"peak_memory_bytes": check.peak_memory_bytes}
    return peak | {
        "requested_providers": list(requested),
        "active_providers": list(check.active_providers),
        "simulated": check.is_simulated,
        **{name: getattr(check, name) for name in _CHECKED},
        "energy_mj": check.energy and check.energy.mj,
        "energy_text": check.energy.text if check.energy else "",
    }


def _select_tolerances(tolerances: Mapping[str, Tolerance], check: CheckReport | None) -> Mapping[str, Tolerance]:
    names = {output.name for output in check.outputs} if check is not None else set()
    return {name: tolerances[name] for name in sorted(tolerances) if not names or name in names}


def _make_sustained(report: CurveReport | None) -> doc_cells.Sustained | None:
    if report is None:
        return None
    points = [doc_cells.CurvePoint(**point.model_dump()) for point in report.points]
    throttling = sustained.find_throttling([point.at_s for point in points], [point.p50_ms for point in points])
    return doc_cells.Sustained(
        points=points,
        throttle_s=throttling.after_s if throttling else None,
        text=sustained.describe_curve(throttling, total_s=points[-1].at_s + points[-1].span_s) if points else "",
        reason=report.reason,
    )


def _read_trace(trace: TraceReport | None) -> dict[str, object]:
    if trace is None or trace.reason is not None:
        return {}
    return {
        "traced_us": trace.run_us,
        "unaccounted_us": _find_unaccounted_us(trace),
        "copies": trace.copies_to_device + trace.copies_to_host,
        "providers": [doc_cells.ProviderTime(**share.model_dump()) for share in trace.providers],
        "operators": _list_slowest(trace.operators),
        "executed": executions.histogram_to_counts(executions.count_kernels(trace.operators)),
        "prompt": _make_prompt(trace.prompt),
        "cache_copies": list(trace.cache_copies),
    }


def _make_prompt(trace: PromptTrace | None) -> doc_cells.PromptTime | None:
    if trace is None:
        return None
    return doc_cells.PromptTime(
        tokens=trace.tokens,
        traced_us=trace.run_us,
        unaccounted_us=_find_unaccounted_us(trace),
        operators=_list_slowest(trace.operators),
    )


def _list_slowest(operators: Sequence[Operator]) -> list[doc_cells.OperatorTime]:
    slowest = sorted(operators, key=lambda operator: -operator.time_us)[:MAX_OPERATORS]
    return [doc_cells.OperatorTime(**operator.model_dump(exclude={"calls"})) for operator in slowest]


def _find_unaccounted_us(trace: TraceReport | PromptTrace) -> float | None:
    """Return the time of an inference outside its operators, in µs; it includes the profiler's own time.

    Return None where it is not known, or operators overlap.
    """
    if trace.run_us is None:
        return None
    unaccounted_us = trace.run_us - sum(operator.time_us for operator in trace.operators)
    return unaccounted_us if unaccounted_us >= 0 else None


def _make_accuracy(report: AccuracyReport, arm: Arm, block: PlannedBlock) -> doc_cells.Accuracy:
    number = report.measured_arm
    is_of_other_arm = number is not None and number != arm.arm and number < len(block.arms)
    measured_by = block.arms[number].id if number is not None and is_of_other_arm else None
    return accuracies.make_accuracy(report, measured_by=measured_by)


def _choose_preset(spec: CellSpec, record: RunRecord) -> Preset:
    return parity.preset_for(spec.recipe.precision, record.model_of(spec).uploaded)


def _judge_outputs(
    spec: CellSpec, check: CheckReport | None, record: RunRecord, *, tolerances: Mapping[str, Tolerance]
) -> doc_cells.Parity:
    """Judge a cell's outputs against the reference, or else against its own runtime without optimisations.

    Outputs that were not computed, and those of a model that draws random numbers, are not judged.
    """
    if check is None or check.reason is not None:
        return doc_cells.Parity(text="The outputs were not computed.")
    if draws := record.model_of(spec).draws:
        return doc_cells.Parity(text=parity.judge_random_model(draws).text, unjudged=True)
    preset = record.preset or _choose_preset(spec, record)
    judgement = parity.judge(check.outputs, preset, by_output=parity.presets_from_tolerances(tolerances))
    is_measured, preset = judgement.verdict != "not_measured", judgement.preset or preset
    if not is_measured and (replaced := parities.replace_reference(spec, check)) is not None:
        return replaced
    return doc_cells.Parity(
        verdict=judgement.verdict,
        reference=record.references.get(spec.digest) if is_measured else None,
        text=judgement.text,
        atol=preset.atol if preset.min_cosine is None else None,
        rtol=preset.rtol if preset.min_cosine is None else None,
        outputs=parities.make_parity_outputs(check.outputs),
        command=parities.make_diverge_command(spec, record.model_of(spec).main) if judgement.verdict == "fail" else "",
    )
