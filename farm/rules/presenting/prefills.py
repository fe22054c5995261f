"""Reads the secondary verdicts of cells that generate: on the prompt (prefill), and on tokens per second."""

from typing import cast

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.contract.verdicts import Word
from farm.rules.cells import scenarios
from farm.rules.cells.scenario_metrics import TOKENS_RATE, TTFT, TTFT_CPU
from farm.rules.comparing.quantities import Change, Quantity

# explains what items per second mean for a cell that generates
ITEMS_NOTE = "new tokens of all sequences, worked out from the time of one, without the prompt"


def is_generated(cell: Cell) -> bool:
    """Whether the cell's scenario generates tokens from prompts, even if the cell has no figures."""
    return scenarios.parse_recorded(cell.scenario).takes_prompts


def find_prefill(comparison: Comparison) -> MetricChange | None:
    """Return the change of the time for the prompt; None where that was not judged.

    The change is one of processor time where the comparison's verdict rests on that and launches report it.
    """
    changes = {change.name: change for change in comparison.metrics}
    by_processor = changes.get(TTFT_CPU) if comparison.verdict_from == "processor" else None
    return by_processor or changes.get(TTFT)


def list_prompt_and_rate_changes(comparison: Comparison) -> list[Change]:
    """List the change of the prompt's time and then, where the verdict is by the clock, that of tokens per second.

    A change that was not judged is left out.
    """
    changes: list[tuple[Quantity, MetricChange | None]] = [("prefill", find_prefill(comparison))]
    if comparison.verdict_from == "wall":
        changes.append(("tokens", next((change for change in comparison.metrics if change.name == TOKENS_RATE), None)))
    return [
        Change(quantity, cast(Word, change.verdict), change.ratio, change.ci_low, change.ci_high)
        for quantity, change in changes
        if change is not None
    ]
