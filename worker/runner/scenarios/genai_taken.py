"""Generations of onnxruntime-genai as they were timed, and one that is parted in graph and sampler."""

import time
from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np

from worker.runner import windows
from worker.runner.engines import genai
from worker.runner.order import BudgetOrder
from worker.runner.parity import Array
from worker.runner.scenarios.generated import GENERATIONS, MAX_S, Timed

# tokens whose way outside the graph is timed where they are drawn, which may take longer than the graph
PARTED = 32
_MS = 1e-6


class Taken(Timed):
    """Of every generation: what the prompt, the first token and every further one took, in ns, and the tokens."""

    def __init__(self, loaded: genai.Loaded) -> None:
        self._loaded = loaded
        self._prompts_ns, self._firsts_ns, self._firsts_cpu_ns = array("Q"), array("Q"), array("Q")
        self._steps_ns = array("Q")
        self._cpu_ns = array("Q")
        # of each generation the new tokens, [sequence, token]
        self.rows: list[Array] = []
        self.wall_ns = 0
        self.cpu_ns = 0

    def run(self) -> None:
        """One generation, with a generator of its own: making it is no part of it."""
        clock, spent, asked = time.perf_counter_ns, time.thread_time_ns, self._loaded.asked
        generator = self._loaded.begin()
        step = generator.generate_next_token
        cpu_began, began = spent(), clock()
        generator.append_tokens(asked.prompt)
        prompted = clock()
        step()
        before, cpu_before = clock(), spent()
        self._prompts_ns.append(prompted - began)
        self._firsts_ns.append(before - began)
        self._firsts_cpu_ns.append(cpu_before - cpu_began)
        for _ in range(asked.new - 1):
            step()
            now, cpu_now = clock(), spent()
            self._steps_ns.append(now - before)
            self._cpu_ns.append(cpu_now - cpu_before)
            before, cpu_before = now, cpu_now
        self.wall_ns += before - began
        self.cpu_ns += cpu_before - cpu_began
        self.rows.append(np.stack([_row(generator, asked, row) for row in range(len(asked.prompt))]))

    def repeat(self, budget: BudgetOrder) -> None:
        """Generations until there are enough, and seconds enough."""
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
        each = float(np.median(self._firsts_cpu_ns)) * _MS
        return each if each > 0 else None

    def steps(self) -> windows.Durations:
        """ns of each token behind the first, [generation, step]."""
        return np.array(self._steps_ns, dtype=np.uint64).reshape(-1, self._loaded.asked.new - 1)

    def cpu_p50_ms(self) -> float | None:
        """Thread CPU time of such a token, the median of the generations; None on a clock that stood."""
        spent = np.array(self._cpu_ns, dtype=np.float64).reshape(-1, self._loaded.asked.new - 1).mean(axis=1)
        each = float(np.median(spent)) * _MS
        return each if each > 0 else None


@dataclass(frozen=True)
class Parted:
    """Choosing a token apart from the graph, and how far the best score stood above the second at each token."""

    outside_ms: float
    outside_cpu_ms: float | None
    gaps: list[float]


def time_sampler_apart(loaded: genai.Loaded) -> Parted:
    """A generation that asks for the scores first: `get_logits` runs the graph, the next token is then only chosen."""
    asked, clock, spent = loaded.asked, time.perf_counter_ns, time.thread_time_ns
    generator = loaded.begin()
    generator.append_tokens(asked.prompt)
    walls, spents, gaps = [], [], []
    count = min(PARTED, asked.new) if asked.draws else asked.new
    for _ in range(count):
        scores = np.array(generator.get_logits(), dtype=np.float32).reshape(len(asked.prompt), -1)[0]
        second, first = np.partition(scores, -2)[-2:] if scores.size > 1 else (scores[0], scores[0])
        gaps.append(float(f"{float(first) - float(second):.4g}"))
        cpu_began, began = spent(), clock()
        generator.generate_next_token()
        walls.append(clock() - began)
        spents.append(spent() - cpu_began)
    cpu_ms = float(np.median(spents[1:])) * _MS
    return Parted(float(np.median(walls[1:])) * _MS, cpu_ms if cpu_ms > 0 else None, [] if asked.draws else gaps)


def count_rows_differing_alone(loaded: genai.Loaded, rows: Array) -> float | None:
    """How many of the first and last sequence have other tokens than alone; None for a single one, and for draws."""
    asked = loaded.asked
    if asked.draws or len(rows) == 1:
        return None
    found = 0
    for row in (0, len(rows) - 1):
        generator = loaded.begin(batch=1)
        generator.append_tokens(np.ascontiguousarray(asked.prompt[row : row + 1]))
        for _ in range(asked.new):
            generator.generate_next_token()
        found += bool(np.any(_row(generator, asked, 0) != rows[row]))
    return float(found)


def _row(generator: Any, asked: genai.Asked, row: int) -> Array:
    found: Array = np.array(generator.get_sequence(row)[asked.prompt.shape[1] :], dtype=np.int64)
    return found
