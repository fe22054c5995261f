"""`generate`: a decoder answers a prompt, then one token after another, the likeliest or drawn by a seed.

The timed call is the graph alone; choosing the token is timed by itself, and so is the way to the first token.
"""

import time
from array import array
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from worker.runner import backends, faults, windows
from worker.runner.order import BudgetOrder
from worker.runner.scenarios import choice, summaries
from worker.runner.scenarios.decoder_ports import Steps, decoder_of
from worker.runner.scenarios.protocol import Call, Room

# generations of a launch at least, and seconds after which none begins
GENERATIONS = 2
MOST_S = 10.0
# stretches of positions of which the time per token is told
STRETCHES = 8


class Generate:
    """Warms up on whole generations, then repeats the same one."""

    def __init__(self, room: Room) -> None:
        self._room = room
        told = room.order.scenario
        self._prompt, self._new, self._seed = int(told["prompt"]), int(told["new"]), int(told["seed"])
        self._steps: Steps
        self._calls: list[Call] = []
        self._warm: windows.Warmup | None = None
        self._taken = Taken(self._new, told)
        self._facts: dict[str, object] = {}

    def open(self) -> None:
        order, timer = self._room.order, self._room.timer
        if order.program is not None:
            raise faults.Refusal("not_supported", "a framework's program is not generated with yet")
        engine = backends.kind_of(order).open_engine(order, timer=timer)
        session = cast(Any, engine).session
        decoder = decoder_of(session)
        drawn = np.random.default_rng(self._seed).integers(0, decoder.vocabulary, (1, self._prompt))
        with faults.translated("run"):
            self._steps = Steps(session, decoder, prompt=drawn, new=self._new)
            calls = self._steps.calls()
            with timer.phase("first"):
                calls[0]()
        wrap = self._room.wrap_call
        self._calls = [wrap(call) for call in calls] if wrap else calls
        self._facts = {"requested_providers": engine.requested, "active_providers": engine.active}
        self._try_all()

    def step(self) -> bool:
        budget, timer = self._room.order.budget, self._room.timer
        if self._warm is None:
            with timer.phase("warmup"):
                self._warm = windows.warm_up(lambda: self._taken.run(self._calls, self._steps), budget)
            self._taken = Taken(self._new, self._room.order.scenario)
            return True
        with timer.phase("window"):
            self._taken.repeat(self._calls, self._steps, budget)
        return False

    def close(self) -> dict[str, object]:
        taken, gate, warm = self._taken, self._room.order.gate_cpu_share, self._warm
        assert warm is not None
        peaks = summaries.peaks()
        graph_ns, outside_ns = taken.graph(), taken.outside()
        steps = graph_ns[:, 1:]
        cpu_share = taken.cpu_ns / taken.wall_ns
        prefill_ms = float(np.median(graph_ns[:, 0])) * 1e-6
        metrics = {
            "tpot_ms": float(np.median(steps)) * 1e-6,
            "ttft_ms": float(np.median(graph_ns[:, 0] + outside_ns[:, 0])) * 1e-6,
            "tokens_per_s": graph_ns.size / (taken.wall_ns * 1e-9),
            "prefill_tokens_per_s": self._prompt / (prefill_ms * 1e-3),
            "outside_ms": float(np.median(outside_ns[:, 1:])) * 1e-6,
            "cache_bytes": float(self._steps.cache_bytes),
            "differing_answers": float(sum(one != taken.tokens[0] for one in taken.tokens[1:])),
        }
        halves = [float(np.median(half)) for half in np.array_split(steps, 2) if half.size]
        sample = {
            **summaries.summarise([steps.reshape(-1)]),
            "warmup_runs": warm.runs * self._new,
            "warmup_ms": warm.wall_ns / 1e6,
            "is_stable": warm.agreed and windows.do_agree(halves),
            "cpu_share": cpu_share,
            "cpu_p50_ms": taken.cpu_p50_ms() if gate is not None else None,
            "is_disturbed": gate is not None and cpu_share < gate,
            "throughput": metrics["tokens_per_s"],
            "phases": [{"name": "prefill", "metrics": {"prefill_ms": prefill_ms}}, *self._by_place(steps)],
            "tokens": taken.tokens[0],
            **summaries.beside(peaks, metrics),
        }
        return {"sample": sample, **self._facts}

    def _try_all(self) -> None:
        """Each step once, so that one which the model refuses is named."""
        for number, call in enumerate(self._calls):
            try:
                call()
            except Exception as error:
                code, text = faults.explain(error, during="run")
                place = f"token {number + 1} of {self._new}, behind {self._prompt + number - 1:,} others"
                raise faults.Refusal(code, f"the model refused {place}: {text}") from error

    def _by_place(self, steps: windows.Durations) -> list[summaries.Phase]:
        """The time per token along the sequence, in a few stretches."""
        found: list[summaries.Phase] = []
        for part in np.array_split(np.arange(steps.shape[1]), min(STRETCHES, steps.shape[1])):
            first, last = int(part[0]), int(part[-1])
            each = float(np.median(steps[:, first : last + 1])) * 1e-6
            place = self._prompt + (first + last) / 2 + 1
            found.append({"name": f"tokens {first + 2} to {last + 2}", "metrics": {"position": place, "tpot_ms": each}})
        return found


class Taken:
    """Of every step of every generation: what the graph took, what choosing the token took, processor time."""

    def __init__(self, new: int, told: Mapping[str, Any]) -> None:
        self._new, self._told = new, told
        self._graph_ns = array("Q")
        self._outside_ns = array("Q")
        self._cpu_ns = array("Q")
        self.tokens: list[list[int]] = []
        self.wall_ns = 0
        self.cpu_ns = 0

    def run(self, calls: list[Call], steps: Steps) -> None:
        """One generation, which draws as the one before did."""
        choose = choice.made(self._told)
        clock, spent, token = time.perf_counter_ns, time.thread_time_ns, steps.token
        scores, chosen = steps.scores[0], []
        began, cpu_began = clock(), spent()
        for call in calls:
            cpu_before, before = spent(), clock()
            call()
            after, cpu_after = clock(), spent()
            choosing = clock()
            best = int(choose(scores)[0])
            token[0, 0] = best
            chosen.append(best)
            done = clock()
            self._graph_ns.append(after - before)
            self._outside_ns.append(done - choosing)
            self._cpu_ns.append(cpu_after - cpu_before)
            scores = steps.scores[1]
        self.wall_ns += clock() - began
        self.cpu_ns += spent() - cpu_began
        self.tokens.append(chosen)

    def repeat(self, calls: list[Call], steps: Steps, budget: BudgetOrder) -> None:
        """Generations until there are enough, and seconds enough."""
        at_least_ns = int(max(budget.window_s, budget.at_least_s) * 1e9)
        while self.wall_ns < MOST_S * 1e9 and (len(self.tokens) < GENERATIONS or self.wall_ns < at_least_ns):
            self.run(calls, steps)

    def graph(self) -> windows.Durations:
        """ns of each step in the graph, [generation, step]; the first step is the prompt."""
        return np.array(self._graph_ns, dtype=np.uint64).reshape(-1, self._new)

    def outside(self) -> windows.Durations:
        """ns of choosing each token, likewise."""
        return np.array(self._outside_ns, dtype=np.uint64).reshape(-1, self._new)

    def cpu_p50_ms(self) -> float | None:
        """Thread CPU time of a step behind the prompt, the median of the generations; None on a clock that stood."""
        spent = np.array(self._cpu_ns, dtype=np.float64).reshape(-1, self._new)[:, 1:].mean(axis=1)
        each = float(np.median(spent)) * 1e-6
        return each if each > 0 else None
