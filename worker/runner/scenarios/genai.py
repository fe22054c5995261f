"""`generate` by onnxruntime-genai: its own loop, called as its users call it.

Graph and sampler are one call of its, and so `tpot_ms` is of both; what is outside the graph is timed in a generation
of its own, where the scores are asked for before the token is.
"""

import os
from math import isfinite

import numpy as np

from worker.runner import faults, windows
from worker.runner.engines import genai
from worker.runner.parity import Array
from worker.runner.scenarios import prompts, summaries
from worker.runner.scenarios.genai_taken import Parted, Taken, count_rows_differing_alone, time_sampler_apart
from worker.runner.scenarios.protocol import Room
from worker.runner.scenarios.teacher_forcing import Forced


class GenerateByGenai:
    """Scores a given text, warms up on whole generations, repeats the same one, and parts one in graph and sampler."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._settings = room.order.scenario
        self._loaded: genai.Loaded
        self._taken: Taken
        self._forced: Forced
        self._parted: Parted
        self._differing_rows: float | None = None
        self._warm: windows.Warmup | None = None

    def open(self) -> None:
        order, timer, settings = self._room.order, self._room.timer, self._settings
        vocabulary = genai.read_model_limits(os.path.dirname(order.model)).vocabulary
        asked = genai.Asked(
            prompts.load_prompts(order, vocabulary=vocabulary).astype(np.int32),
            int(settings["new"]),
            **{name: settings[name] for name in ("sampling", "limit", "temperature") if name in settings},
            seed=int(settings["seed"]),
        )
        self._loaded = genai.load(order, asked, timer=timer)
        self._taken = Taken(self._loaded)
        with timer.phase("first"), faults.translate_errors("run"):
            self._taken.run()
        with timer.phase("told"), faults.translate_errors("run"):
            self._forced = Forced(settings, vocabulary=vocabulary)
            self._score(prompts.draw_forced_tokens(settings, vocabulary=vocabulary))

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
            self._parted = time_sampler_apart(self._loaded)
            self._differing_rows = count_rows_differing_alone(self._loaded, self._taken.rows[0])
        return False

    def close(self) -> dict[str, object]:
        taken, warm, asked = self._taken, self._warm, self._loaded.asked
        gate = self._room.order.gate_cpu_share
        assert warm is not None
        peaks = summaries.read_memory_peaks()
        metrics = self._metrics(is_gated=gate is not None)
        sample = {
            **taken.sample(warm, length=asked.prompt.shape[1], new=asked.new, gate=gate),
            "throughput": metrics["tokens_per_s"],
            "tokens": taken.rows[0][0].tolist(),
            "gaps": [gap if isfinite(gap) else 0.0 for gap in self._parted.gaps],
            "forced": self._forced.answer,
            **summaries.make_other_metrics(peaks, metrics),
        }
        facts = {"requested_providers": self._loaded.requested, "active_providers": self._loaded.active}
        return {"sample": sample, **facts}

    def _metrics(self, *, is_gated: bool) -> dict[str, float | None]:
        taken, (batch, length) = self._taken, self._loaded.asked.prompt.shape
        made = batch * self._loaded.asked.new * len(taken.rows)
        return {
            "tpot_ms": float(np.median(taken.steps())) * 1e-6,
            "ttft_ms": taken.first_ms,
            "ttft_cpu_ms": taken.first_cpu_ms if is_gated else None,
            "tokens_per_s": made / (taken.wall_ns * 1e-9),
            "prefill_tokens_per_s": batch * length / (taken.prompt_ms * 1e-3),
            "outside_ms": self._parted.outside_ms,
            "outside_cpu_ms": self._parted.outside_cpu_ms,
            "tpot_growth_ms_per_1000": taken.growth_ms(),
            "differing_answers": float(sum(bool(np.any(rows != taken.rows[0])) for rows in taken.rows)),
            "differing_rows": self._differing_rows,
        }

    def _score(self, given: Array) -> None:
        """What the model scores of a given text, a token at a time behind the first prompt alone."""
        generator = self._loaded.begin(batch=1)
        generator.append_tokens(np.ascontiguousarray(self._loaded.asked.prompt[:1]))
        for number, token in enumerate(given[:, 0].tolist()):
            if number in self._forced.places:
                self._forced.keep(np.array(generator.get_logits(), dtype=np.float32).reshape(-1))
            if number + 1 < len(given):
                generator.append_tokens(np.array([[token]], dtype=np.int32))
