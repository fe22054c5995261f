"""`generate` by onnxruntime-genai's own loop, called as its users call it.

One call runs graph and sampler, so `tpot_ms` includes both. The sampler is timed in a separate generation, which asks
for the scores before each token.
"""

import os

import numpy as np

from worker.runner import faults, windows
from worker.runner.engines import genai
from worker.runner.parity import Array
from worker.runner.scenarios import prompts, summaries
from worker.runner.scenarios.genai_times import SamplerTimes, TimedGenerations, count_differing_rows, time_sampler
from worker.runner.scenarios.protocol import LaunchContext
from worker.runner.scenarios.teacher_forcing import TeacherForcing


class GenerateByGenai:
    """Scores a given text, warms up on whole generations, repeats the same one, and times the sampler in another."""

    def __init__(self, context: LaunchContext) -> None:
        self._context = context
        self._settings = context.order.scenario
        self._loaded: genai.LoadedModel
        self._generations: TimedGenerations
        self._forced: TeacherForcing
        self._sampler_times: SamplerTimes
        self._differing_rows: float | None = None
        self._warm: windows.Warmup | None = None

    def open(self) -> None:
        """Load the model, run one generation, and score a given text, before generations are timed.

        Raises Refusal where the model does not load, or a run fails.
        """
        order, timer, settings = self._context.order, self._context.timer, self._settings
        vocabulary = genai.read_model_limits(os.path.dirname(order.model)).vocabulary
        request = genai.GenerationRequest(
            prompts.load_prompts(order, vocabulary=vocabulary).astype(np.int32),
            int(settings["new"]),
            **{name: settings[name] for name in ("sampling", "limit", "temperature") if name in settings},
            seed=int(settings["seed"]),
        )
        self._loaded = genai.load_model(order, request, timer=timer)
        self._generations = TimedGenerations(self._loaded)
        with timer.phase("first"), faults.translate_errors("run"):
            self._generations.run()
        with timer.phase("told"), faults.translate_errors("run"):
            self._forced = TeacherForcing(settings, vocabulary=vocabulary)
            self._score(prompts.draw_forced_tokens(settings, vocabulary=vocabulary))

    def step(self) -> bool:
        """Warm up at the first call; at the second, measure, and time the sampler. Return whether another follows.

        After the sampler, the first and the last prompt of a batch are generated alone, to compare their tokens.
        """
        budget, timer = self._context.order.budget, self._context.timer
        if self._warm is None:
            with timer.phase("warmup"):
                self._warm = windows.warm_up(self._generations.run, budget)
            self._generations = TimedGenerations(self._loaded)
            return True
        with timer.phase("window"):
            self._generations.repeat(budget)
        with timer.phase("parted"):
            self._sampler_times = time_sampler(self._loaded)
            self._differing_rows = count_differing_rows(self._loaded, self._generations.rows[0])
        return False

    def close(self) -> dict[str, object]:
        """Return the sample, with times, tokens and scores, and the providers."""
        generations, warm, request = self._generations, self._warm, self._loaded.request
        gate = self._context.order.gate_cpu_share
        assert warm is not None
        peaks = summaries.read_memory_peaks()
        metrics = self._metrics(is_gated=gate is not None)
        sample = {
            **generations.make_sample_fields(warm, length=request.prompt.shape[1], new=request.new, gate=gate),
            "throughput": metrics["tokens_per_s"],
            "tokens": generations.rows[0][0].tolist(),
            "gaps": self._sampler_times.gaps,
            "forced": self._forced.answer,
            **summaries.make_other_metrics(peaks, metrics),
        }
        facts = {"requested_providers": self._loaded.requested, "active_providers": self._loaded.active}
        return {"sample": sample, **facts}

    def _metrics(self, *, is_gated: bool) -> dict[str, float | None]:
        generations, (batch, length) = self._generations, self._loaded.request.prompt.shape
        token_count = batch * self._loaded.request.new * len(generations.rows)
        return {
            "tpot_ms": float(np.median(generations.list_step_durations())) * 1e-6,
            "ttft_ms": generations.first_ms,
            "ttft_cpu_ms": generations.first_cpu_ms if is_gated else None,
            "tokens_per_s": token_count / (generations.wall_ns * 1e-9),
            "prefill_tokens_per_s": batch * length / (generations.prompt_ms * 1e-3),
            "outside_ms": self._sampler_times.outside_ms,
            "outside_cpu_ms": self._sampler_times.outside_cpu_ms,
            "tpot_growth_ms_per_1000": generations.compute_growth_ms(),
            "differing_answers": float(sum(bool(np.any(rows != generations.rows[0])) for rows in generations.rows)),
            "differing_rows": self._differing_rows,
        }

    def _score(self, tokens: Array) -> None:
        """Score the first prompt and then one token after another, and keep the scores at the places to compare."""
        generator = self._loaded.make_generator(batch=1)
        generator.append_tokens(np.ascontiguousarray(self._loaded.request.prompt[:1]))
        for number, token in enumerate(tokens[:, 0].tolist()):
            if number in self._forced.places:
                self._forced.keep_scores(np.array(generator.get_logits(), dtype=np.float32).reshape(-1))
            if number + 1 < len(tokens):
                generator.append_tokens(np.array([[token]], dtype=np.int32))
