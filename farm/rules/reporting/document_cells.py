"""Makes the cells of a bench document: one for each arm that ended and one for each refused point."""

from collections.abc import Mapping, Sequence

from farm.contract import document_cells as doc_cells
from farm.contract.blocks import Tolerance
from farm.contract.cells import CellSpec
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.contract.reports import CheckReport, Operator, PromptTrace, TraceReport
from farm.rules.cells import identity, metrics, scenarios, sustained
from farm.rules.cells.commands import repeat_command
from farm.rules.judging.evidence import Evidence
from farm.rules.judging.summaries import CellSummary, summarise_cell
from farm.rules.planning.estimates import OUT_OF_TIME_ALONE
from farm.rules.planning.plans import Arm, RefusedPoint
from farm.rules.presenting import parities
from farm.rules.quality import parity
from farm.rules.quality.parity import Preset
from farm.rules.reporting import accuracies, cell_metrics, generated, phases
from farm.rules.reporting.fed import list_inputs
from farm.rules.reporting.records import BlockRecord, RunRecord
from farm.rules.runtimes import providers
from farm.rules.tracing import executions
from farm.rules.wording.numbers import counted

# of each cell, those that take the most time
MAX_OPERATORS = 256
# keys of a cell that its summary and its check pass have under the same names
_SUMMARISED = (
    *("mean_ms", "std_ms", "p90_ms", "p95_ms", "p99_ms", "throughput"),
    *("is_stable", "is_bimodal", "disturbed_samples"),
)
_CHECKED = (
    *("session_ms", "cached_session_ms", "engine_bytes", "first_ms", "import_ms", "packages"),
    *("is_repeatable", "batch_row_max_abs", "executed_precision", "provider_facts"),
)


def make_cells(block: BlockRecord, evidence: Evidence, record: RunRecord) -> list[doc_cells.Cell]:
    """Return a cell for each arm of the block that has ended, in the order of the block."""
    return [
        _measured_cell(arm, ending, block, evidence=evidence, record=record)
        for arm in block.block.arms
        if (ending := find_ending(arm, block, evidence)) is not None
    ]


def make_refused_cell(point: RefusedPoint, record: RunRecord) -> doc_cells.Cell:
    """Return a refused point as a cell that was not run."""
    ended = {
        "id": point.id,
        "status": point.reason.status,
        "reason": point.reason,
        "way_out": point.way_out,
        "parity": doc_cells.Parity(text="The cell was not run."),
    }
    return doc_cells.Cell.model_validate(_identity(point.spec, point.labels, record) | ended)


def find_ending(arm: Arm, block: BlockRecord, evidence: Evidence) -> tuple[CellStatus, Reason | None] | None:
    """Return the status of an arm that ended, and the reason where there is one; None while it has not ended.

    An arm that was stopped after enough rounds is done, with the reason of the stop.
    """
    failure = evidence.failure(arm.arm)
    if failure is not None:
        return failure.status, failure
    reason = block.reason or (evidence.end.reason if evidence.end is not None else None)
    is_stopped = reason is not None and reason.status == CellStatus.CANCELLED
    is_enough = len(evidence.rounds) >= block.block.min_rounds or (block.is_over and (is_stopped or reason is None))
    if is_enough and evidence.samples(arm.arm):
        return CellStatus.DONE, _stopped(block, evidence) if is_stopped else _lack(arm, block, evidence)
    if not block.is_over:
        return None
    if reason is None:
        text = f"The block ended before {arm.id} had a sample, without a reason: measure it again."
        reason = Reason(code=ReasonCode.INTERNAL, text=text)
    return reason.status, reason


def _stopped(block: BlockRecord, evidence: Evidence) -> Reason:
    """Say who or what stopped an arm that has samples, and after how many rounds."""
    why = block.reason.text if block.reason is not None else "Stopped."
    count = len(evidence.rounds)
    text = f"{why} {counted(count, 'round')} {'was' if count == 1 else 'were'} measured before."
    return Reason(code=ReasonCode.CANCELLED if block.reason is None else block.reason.code, text=text)


def _lack(arm: Arm, block: BlockRecord, evidence: Evidence) -> Reason | None:
    """Return the reason why a cell without other cells beside it has few launches; otherwise its comparisons say
    so."""
    samples, least = evidence.samples(arm.arm), block.block.min_rounds
    is_alone = all(other.positions == arm.positions for other in block.block.arms)
    if len(samples) >= least or not evidence.is_out_of_time or not is_alone:
        return None
    lost = sum(sample.is_disturbed for sample in samples)
    more = f"; other work disturbed {counted(lost, 'launch', 'launches')}" if lost else ""
    text = f"It has {len(samples)} of at least {least} launches{more}. {OUT_OF_TIME_ALONE}"
    return Reason(code=ReasonCode.TIMEOUT, text=text)


def _measured_cell(
    arm: Arm, ending: tuple[CellStatus, Reason | None], block: BlockRecord, *, evidence: Evidence, record: RunRecord
) -> doc_cells.Cell:
    workload = arm.spec.workload
    check = evidence.checks.get(arm.arm)
    samples = evidence.samples(arm.arm)
    scenario = scenarios.of_cell(arm.spec)
    summary = summarise_cell(
        samples, batch=workload.batch, concurrency=workload.concurrency, is_loaded=scenario.is_open
    )
    made = generated.compare_tokens(arm, block, evidence)
    parts = phases.summarise_phases(samples)
    draws = record.model_of(arm.spec).draws
    judged = generated.fail_on_tokens(_parity(arm.spec, check, record, own=block.block.tolerances), made, summary)
    timed, checked = _numbers(summary), _checked(arm.spec, check)
    known = (
        _identity(arm.spec, arm.labels, record, sustained_s=block.block.sustained_s)
        | timed
        | checked
        | _traced(evidence.traces.get((arm.arm, 0)))
    )
    ended = {
        "id": arm.id,
        "block": block.block.id,
        "node": block.node,
        "twin_of": None if arm.twin_of is None else block.block.arms[arm.twin_of].id,
        "status": ending[0],
        "reason": ending[1],
        "repeat_command": repeat_command(
            arm.spec, record.model_of(arm.spec).main, tolerances=_own_tolerances(block.block.tolerances, check)
        ),
        "parity": judged if draws else phases.fail_on_answers(judged, summary, what=scenario.differing_phrase),
        "engines": parities.compare_engines(
            arm,
            evidence.engines,
            block.block,
            model=record.model_of(arm.spec),
            labelled=[place for place, report in evidence.accuracies.items() if report.reason is None],
        ),
        "unoptimised": None if draws else parities.compare_with_unoptimised(check, preset=_preset(arm.spec, record)),
        "sustained": _sustained(arm, evidence),
        "accuracy": _accuracy(arm, block, evidence),
        "model_bytes": record.sizes.get(arm.spec.digest),
        "phases": parts,
        "scenario_text": phases.describe_result(summary, scenario, parts)
        or generated.describe(summary, made, evidence.traces.get((arm.arm, 0)), batch=arm.spec.workload.batch or 1),
        "tokens": made.tokens,
    }
    cell = doc_cells.Cell.model_validate(known | ended)
    by_launches = timed.keys() - checked.keys()
    told = cell_metrics.list_metrics(cell, scenario=scenario, check=check, summary=summary, timed=by_launches)
    return cell.model_copy(update={"metrics": told})


def _identity(
    spec: CellSpec, labels: Mapping[str, str], record: RunRecord, *, sustained_s: float = 0.0
) -> dict[str, object]:
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


def _numbers(summary: CellSummary | None) -> dict[str, object]:
    if summary is None:
        return {}
    found: dict[str, object] = {name: getattr(summary, name) for name in _SUMMARISED}
    for name, figure in summary.launched.items():
        found |= metrics.BY_NAME[name].document_fields(figure)
    return found


def _checked(spec: CellSpec, check: CheckReport | None) -> dict[str, object]:
    if check is None:
        return {}
    requested = check.requested_providers or providers.requested_list(providers.provider_of(spec.provider))
    # of the check pass, which does nothing but load and run; of the samples only where that one is not known
    peak = {} if check.peak_memory_bytes is None else {"peak_memory_bytes": check.peak_memory_bytes}
    return peak | {
        "requested_providers": list(requested),
        "active_providers": list(check.active_providers),
        "simulated": check.is_simulated,
        **{name: getattr(check, name) for name in _CHECKED},
        "energy_mj": check.energy and check.energy.mj,
        "energy_text": check.energy.text if check.energy else "",
    }


def _own_tolerances(given: Mapping[str, Tolerance], check: CheckReport | None) -> Mapping[str, Tolerance]:
    names = {output.name for output in check.outputs} if check is not None else set()
    return {name: given[name] for name in sorted(given) if not names or name in names}


def _sustained(arm: Arm, evidence: Evidence) -> doc_cells.Sustained | None:
    report = evidence.curves.get(arm.arm)
    if report is None:
        return None
    points = [doc_cells.CurvePoint(**point.model_dump()) for point in report.points]
    found = sustained.find_throttling([point.at_s for point in points], [point.p50_ms for point in points])
    return doc_cells.Sustained(
        points=points,
        throttle_s=found.after_s if found else None,
        text=sustained.describe_curve(found, total_s=points[-1].at_s + points[-1].span_s) if points else "",
        reason=report.reason,
    )


def _traced(trace: TraceReport | None) -> dict[str, object]:
    if trace is None or trace.reason is not None:
        return {}
    return {
        "traced_us": trace.run_us,
        "unaccounted_us": _unaccounted_us(trace),
        "copies": trace.copies_to_device + trace.copies_to_host,
        "providers": [doc_cells.ProviderTime(**share.model_dump()) for share in trace.providers],
        "operators": _slowest(trace.operators),
        "executed": executions.histogram_to_counts(executions.count_kernels(trace.operators)),
        "prompt": _prompt(trace.prompt),
        "cache_copies": list(trace.cache_copies),
    }


def _prompt(trace: PromptTrace | None) -> doc_cells.PromptTime | None:
    if trace is None:
        return None
    return doc_cells.PromptTime(
        tokens=trace.tokens,
        traced_us=trace.run_us,
        unaccounted_us=_unaccounted_us(trace),
        operators=_slowest(trace.operators),
    )


def _slowest(operators: Sequence[Operator]) -> list[doc_cells.OperatorTime]:
    slowest = sorted(operators, key=lambda operator: -operator.time_us)[:MAX_OPERATORS]
    return [doc_cells.OperatorTime(**operator.model_dump(exclude={"calls"})) for operator in slowest]


def _unaccounted_us(trace: TraceReport | PromptTrace) -> float | None:
    """Time of an inference outside operators: between them, and the profiler's own. None where operators overlap."""
    if trace.run_us is None:
        return None
    left = trace.run_us - sum(operator.time_us for operator in trace.operators)
    return left if left >= 0 else None


def _accuracy(arm: Arm, block: BlockRecord, evidence: Evidence) -> doc_cells.Accuracy | None:
    report = evidence.accuracies.get(arm.arm)
    if report is None:
        return None
    by = report.measured_arm
    shared = by is not None and by != arm.arm and by < len(block.block.arms)
    return accuracies.make_accuracy(report, measured_by=block.block.arms[by].id if shared and by is not None else None)


def _preset(spec: CellSpec, record: RunRecord) -> Preset:
    return parity.preset_for(spec.recipe.precision, record.model_of(spec).uploaded)


def _parity(
    spec: CellSpec, check: CheckReport | None, record: RunRecord, *, own: Mapping[str, Tolerance]
) -> doc_cells.Parity:
    if check is None or check.reason is not None:
        return doc_cells.Parity(text="The outputs were not computed.")
    if draws := record.model_of(spec).draws:
        return doc_cells.Parity(text=parity.judge_random(draws).text, unjudged=True)
    preset = record.preset or _preset(spec, record)
    judgement = parity.judge(check.outputs, preset, own=parity.presets_from_tolerances(own))
    is_measured, by = judgement.verdict != "not_measured", judgement.preset or preset
    if not is_measured and (own_plain := parities.replace_reference(spec, check)) is not None:
        return own_plain
    return doc_cells.Parity(
        verdict=judgement.verdict,
        reference=record.references.get(spec.digest) if is_measured else None,
        text=judgement.text,
        atol=by.atol if by.min_cosine is None else None,
        rtol=by.rtol if by.min_cosine is None else None,
        outputs=parities.make_parity_outputs(check.outputs),
        command=parities.make_diverge_command(spec, record.model_of(spec).main) if judgement.verdict == "fail" else "",
    )
