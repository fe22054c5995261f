"""Makes a bench document out of what was planned and what was reported, for `onnxfarm bench` and the farm alike."""

from collections.abc import Mapping
from dataclasses import asdict
from math import inf

from farm.contract import document as doc
from farm.contract import document_cells as doc_cells
from farm.contract import document_comparisons as doc_comparisons
from farm.contract.reports import Facts
from farm.rules.cells.metrics import INSTRUCTIONS
from farm.rules.comparing.comparisons import Comparison
from farm.rules.comparing.quantities import change_of
from farm.rules.judging import metric_verdicts, work
from farm.rules.judging.block_verdicts import EXPLAINED_AXES, BlockJudge, Judged
from farm.rules.planning.plans import PlannedBlock
from farm.rules.presenting import sentences
from farm.rules.reporting import accuracies, document_cells, operator_changes
from farm.rules.reporting.multiple_tests import correct_verdicts
from farm.rules.reporting.records import BlockRecord, RunRecord

__all__ = ["BlockRecord", "RunRecord", "add_sentence", "assemble", "make_facts"]


def assemble(record: RunRecord, *, is_part: bool = False) -> doc.Document:
    """Make the document of a run; cells that are still being measured are left out, and refused cells come last.

    With `is_part`, the record is only a part of a run: the samples of accuracies are kept and verdicts are not
    corrected for multiple tests, as both need the other blocks.
    """
    cells: list[doc_cells.Cell] = []
    comparisons: list[doc_comparisons.Comparison] = []
    facts: list[doc.BlockFacts] = []
    for block in record.blocks:
        judge = BlockJudge(block.block, reports=block.reports)
        measured = document_cells.make_cells(block, judge.evidence, record)
        cells += measured
        facts += [make_facts(latest, block=block.block.id, node=block.node) for latest in judge.evidence.facts[-1:]]
        comparisons += _compare_cells(block.block, judge, {cell.id for cell in measured})
    cells += [document_cells.make_refused_cell(point, record) for point in record.refused]
    document = doc.Document(
        machine=dict(record.machine),
        seed=record.seed,
        budget=record.budget.value,
        created_at=record.created_at,
        command=record.command,
        run=record.run,
        url=record.url,
        cells=accuracies.compare_with_fp32(cells, keep_samples=is_part),
        comparisons=comparisons if is_part else correct_verdicts(comparisons),
        blocks=facts,
    )
    return add_sentence(document)


def add_sentence(document: doc.Document) -> doc.Document:
    """Return the document with its sentence, and with ratios of items per second where compared batches differ."""
    cells = {cell.id: cell for cell in document.cells}
    comparisons = [_add_items_ratio(comparison, cells) for comparison in document.comparisons]
    with_items = document.model_copy(update={"comparisons": comparisons})
    return with_items.model_copy(update={"sentence": sentences.describe_run(with_items)})


def _add_items_ratio(
    comparison: doc_comparisons.Comparison, cells: Mapping[str, doc_cells.Cell]
) -> doc_comparisons.Comparison:
    change = change_of(comparison, cells)
    if change.quantity != "items":
        return comparison
    figures = {"items_ratio": change.ratio, "items_ci_low": change.low, "items_ci_high": change.high}
    return comparison.model_copy(update={**figures, "items_verdict": change.word})


def make_facts(facts: Facts, *, block: str, node: str | None) -> doc.BlockFacts:
    """Return the facts that show how idle the node was just before this block.

    A node may send anything under `more`, so what is not a finite number of at least 0 becomes None.
    """
    load = facts.more.get("load")
    load = load if isinstance(load, dict) else {}
    runners = _read_number(load.get("other_runners"))
    return doc.BlockFacts(
        block=block,
        node=node,
        governor=facts.governor,
        turbo=facts.turbo,
        load_1m=facts.load_1m,
        busy_share=_read_number(load.get("busy_share")),
        other_runners=None if runners is None or runners % 1 else int(runners),
        temperature_c=facts.temperature_c,
        advice=list(facts.advice),
    )


def _read_number(value: object) -> float | None:
    """Return a finite number of at least 0; None for anything else, including booleans."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < inf else None


def _compare_cells(block: PlannedBlock, judge: BlockJudge, cell_ids: set[str]) -> list[doc_comparisons.Comparison]:
    """Return the comparisons of a block whose cells are both in the document."""
    judged = [
        pair
        for pair in judge.comparisons()
        if {block.arms[pair.planned.baseline].id, block.arms[pair.planned.candidate].id} <= cell_ids
    ]
    metrics = metric_verdicts.judge_metrics(judge, judged)
    return [
        _make_comparison(block, judge, pair, metrics=of_pair) for pair, of_pair in zip(judged, metrics, strict=True)
    ]


def _describe_work(block: PlannedBlock, judge: BlockJudge, judged: Judged) -> str:
    """Say whether both sides do the same work, where the processor's counters could be read; empty elsewhere."""
    planned = judged.planned
    if planned.axis not in EXPLAINED_AXES - {"model"}:
        return ""
    arms = planned.baseline, planned.candidate
    old, new = (
        [count for sample in judge.evidence.samples(arm) if (count := INSTRUCTIONS.read_figure(sample))] for arm in arms
    )
    return work.describe_work(old, new, names=(block.arms[arms[0]].id, block.arms[arms[1]].id))


def _make_comparison(
    block: PlannedBlock, judge: BlockJudge, judged: Judged, *, metrics: list[doc_comparisons.MetricChange]
) -> doc_comparisons.Comparison:
    planned, figures = judged.planned, judged.figures
    noise, noise_from = judge.noise
    comparison = doc_comparisons.Comparison(
        baseline=block.arms[planned.baseline].id,
        candidate=block.arms[planned.candidate].id,
        axis=planned.axis,
        ratio=figures and figures.ratio,
        ci_low=figures and figures.ci_low,
        ci_high=figures and figures.ci_high,
        ci_level=figures and figures.ci_level,
        p=figures and figures.p_total,
        verdict=judged.verdict,
        verdict_from=judged.verdict_from,
        **_name_figures("wall", judged.wall),
        **_name_figures("cpu", judged.processor),
        reason=" ".join(filter(None, (judged.reason, _describe_work(block, judge, judged)))) or None,
        rounds=judged.rounds,
        rounds_needed=judged.rounds_needed,
        rounds_set_aside=judged.rounds_set_aside,
        rounds_disturbed=judged.disturbed,
        slow_launches=judged.slow and doc_comparisons.SlowLaunches(**asdict(judged.slow)),
        margin=block.margin,
        smallest_detectable=judged.smallest_detectable,
        noise=noise,
        noise_from=noise_from,
        metrics=metrics,
    )
    return operator_changes.with_operators(comparison, judge, judged)


def _name_figures(clock: str, figures: Comparison | None) -> dict[str, float | None]:
    names = ("ratio", "ci_low", "ci_high")
    return {f"{clock}_{name}": getattr(figures, name) if figures is not None else None for name in names}
