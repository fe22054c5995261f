"""Which verdict of a comparison is about the prompt of cells that generate. Pure; the client alone reads it too."""

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.rules.cells import scenarios
from farm.rules.cells.scenario_metrics import TTFT, TTFT_CPU


def is_generated(cell: Cell) -> bool:
    """Whether its launches answer prompts."""
    return scenarios.of_text(cell.scenario).takes_prompts


def prefill_of(comparison: Comparison) -> MetricChange | None:
    """The verdict on the prompt: by processor time where that on the token rests on it, and launches say it."""
    known = {change.name: change for change in comparison.metrics}
    by_processor = known.get(TTFT_CPU) if comparison.verdict_from == "processor" else None
    return by_processor or known.get(TTFT)
