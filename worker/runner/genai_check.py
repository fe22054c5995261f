"""The check pass of onnxruntime-genai: finds out whether the model loads, and whether its scores are the graph's.

The cell's own inputs hold a cache, which it cannot take. So their token ids are the prompt, and the scores after it are
compared with those of a plain session of the same ONNX Runtime.
"""

import importlib.metadata
from dataclasses import replace
from typing import Any

import numpy as np

from worker.runner import faults, memory, parity
from worker.runner.arrays import Arrays, load_arrays, save_arrays
from worker.runner.engines import genai
from worker.runner.engines.onnxruntime import open_engine
from worker.runner.order import ONNXRUNTIME, Order, PhaseTimer, WrapCall
from worker.runner.parity import Array
from worker.runner.scenarios.decoder_ports import Steps, describe_decoder

SCORES = "logits behind the prompt"
# token ids of the prompt that is checked with
MAX_TOKENS = 64


def run_check(order: Order, *, timer: PhaseTimer, wrap_call: WrapCall | None = None) -> dict[str, object]:
    """Time import, loading and the first token apart, compare the scores, and answer the fields of a CheckReport.

    The scores are kept in `order.keep` where that names a file. `wrap_call` is not used: no call here can be wrapped.

    Raises Refusal where the model does not load or run.
    """
    prompt = _choose_prompt(load_arrays(order.inputs), order)
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


def _compute_scores(loaded: genai.LoadedModel) -> Array:
    generator = loaded.make_generator()
    generator.append_tokens(loaded.asked.prompt)
    found: Array = np.array(generator.get_logits(), dtype=np.float32).reshape(-1)
    return found


def _choose_prompt(given: Arrays, order: Order) -> Array:
    """Choose the first row of the inputs that hold token ids, cut to MAX_TOKENS."""
    rows = [array for name, array in given.items() if array.ndim == 2 and array.dtype.kind == "i" and "id" in name]
    ids = [array for array in rows if array.size] or [np.zeros((1, 1), dtype=np.int64)]
    return np.ascontiguousarray(ids[0][:1, :MAX_TOKENS]).astype(np.int32)


def _compute_plain_scores(order: Order, prompt: Array) -> Array | None:
    """Compute the scores by a plain session of ONNX Runtime; None where that fails."""
    plain = replace(order, engine=ONNXRUNTIME)
    try:
        session: Any = open_engine(plain, timer=PhaseTimer(launched_ns=None, entered_ns=0)).session
        steps = Steps(session, describe_decoder(session), prompt=prompt, new=1)
        steps.calls()[0]()
    except Exception:  # ONNX Runtime's own classes, or a Refusal: caches of another kind than those that are bound
        return None
    found: Array = np.array(steps.scores[0], dtype=np.float32).reshape(-1)
    return found
