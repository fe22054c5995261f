"""Times generations: how long the graph takes, how long choosing each token takes, and which tokens were chosen."""

import time
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from worker.runner import windows
from worker.runner.order import BudgetOrder, Call
from worker.runner.parity import Array
from worker.runner.scenarios import summaries, token_choice
from worker.runner.scenarios.decoder_ports import Decoder, Steps

# a launch has at least GENERATIONS generations, but begins none after MAX_S seconds
GENERATIONS = 2
MAX_S = 10.0
# at least PROMPTS prompts are timed, but none begins after PROMPTS_S further seconds
PROMPTS, PROMPTS_S = 7, 1.0
# with fewer steps, the growth of the time per token is not computed
MIN_GROWING = 8
# groups of positions for which the answer gives the time per token
POSITION_GROUPS = 8
_MS = 1e-6


class GenerationTimes:
    """Times of generations, with the figures that every engine computes in the same way from its own times.

    Subclasses implement `list_step_durations`, the ns of each step after the prompt, [generation, step]; `prompt_ms`,
    the median time of a prompt; and `compute_cpu_p50_ms`, the thread CPU time of a step, None where it is not known.
    """

    wall_ns: int
    cpu_ns: int

    def list_step_durations(self) -> windows.Durations:
        raise NotImplementedError

    @property
    def prompt_ms(self) -> float:
        raise NotImplementedError

    def compute_cpu_p50_ms(self) -> float | None:
        raise NotImplementedError

    def compute_growth_ms(self) -> float | None:
        """Compute by how many ms the time per token grows over 1,000 positions; None for too few steps.

        It compares the medians of the first and last quarter.
        """
        medians_ns = np.median(self.list_step_durations(), axis=0)
        if medians_ns.size < MIN_GROWING:
            return None
        quarters = np.array_split(medians_ns, 4)
        # the distance from the middle of the first quarter to the middle of the last
        positions = medians_ns.size - (quarters[0].size + quarters[-1].size) / 2
        grown_ns = float(np.median(quarters[-1])) - float(np.median(quarters[0]))
        return float(grown_ns * _MS / positions * 1000.0)

    def make_sample_fields(
        self, warm: windows.Warmup, *, length: int, new: int, gate: float | None
    ) -> dict[str, object]:
        """Make the fields of a Sample that come from times.

        `length` is the number of the prompt's tokens, and `new` that of a generation's. The sample is disturbed if CPU
        time is less than the share `gate` of wall time; None: it never is, and its CPU time is None. The latencies are
        those of the steps after the prompt; the prompt is the phase `prefill`.
        """
        steps, cpu_share = self.list_step_durations(), self.cpu_ns / self.wall_ns
        halves = [float(np.median(half)) for half in np.array_split(steps, 2) if half.size]
        return {
            **summaries.summarise([steps.reshape(-1)]),
            "warmup_runs": warm.runs * new,
            "warmup_ms": warm.wall_ns / 1e6,
            "is_stable": warm.agreed and windows.agree_within_tolerance(halves),
            "cpu_share": cpu_share,
            "cpu_p50_ms": self.compute_cpu_p50_ms() if gate is not None else None,
            "is_disturbed": gate is not None and cpu_share < gate,
            "phases": [
                {"name": "prefill", "metrics": {"prefill_ms": self.prompt_ms}},
                *_group_by_position(steps, length),
            ],
        }


def _group_by_position(steps: windows.Durations, length: int) -> list[summaries.Phase]:
    """Make a phase with the time per token for each of a few groups of positions along the sequence."""
    phases: list[summaries.Phase] = []
    for part in np.array_split(np.arange(steps.shape[1]), min(POSITION_GROUPS, steps.shape[1])):
        first, last = int(part[0]), int(part[-1])
        each = float(np.median(steps[:, first : last + 1])) * _MS
        place = length + (first + last) / 2 + 1
        phases.append({"name": f"tokens {first + 2} to {last + 2}", "metrics": {"position": place, "tpot_ms": each}})
    return phases


@dataclass
class TimedGenerations(GenerationTimes):
    """Runs generations, and records for each step the time of the graph, of choosing a token, and of the processor.

    `prompt_ms` and `prompt_cpu_ms` are medians over all prompts, also those that `repeat` runs alone.
    """

    new: int
    settings: Mapping[str, Any]
    tokens: list[Array] = field(default_factory=list)
    wall_ns: int = 0
    cpu_ns: int = 0
    _graph_ns: "array[int]" = field(default_factory=lambda: array("Q"))
    _outside_ns: "array[int]" = field(default_factory=lambda: array("Q"))
    _cpu_ns: "array[int]" = field(default_factory=lambda: array("Q"))
    _prompts_ns: list[int] = field(default_factory=list)
    _prompts_cpu_ns: list[int] = field(default_factory=list)

    def run(self, calls: list[Call], steps: Steps) -> None:
        """Run one generation, which draws the same tokens as the one before, and add its times and its tokens.

        `calls` has a call for the prompt and one for each further step, on the buffers of `steps`.
        """
        clock, spent, token, choose = (
            time.perf_counter_ns,
            time.thread_time_ns,
            steps.token,
            token_choice.make_chooser(self.settings),
        )
        scores, chosen = steps.scores[0], []
        began, cpu_began = clock(), spent()
        for call in calls:
            cpu_before, before = spent(), clock()
            call()
            after, cpu_after = clock(), spent()
            choosing = clock()
            best = choose(scores)
            token[:, 0] = best
            chosen.append(best)
            done = clock()
            self._graph_ns.append(after - before)
            self._outside_ns.append(done - choosing)
            self._cpu_ns.append(cpu_after - cpu_before)
            scores = steps.scores[1]
        self.wall_ns += clock() - began
        self.cpu_ns += spent() - cpu_began
        self.tokens.append(np.array(chosen))

    def repeat(self, calls: list[Call], steps: Steps, budget: BudgetOrder) -> None:
        """Run generations until there are enough of them and enough seconds, then prompts alone if those are few.

        None begins after MAX_S seconds of generations, and no prompt alone after PROMPTS_S more.
        """
        at_least_ns = int(max(budget.window_s, budget.at_least_s) * 1e9)
        while self.wall_ns < MAX_S * 1e9 and (len(self.tokens) < GENERATIONS or self.wall_ns < at_least_ns):
            self.run(calls, steps)
        self._repeat_prompt(calls[0])

    def _repeat_prompt(self, call: Call) -> None:
        clock, spent = time.perf_counter_ns, time.thread_time_ns
        ends_at = clock() + int(PROMPTS_S * 1e9)
        while len(self.tokens) + len(self._prompts_ns) < PROMPTS and clock() < ends_at:
            cpu_before, before = spent(), clock()
            call()
            self._prompts_ns.append(clock() - before)
            self._prompts_cpu_ns.append(spent() - cpu_before)

    def list_graph_durations(self) -> windows.Durations:
        """List the ns of each step in the graph, [generation, step]; the first step is the prompt."""
        return np.array(self._graph_ns, dtype=np.uint64).reshape(-1, self.new)

    def list_step_durations(self) -> windows.Durations:
        return self.list_graph_durations()[:, 1:]

    def list_choice_durations(self) -> windows.Durations:
        """List the ns of choosing each token, [generation, step]."""
        return np.array(self._outside_ns, dtype=np.uint64).reshape(-1, self.new)

    @property
    def prompt_ms(self) -> float:
        return float(np.median([*self.list_graph_durations()[:, 0].tolist(), *self._prompts_ns])) * _MS

    @property
    def prompt_cpu_ms(self) -> float | None:
        return windows.compute_positive_median([*self._spent()[:, 0].tolist(), *self._prompts_cpu_ns], scale=_MS)

    def compute_cpu_p50_ms(self) -> float | None:
        """Compute the thread CPU time of a step after the prompt in ms, the median of the generations' means.

        None where the clock stood still.
        """
        return windows.compute_positive_median(self._spent()[:, 1:].mean(axis=1), scale=_MS)

    def _spent(self) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
        return np.array(self._cpu_ns, dtype=np.float64).reshape(-1, self.new)


def measure_score_gaps(calls: list[Call], steps: Steps, settings: Mapping[str, Any]) -> list[float]:
    """Run a generation, and measure the gap of the two best scores at each token of the first sequence."""
    choose: Callable[[Array], Array] = token_choice.make_chooser(settings)
    scores, gaps = steps.scores[0], []
    for call in calls:
        call()
        gaps.append(token_choice.measure_score_gap(scores[0]))
        steps.token[:, 0] = choose(scores)
        scores = steps.scores[1]
    return gaps


@dataclass(frozen=True)
class SeparateRows:
    """Generates the first and the last row of a batch alone, to see whether the batch changes their tokens."""

    session: Any
    decoder: Decoder
    prompt: Array

    def count_differing(self, tokens: Array, settings: Mapping[str, Any]) -> float | None:
        """Count how many of the first and the last row get other tokens alone than in the batch: 0, 1 or 2.

        `tokens` are those of the batch, [step, sequence]. None where tokens are drawn.
        """
        if settings.get("sampling", "greedy") != "greedy":
            return None
        differing = 0
        for row in {0, len(self.prompt) - 1}:
            steps = Steps(self.session, self.decoder, prompt=self.prompt[row : row + 1], new=len(tokens))
            taken = TimedGenerations(len(tokens), settings)
            taken.run(list(steps.calls()), steps)
            differing += bool(np.any(taken.tokens[0][:, 0] != tokens[:, row]))
        return float(differing)
