"""The compile pass: a session writes a model with what its provider compiled. It is never timed."""

import os

from worker.runner import faults
from worker.runner.engines.onnxruntime import open_engine
from worker.runner.order import Order, PhaseTimer
from worker.runner.session import Tune


def run_compilation(order: Order, *, timer: PhaseTimer) -> dict[str, object]:
    """Write ONNX Runtime's EPContext model, which contains the compiled code, to `order.keep`, and return its size.

    Raises Refusal where the provider compiled nothing, or the session cannot be opened.
    """
    if order.keep is None:
        raise faults.Refusal("internal", "the order names no file for the compiled model")
    tune: Tune = {
        "config_entries": {"ep.context_enable": "1", "ep.context_file_path": order.keep, "ep.context_embed_mode": "1"}
    }
    open_engine(order, timer=timer, tune=tune)
    if not os.path.isfile(order.keep):
        raise faults.Refusal("not_supported", f"{order.provider} left nothing compiled: it took no part of the model")
    return {"bytes": os.path.getsize(order.keep)}
