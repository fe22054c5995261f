"""`generate` by onnxruntime-genai: its own loop, called as its users call it.

Graph and sampler are one call of its, and so `tpot_ms` is of both; what is outside the graph is timed in a generation
of its own, where the scores are asked for before the token is.
"""

import os
import time
from array import array
from typing import Any

import numpy as np

from worker.runner import faults, genai, windows
from worker.runner.order import BudgetOrder
from worker.runner.scenarios import summaries
from worker.runner.scenarios.protocol import Room

# generations of a launch at least, and seconds after which none begins
GENERATIONS = 2
MOST_S = 10.0
# stretches of positions of which the time per token is told
STRETCHES = 8
# tokens whose way outside the graph is timed
PARTED = 32


class GenerateByGenai:
    """Warms up on whole generations, repeats the same one, and then parts one into graph and sampler."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._loaded: genai.Loaded
        self._taken: Taken
        self._warm: windows.Warmup | None = None
        self._parted: tuple[float, float | None] = (0.0, None)

    def open(self) -> None:
        order, timer = self._room.order, self._room.timer
        wanted = order.scenario
        told = genai.told_by(os.path.dirname(order.model))
        seed, batch = int(wanted["seed"]), int(wanted.get("batch", 1))
        asked = genai.Asked(
            genai.drawn_prompt(told, length=int(wanted["prompt"]), seed=seed, batch=batch),
            int(wanted["new"]),
            **{name: wanted[name] for name in ("sampling", "limit", "temperature") if name in wanted},
            seed=seed,
        )
        self._loaded = genai.load(order, asked, timer=timer)
        self._taken = Taken(self._loaded)
        with timer.phase("first"), faults.translated("run"):
            self._taken.run()

    def step(self) -> bool:
        budget, timer = self._room.order.budget, self._room.timer
        if self._warm is None:
            with timer.phase("warmup"):
                self._warm = windows.warm_up(self._taken.run, budget)
            self._taken = Taken(self._loaded)
            return True
        with timer.phase("window"):
            self._taken.repeat(budget)
        with timer.phase("parted"):
            self._parted = outside_ms(self._loaded)
        return False

    def close(self) -> dict[str, object]:
        taken, warm, asked = self._taken, self._warm, self._loaded.asked
        gate = self._room.order.gate_cpu_share
        assert warm is not None
        peaks = summaries.peaks()
        steps, first = taken.steps(), np.array(taken.first_ns)
        prefill_s = float(np.median(first[::2])) * 1e-9
        cpu_share = taken.cpu_ns / taken.wall_ns
        batch, length = asked.prompt.shape
        metrics: dict[str, float | None] = {
            "tpot_ms": float(np.median(steps)) * 1e-6,
            "ttft_ms": float(np.median(first[::2] + first[1::2])) * 1e-6,
            "tokens_per_s": batch * asked.new * len(taken.tokens) / (taken.wall_ns * 1e-9),
            "prefill_tokens_per_s": batch * length / prefill_s,
            "outside_ms": self._parted[0],
            "outside_cpu_ms": self._parted[1],
            "differing_answers": float(sum(one != taken.tokens[0] for one in taken.tokens[1:])),
        }
        halves = [float(np.median(half)) for half in np.array_split(steps, 2) if half.size]
        sample = {
            **summaries.summarise([steps.reshape(-1)]),
            "warmup_runs": warm.runs * asked.new,
            "warmup_ms": warm.wall_ns / 1e6,
            "is_stable": warm.agreed and windows.do_agree(halves),
            "cpu_share": cpu_share,
            "cpu_p50_ms": taken.cpu_p50_ms() if gate is not None else None,
            "is_disturbed": gate is not None and cpu_share < gate,
            "throughput": metrics["tokens_per_s"],
            "phases": [{"name": "prefill", "metrics": {"prefill_ms": prefill_s * 1e3}}, *_by_place(steps, length)],
            "tokens": taken.tokens[0],
            **summaries.beside(peaks, metrics),
        }
        return {
            "sample": sample,
            "requested_providers": self._loaded.requested,
            "active_providers": self._loaded.active,
        }


class Taken:
    """Of every generation: what the prompt, the first token and every further one took, in ns, and the tokens."""

    def __init__(self, loaded: genai.Loaded) -> None:
        self._loaded = loaded
        # of each generation two: the prompt, and choosing the first token
        self.first_ns = array("Q")
        self._steps_ns = array("Q")
        self._cpu_ns = array("Q")
        self.tokens: list[list[int]] = []
        self.wall_ns = 0
        self.cpu_ns = 0

    def run(self) -> None:
        """One generation, with a generator of its own: the memory of the last one is no part of it."""
        clock, spent, asked = time.perf_counter_ns, time.thread_time_ns, self._loaded.asked
        generator = self._loaded.begin()
        step = generator.generate_next_token
        began, cpu_began = clock(), spent()
        generator.append_tokens(asked.prompt)
        prompted = clock()
        step()
        before, cpu_before = clock(), spent()
        self.first_ns.extend((prompted - began, before - prompted))
        for _ in range(asked.new - 1):
            step()
            now, cpu_now = clock(), spent()
            self._steps_ns.append(now - before)
            self._cpu_ns.append(cpu_now - cpu_before)
            before, cpu_before = now, cpu_now
        self.wall_ns += before - began
        self.cpu_ns += cpu_before - cpu_began
        self.tokens.append(tokens_of(generator, asked))

    def repeat(self, budget: BudgetOrder) -> None:
        """Generations until there are enough, and seconds enough."""
        at_least_ns = int(max(budget.window_s, budget.at_least_s) * 1e9)
        while self.wall_ns < MOST_S * 1e9 and (len(self.tokens) < GENERATIONS or self.wall_ns < at_least_ns):
            self.run()

    def steps(self) -> windows.Durations:
        """ns of each token behind the first, [generation, step]."""
        return np.array(self._steps_ns, dtype=np.uint64).reshape(-1, self._loaded.asked.new - 1)

    def cpu_p50_ms(self) -> float | None:
        """Thread CPU time of such a token, the median of the generations; None on a clock that stood."""
        spent = np.array(self._cpu_ns, dtype=np.float64).reshape(-1, self._loaded.asked.new - 1).mean(axis=1)
        each = float(np.median(spent)) * 1e-6
        return each if each > 0 else None


def tokens_of(generator: Any, asked: genai.Asked) -> list[int]:
    """What was chosen for the first sequence."""
    return [int(token) for token in generator.get_sequence(0)[asked.prompt.shape[1] :]]


def outside_ms(loaded: genai.Loaded) -> tuple[float, float | None]:
    """Choosing one token, apart from the graph: by the clock, and of the thread's own time where that moves.

    `get_logits` runs the graph for the last token and hands out its scores; `generate_next_token` then only chooses.
    """
    asked = loaded.asked
    generator = loaded.begin()
    generator.append_tokens(asked.prompt)
    generator.generate_next_token()
    walls, spents = [], []
    for _ in range(min(PARTED, asked.new - 1)):
        generator.get_logits()
        cpu_began, began = time.thread_time_ns(), time.perf_counter_ns()
        generator.generate_next_token()
        walls.append(time.perf_counter_ns() - began)
        spents.append(time.thread_time_ns() - cpu_began)
    cpu_ms = float(np.median(spents)) * 1e-6
    return float(np.median(walls)) * 1e-6, cpu_ms if cpu_ms > 0 else None


def _by_place(steps: windows.Durations, length: int) -> list[summaries.Phase]:
    """The time per token along the sequence, in a few stretches."""
    found: list[summaries.Phase] = []
    for part in np.array_split(np.arange(steps.shape[1]), min(STRETCHES, steps.shape[1])):
        first, last = int(part[0]), int(part[-1])
        each = float(np.median(steps[:, first : last + 1])) * 1e-6
        place = length + (first + last) / 2 + 1
        found.append({"name": f"tokens {first + 2} to {last + 2}", "metrics": {"position": place, "tpot_ms": each}})
    return found
