"""What a scenario's phases came to over a cell's launches, and what they say together. Pure."""

from collections.abc import Sequence
from statistics import median

from farm.contract import document as doc
from farm.contract.reports import Sample
from farm.rules.cells import growth, load
from farm.rules.cells.metrics import DIFFERING, GROWTH
from farm.rules.cells.scenarios import Scenario
from farm.rules.judging.summaries import CellSummary


def phases_of(samples: Sequence[Sample]) -> list[doc.CellPhase]:
    """Each phase that a launch told, in the order of the first that tells it, with the medians of its figures."""
    told = [phase for sample in samples for phase in sample.phases]
    found = []
    for name in dict.fromkeys(phase.name for phase in told):
        same = [phase.metrics for phase in told if phase.name == name]
        keys = dict.fromkeys(key for metrics in same for key in metrics)
        medians = {key: median(metrics[key] for metrics in same if key in metrics) for key in keys}
        found.append(doc.CellPhase(name=name, launches=len(same), metrics=medians))
    return found


def text_of(summary: CellSummary | None, scenario: Scenario) -> str:
    """What the scenario found, in sentences; empty where it looks for nothing."""
    launched = summary.launched if summary is not None else {}
    if GROWTH in launched:
        return growth.sentence(launched[GROWTH])
    return load.sentence(launched, scenario, p99_ms=summary.p99_ms) if summary is not None and scenario.is_open else ""


def with_answers(parity: doc.Parity, summary: CellSummary | None, *, what: str) -> doc.Parity:
    """Parity that fails where answers were not those of the same inputs alone. `what`: of which there are so many."""
    figure = summary.launched.get(DIFFERING) if summary is not None else None
    if figure is None or not figure.value:
        return parity
    wrong = f"{figure.value:.0f} {what} answered otherwise than alone."
    return parity.model_copy(update={"verdict": "fail", "text": f"{wrong} {parity.text}".strip()})
