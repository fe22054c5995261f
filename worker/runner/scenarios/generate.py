"""`generate`: a decoder reads a prompt, then makes one token after another, the likeliest or drawn by a seed.

The timed call is the graph alone. Choosing a token and the first token are timed separately.
"""

from typing import Any, cast

import numpy as np

from worker.runner import faults, windows
from worker.runner.engines.table import find_engine_kind
from worker.runner.order import Call
from worker.runner.scenarios import free_memory, perplexity, prompts, summaries
from worker.runner.scenarios.decoder_ports import Steps, describe_decoder
from worker.runner.scenarios.generated import SeparateRows, TimedGenerations, measure_score_gaps
from worker.runner.scenarios.protocol import LaunchContext
from worker.runner.scenarios.teacher_forcing import TeacherForcing


class Generate:
    """Scores a given text, measures score gaps, warms up on whole generations, then repeats the same one."""

    def __init__(self, context: LaunchContext) -> None:
        self._context = context
        self._settings = context.order.scenario
        self._prompt, self._new = int(self._settings["prompt"]), int(self._settings["new"])
        self._batch = int(self._settings.get("batch", 1))
        self._steps: Steps
        self._separate_rows: SeparateRows | None = None
        self._calls: list[Call] = []
        self._warm: windows.Warmup | None = None
        self._generations = TimedGenerations(self._new, self._settings)
        self._facts: dict[str, object] = {}
        self._forced: TeacherForcing
        self._gaps: list[float] = []
        self._perplexity: float | None = None

    def open(self) -> None:
        """Load the decoder, run the prompt, and compute all scores that are reported, before generations are timed.

        Raises Refusal where the model is no decoder or is a framework's program, a generation does not fit into free
        memory, or a run fails.
        """
        order, timer = self._context.order, self._context.timer
        if not find_engine_kind(order).has_sessions:
            raise faults.Refusal("not_supported", "a framework's program is not generated with yet")
        engine = find_engine_kind(order).open_engine(order, timer=timer)
        session = cast(Any, engine).session
        decoder = describe_decoder(session)
        free_memory.refuse_if_too_large(decoder, prompt=self._prompt, new=self._new, batch=self._batch)
        prompt_rows = prompts.load_prompts(order, vocabulary=decoder.vocabulary)
        with faults.translate_errors("run"):
            self._steps = Steps(session, decoder, prompt=prompt_rows, new=self._new)
            calls = self._steps.calls()
            with timer.phase("first"):
                calls[0]()
        if self._batch > 1:
            self._separate_rows = SeparateRows(session, decoder, prompt_rows)
        self._calls = [timer.wrap_call(call) for call in calls]
        self._facts = {"requested_providers": engine.requested, "active_providers": engine.active}
        with timer.phase("told"):
            self._forced = TeacherForcing(self._settings, vocabulary=decoder.vocabulary)
            self._forced.run(self._calls, self._steps)
            self._gaps = measure_score_gaps(self._calls, self._steps, self._settings)
            if (text := prompts.load_text_to_score(order, vocabulary=decoder.vocabulary)) is not None:
                self._perplexity = perplexity.compute_perplexity(calls[0], self._steps, text)

    def step(self) -> bool:
        """Warm up at the first call, and measure at the second. Return whether another step follows."""
        budget, timer = self._context.order.budget, self._context.timer
        if self._warm is None:
            with timer.phase("warmup"):
                self._warm = windows.warm_up(lambda: self._generations.run(self._calls, self._steps), budget)
            self._generations = TimedGenerations(self._new, self._settings)
            return True
        with timer.phase("window"):
            self._generations.repeat(self._calls, self._steps, budget)
        return False

    def close(self) -> dict[str, object]:
        """Return the sample, with times, tokens and scores, and the providers.

        The first and the last prompt of a batch are generated alone for it, to compare their tokens.
        """
        generations, gate, warm = self._generations, self._context.order.gate_cpu_share, self._warm
        assert warm is not None
        peaks = summaries.read_memory_peaks()
        metrics = self._metrics(is_gated=gate is not None)
        sample = {
            **generations.make_sample_fields(warm, length=self._prompt, new=self._new, gate=gate),
            "throughput": metrics["tokens_per_s"],
            "tokens": generations.tokens[0][:, 0].tolist(),
            "gaps": self._gaps,
            "forced": self._forced.answer,
            **summaries.make_other_metrics(peaks, metrics),
        }
        return {"sample": sample, **self._facts}

    def _metrics(self, *, is_gated: bool) -> dict[str, float | None]:
        generations = self._generations
        graph_ns, outside_ns = generations.list_graph_durations(), generations.list_choice_durations()
        choosing_ms = np.median(outside_ns[:, 0]) * 1e-6
        differing = sum(bool(np.any(tokens != generations.tokens[0])) for tokens in generations.tokens)
        differing_rows = None
        if self._separate_rows is not None:
            differing_rows = self._separate_rows.count_differing(generations.tokens[0], self._settings)
        return {
            "tpot_ms": float(np.median(graph_ns[:, 1:])) * 1e-6,
            "ttft_ms": generations.prompt_ms + float(choosing_ms),
            "ttft_cpu_ms": generations.prompt_cpu_ms if is_gated else None,
            "tokens_per_s": self._batch * graph_ns.size / (generations.wall_ns * 1e-9),
            "prefill_tokens_per_s": self._batch * self._prompt / (generations.prompt_ms * 1e-3),
            "outside_ms": float(np.median(outside_ns[:, 1:])) * 1e-6,
            "tpot_growth_ms_per_1000": generations.compute_growth_ms(),
            "cache_bytes": float(self._steps.cache_bytes),
            "differing_answers": float(differing),
            "differing_rows": differing_rows,
            "perplexity": self._perplexity,
        }
