"""Times generations of onnxruntime-genai, and in one of them the sampler without the graph."""

import time
from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np

from worker.runner import windows
from worker.runner.engines import genai
from worker.runner.order import BudgetOrder
from worker.runner.parity import Array
from worker.runner.scenarios import token_choice
from worker.runner.scenarios.generated import GENERATIONS, MAX_S, GenerationTimes

# drawing a token may take longer than the graph, so only this many draws are timed
MAX_SAMPLED = 32
_MS = 1e-6


class TimedGenerations(GenerationTimes):
    """Runs generations, and keeps the times of the prompt and of every token in ns, and the tokens.

    `prompt_ms` is the median time from the start until the prompt is read, and `first_ms` that until the first token is
    there; `first_cpu_ms` is its thread CPU time, None where the clock stood still.
    """

    def __init__(self, loaded: genai.LoadedModel) -> None:
        self._loaded = loaded
        self._prompts_ns, self._firsts_ns, self._firsts_cpu_ns = array("Q"), array("Q"), array("Q")
        self._steps_ns = array("Q")
        self._cpu_ns = array("Q")
        # the new tokens of each generation, [sequence, token]
        self.rows: list[Array] = []
        self.wall_ns = 0
        self.cpu_ns = 0

    def run(self) -> None:
        """Run one generation, and add its times and tokens; making its generator is not timed."""
        clock, spent, request = time.perf_counter_ns, time.thread_time_ns, self._loaded.request
        generator = self._loaded.make_generator()
        step = generator.generate_next_token
        cpu_began, began = spent(), clock()
        generator.append_tokens(request.prompt)
        prompted = clock()
        step()
        before, cpu_before = clock(), spent()
        self._prompts_ns.append(prompted - began)
        self._firsts_ns.append(before - began)
        self._firsts_cpu_ns.append(cpu_before - cpu_began)
        for _ in range(request.new - 1):
            step()
            now, cpu_now = clock(), spent()
            self._steps_ns.append(now - before)
            self._cpu_ns.append(cpu_now - cpu_before)
            before, cpu_before = now, cpu_now
        self.wall_ns += before - began
        self.cpu_ns += cpu_before - cpu_began
        self.rows.append(np.stack([_read_new_tokens(generator, request, row) for row in range(len(request.prompt))]))

    def repeat(self, budget: BudgetOrder) -> None:
        """Run generations until there are enough of them and enough seconds; none begins after MAX_S seconds."""
        at_least_ns = int(max(budget.window_s, budget.at_least_s) * 1e9)
        while self.wall_ns < MAX_S * 1e9 and (len(self.rows) < GENERATIONS or self.wall_ns < at_least_ns):
            self.run()

    @property
    def prompt_ms(self) -> float:
        return float(np.median(self._prompts_ns)) * _MS

    @property
    def first_ms(self) -> float:
        return float(np.median(self._firsts_ns)) * _MS

    @property
    def first_cpu_ms(self) -> float | None:
        return windows.compute_positive_median(self._firsts_cpu_ns, scale=_MS)

    def list_step_durations(self) -> windows.Durations:
        """List the ns of each token after the first, [generation, step]."""
        return np.array(self._steps_ns, dtype=np.uint64).reshape(-1, self._loaded.request.new - 1)

    def compute_cpu_p50_ms(self) -> float | None:
        """Compute the thread CPU time of a token after the first in ms, the median of the generations' means.

        None where the clock stood still.
        """
        spent = np.array(self._cpu_ns, dtype=np.float64).reshape(-1, self._loaded.request.new - 1).mean(axis=1)
        return windows.compute_positive_median(spent, scale=_MS)


@dataclass(frozen=True)
class SamplerTimes:
    """Times of choosing a token, without the graph, and the gap of the two best scores at each token.

    The times are medians; the CPU time is None where the clock stood still. `gaps` is empty where tokens are drawn.
    """

    outside_ms: float
    outside_cpu_ms: float | None
    gaps: list[float]


def time_sampler(loaded: genai.LoadedModel) -> SamplerTimes:
    """Time the sampler in a generation that asks for the scores first: `get_logits` runs the graph without it.

    The times are medians without the first token. Of a generation that draws tokens, only MAX_SAMPLED are timed.
    """
    request, clock, spent = loaded.request, time.perf_counter_ns, time.thread_time_ns
    generator = loaded.make_generator()
    generator.append_tokens(request.prompt)
    walls, spents, gaps = [], [], []
    count = min(MAX_SAMPLED, request.new) if request.is_sampled else request.new
    for _ in range(count):
        scores = np.array(generator.get_logits(), dtype=np.float32).reshape(len(request.prompt), -1)[0]
        gaps.append(token_choice.measure_score_gap(scores))
        cpu_began, began = spent(), clock()
        generator.generate_next_token()
        walls.append(clock() - began)
        spents.append(spent() - cpu_began)
    cpu_ms = windows.compute_positive_median(spents[1:], scale=_MS)
    return SamplerTimes(float(np.median(walls[1:])) * _MS, cpu_ms, [] if request.is_sampled else gaps)


def count_differing_rows(loaded: genai.LoadedModel, rows: Array) -> float | None:
    """Count how many of the first and the last sequence get other tokens alone than in the batch: 0, 1 or 2.

    `rows` are the batch's new tokens, [sequence, token]. None for a single sequence, and where tokens are drawn.
    """
    request = loaded.request
    if request.is_sampled or len(rows) == 1:
        return None
    differing = 0
    for row in (0, len(rows) - 1):
        generator = loaded.make_generator(batch=1)
        generator.append_tokens(np.ascontiguousarray(request.prompt[row : row + 1]))
        for _ in range(request.new):
            generator.generate_next_token()
        differing += bool(np.any(_read_new_tokens(generator, request, 0) != rows[row]))
    return float(differing)


def _read_new_tokens(generator: Any, request: genai.GenerationRequest, row: int) -> Array:
    tokens: Array = np.array(generator.get_sequence(row)[request.prompt.shape[1] :], dtype=np.int64)
    return tokens
