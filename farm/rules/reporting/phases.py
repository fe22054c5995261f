"""What a scenario's phases came to over a cell's launches, and what they say together. Pure."""

from collections.abc import Sequence
from statistics import median

from farm.contract import document_cells as doc_cells
from farm.contract.reports import Sample
from farm.rules.cells.scenario import Scenario
from farm.rules.cells.scenario_metrics import DIFFERING
from farm.rules.judging.summaries import CellSummary


def phases_of(samples: Sequence[Sample]) -> list[doc_cells.CellPhase]:
    """Each phase that a launch told, in the order of the first that tells it, with the medians of its figures."""
    told = [phase for sample in samples for phase in sample.phases]
    found = []
    for name in dict.fromkeys(phase.name for phase in told):
        same = [phase.metrics for phase in told if phase.name == name]
        keys = dict.fromkeys(key for metrics in same for key in metrics)
        medians = {key: median(metrics[key] for metrics in same if key in metrics) for key in keys}
        found.append(doc_cells.CellPhase(name=name, launches=len(same), metrics=medians))
    return found


def text_of(summary: CellSummary | None, scenario: Scenario, told: Sequence[doc_cells.CellPhase] = ()) -> str:
    """What the scenario found, in sentences; empty where it looks for nothing. `told`: its phases."""
    return "" if summary is None else scenario.describe_result(summary.launched, p99_ms=summary.p99_ms, phases=told)


def with_answers(parity: doc_cells.Parity, summary: CellSummary | None, *, what: str) -> doc_cells.Parity:
    """Parity that fails where answers were not those of the same inputs alone. `what`: of which there are so many."""
    figure = summary.launched.get(DIFFERING) if summary is not None else None
    if figure is None or not figure.value:
        return parity
    wrong = f"{figure.value:.0f} {what} answered otherwise than alone."
    return parity.model_copy(update={"verdict": "fail", "text": f"{wrong} {parity.text}".strip()})
