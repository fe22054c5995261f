"""The check pass of onnxruntime-genai: finds out whether the model loads, and whether its scores are right.

onnxruntime-genai takes a prompt and keeps the cache itself, so of the cell's inputs only the token ids are used. The
scores after this prompt are compared with those that a plain session of ONNX Runtime computes from the same model.
"""

import importlib.metadata
from dataclasses import replace
from typing import Any

import numpy as np

from worker.runner import faults, memory, parity
from worker.runner.arrays import Arrays, load_arrays, save_arrays
from worker.runner.engines import genai
from worker.runner.engines.onnxruntime import open_engine
from worker.runner.order import ONNXRUNTIME, Order, PhaseTimer
from worker.runner.parity import Array
from worker.runner.scenarios.decoder_ports import Steps, describe_decoder, is_token_input

# the output's name in the report
SCORES = "logits behind the prompt"
MAX_PROMPT_TOKENS = 64


def run_check(order: Order, *, timer: PhaseTimer) -> dict[str, object]:
    """Load the model, compute the scores after a prompt, and return the fields of a CheckReport.

    Import, loading and the first token are timed separately. Where a plain session cannot compute the scores, nothing
    is compared. The scores are written to the file `order.keep`; None keeps none. Raises Refusal where the model does
    not load or run.
    """
    prompt = _choose_prompt(load_arrays(order.inputs))
    loaded = genai.load_model(order, genai.GenerationRequest(prompt, 1), timer=timer)
    facts: dict[str, object] = {"requested_providers": loaded.requested, "active_providers": loaded.active}
    with faults.translate_errors("run", **facts):
        with timer.phase("first"):
            scores = _compute_scores(loaded)
        facts["peak_memory_bytes"] = memory.read_peak_bytes()
        again = _compute_scores(loaded)
    if order.keep is not None:
        save_arrays(order.keep, {SCORES: scores})
    plain = _compute_plain_scores(order, prompt)
    return {
        **facts,
        **{f"{name}_ms": timer.phases_ms[name] for name in ("import", "session", "first")},
        "outputs": [parity.compare_output(SCORES, scores, plain, atol=order.atol, rtol=order.rtol)],
        "is_repeatable": parity.are_bit_equal(scores, again),
        "packages": {package.metadata["Name"]: package.version for package in importlib.metadata.distributions()},
    }


def _choose_prompt(inputs: Arrays) -> Array:
    """Choose the first row of token ids in the inputs, up to MAX_PROMPT_TOKENS; token 0 where there are none."""
    for name, array in inputs.items():
        if is_token_input(name) and array.ndim == 2 and array.dtype.kind == "i" and array.size:
            return np.ascontiguousarray(array[:1, :MAX_PROMPT_TOKENS]).astype(np.int32)
    return np.zeros((1, 1), dtype=np.int32)


def _compute_scores(loaded: genai.LoadedModel) -> Array:
    generator = loaded.make_generator()
    generator.append_tokens(loaded.request.prompt)
    scores: Array = np.array(generator.get_logits(), dtype=np.float32).reshape(-1)
    return scores


def _compute_plain_scores(order: Order, prompt: Array) -> Array | None:
    """Compute the scores by a plain session of ONNX Runtime; None where it cannot bind the model's caches or fails."""
    plain = replace(order, engine=ONNXRUNTIME)
    try:
        session: Any = open_engine(plain, timer=PhaseTimer()).session
        steps = Steps(session, describe_decoder(session), prompt=prompt, new=1)
        steps.calls()[0]()
    except Exception:  # one of ONNX Runtime's own classes, or a Refusal
        return None
    scores: Array = np.array(steps.scores[0], dtype=np.float32).reshape(-1)
    return scores
