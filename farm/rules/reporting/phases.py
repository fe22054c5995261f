"""Summarises a scenario's phases over a cell's launches, and describes its result."""

from collections.abc import Sequence
from statistics import median

from farm.base.grouping import group_by
from farm.contract import document_cells as doc_cells
from farm.contract.reports import Sample
from farm.rules.cells.scenario import Scenario
from farm.rules.cells.scenario_metrics import DIFFERING
from farm.rules.judging.summaries import CellSummary


def summarise_phases(samples: Sequence[Sample]) -> list[doc_cells.CellPhase]:
    """Return each phase that a launch reported, in order of first appearance, with the medians of its figures."""
    reported = group_by((phase for sample in samples for phase in sample.phases), lambda phase: phase.name)
    cell_phases = []
    for name, launches in reported.items():
        keys = dict.fromkeys(key for phase in launches for key in phase.metrics)
        medians = {key: median(phase.metrics[key] for phase in launches if key in phase.metrics) for key in keys}
        cell_phases.append(doc_cells.CellPhase(name=name, launches=len(launches), metrics=medians))
    return cell_phases


def describe_result(summary: CellSummary | None, scenario: Scenario, phases: Sequence[doc_cells.CellPhase] = ()) -> str:
    return "" if summary is None else scenario.describe_result(summary.launched, p99_ms=summary.p99_ms, phases=phases)


def fail_on_answers(parity: doc_cells.Parity, summary: CellSummary | None, *, what: str) -> doc_cells.Parity:
    """Return the parity as failed where answers differed from those of the same inputs alone.

    `what` is the plural noun that the sentence counts, such as `answers`. Where none differs, the parity is unchanged.
    """
    figure = summary.launched.get(DIFFERING) if summary is not None else None
    if figure is None or not figure.value:
        return parity
    wrong = f"{figure.value:.0f} {what} answered otherwise than alone."
    return parity.model_copy(update={"verdict": "fail", "text": f"{wrong} {parity.text}".strip()})
