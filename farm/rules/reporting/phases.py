"""Summarises a scenario's phases over a cell's launches, and describes its result. Pure."""

from collections.abc import Sequence
from statistics import median

from farm.contract import document_cells as doc_cells
from farm.contract.reports import Sample
from farm.rules.cells.scenario import Scenario
from farm.rules.cells.scenario_metrics import DIFFERING
from farm.rules.judging.summaries import CellSummary


def summarise_phases(samples: Sequence[Sample]) -> list[doc_cells.CellPhase]:
    """Return each phase that a launch reported, in order of first appearance, with the medians of its figures."""
    told = [phase for sample in samples for phase in sample.phases]
    found = []
    for name in dict.fromkeys(phase.name for phase in told):
        same = [phase.metrics for phase in told if phase.name == name]
        keys = dict.fromkeys(key for metrics in same for key in metrics)
        medians = {key: median(metrics[key] for metrics in same if key in metrics) for key in keys}
        found.append(doc_cells.CellPhase(name=name, launches=len(same), metrics=medians))
    return found


def describe_result(summary: CellSummary | None, scenario: Scenario, told: Sequence[doc_cells.CellPhase] = ()) -> str:
    return "" if summary is None else scenario.describe_result(summary.launched, p99_ms=summary.p99_ms, phases=told)


def fail_on_answers(parity: doc_cells.Parity, summary: CellSummary | None, *, what: str) -> doc_cells.Parity:
    """Return the parity as failed where answers differed from those of the same inputs alone.

    `what` is the noun that the figure counts, such as answers.
    """
    figure = summary.launched.get(DIFFERING) if summary is not None else None
    if figure is None or not figure.value:
        return parity
    wrong = f"{figure.value:.0f} {what} answered otherwise than alone."
    return parity.model_copy(update={"verdict": "fail", "text": f"{wrong} {parity.text}".strip()})
