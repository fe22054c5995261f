"""Computes how long a generation takes: for the prompt, for decoding and for choosing tokens, all by one clock.

The functions that return times raise KeyError for a cell without those of a generation.
"""

from dataclasses import dataclass

from farm.contract.document_cells import Cell
from farm.rules.cells import scenarios
from farm.rules.cells.scenario_metrics import OUTSIDE, OUTSIDE_CPU, TPOT, TTFT, TTFT_CPU
from farm.rules.presenting.times import Times


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation, from medians of launches.

    `tokens` counts the new tokens of all its sequences. `is_processor` says that the times of the prompt and of
    decoding are processor time.
    """

    prompt_ms: float
    decoding_ms: float
    choosing_ms: float
    tokens: int
    is_processor: bool

    @property
    def total_ms(self) -> float:
        return self.prompt_ms + self.decoding_ms + self.choosing_ms

    @property
    def tokens_per_s(self) -> float:
        return 1000.0 * self.tokens / self.total_ms


def has_generation_times(cell: Cell) -> bool:
    return {TPOT, TTFT, OUTSIDE} <= {metric.name for metric in cell.metrics} and bool(_prompt_ms(cell))


def make_generation(cell: Cell, times: Times) -> Generation:
    """Compute the times of a cell, by the clock of its time per token; `has_generation_times` must be true for it."""
    figures, new_tokens = cell.figures, scenarios.parse_recorded(cell.scenario).new_tokens
    is_processor = cell.id in times.by_processor and TTFT_CPU in figures
    choosing_ms = figures[OUTSIDE_CPU if is_processor and OUTSIDE_CPU in figures else OUTSIDE].value
    token_ms = times.with_compared_time(cell).p50_ms if is_processor else figures[TPOT].value
    # Only a call that chooses the token too reports the processor time of choosing.
    choosing_in_call_ms = choosing_ms if OUTSIDE_CPU in figures else 0.0
    return Generation(
        prompt_ms=figures[TTFT_CPU].value if is_processor else _prompt_ms(cell),
        decoding_ms=max(0.0, (token_ms or 0.0) - choosing_in_call_ms) * (new_tokens - 1),
        choosing_ms=choosing_ms * new_tokens,
        tokens=new_tokens * (cell.batch or 1),
        is_processor=is_processor,
    )


def first_token_ms(cell: Cell, times: Times) -> float:
    figures = cell.figures
    return figures[TTFT_CPU if cell.id in times.by_processor and TTFT_CPU in figures else TTFT].value


def _prompt_ms(cell: Cell) -> float:
    return next((phase.metrics["prefill_ms"] for phase in cell.phases if "prefill_ms" in phase.metrics), 0.0)
