"""The check pass: does the cell load, on which providers, how does it start, is it right."""

import importlib.metadata
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime

from worker.runner import faults, memory, parity
from worker.runner.engine import Engine, open_engine
from worker.runner.feeding import Arrays, Feed, choose_inputs, load_arrays
from worker.runner.order import Order, PhaseTimer


def run_check(order: Order, *, timer: PhaseTimer, wrap_call: Callable[..., Any] | None = None) -> dict[str, Any]:
    """Import, session and first inference timed apart; outputs against the reference; a repeat; a row of the batch."""
    inputs = load_arrays(order.inputs)
    engine = open_engine(order, timer=timer)
    facts: dict[str, Any] = {"requested_providers": engine.requested, "active_providers": engine.active}
    inputs = choose_inputs(engine, inputs)
    with faults.translated("run", **facts):
        feed = Feed(engine, inputs)
        with timer.phase("first"):
            feed.run_first()
        facts["peak_memory_bytes"] = memory.peak_bytes()
        outputs = feed.outputs()
        feed.settle()
        again = feed.outputs()
        facts["batch_row_max_abs"] = _row_difference(order, engine=engine, inputs=inputs, outputs=outputs)
    reference = load_arrays(order.reference) if order.reference else {}
    return {
        **facts,
        **{f"{name}_ms": timer.phases_ms[name] for name in ("import", "session", "first")},
        "outputs": [
            parity.compare_output(name, value, reference.get(name), atol=order.atol, rtol=order.rtol)
            for name, value in outputs.items()
        ],
        "is_repeatable": all(parity.are_bit_equal(value, again[name]) for name, value in outputs.items()),
        "packages": _packages(),
        "executed_precision": _precision(engine),
    }


def _row_difference(order: Order, *, engine: Engine, inputs: Arrays, outputs: dict[str, Any]) -> float | None:
    """Row 0 of the batch against the same row alone: a model that mixes rows of a batch is wrong in production.

    None where the model takes one batch size only, or where no output has the batch as its first dimension.
    """
    batch = order.batch
    if batch is None or batch < 2 or not _takes_one_row(engine, inputs=inputs, batch=batch):
        return None
    try:
        alone = Feed(engine, {name: np.ascontiguousarray(array[:1]) for name, array in inputs.items()})
        alone.run_first()
    except Exception as error:
        # a dynamic first dimension that is none after all (a Reshape with the batch baked in) is no fault of the cell
        if faults.explain(error, during="run")[0] == "out_of_memory":
            raise
        return None
    rows = alone.outputs()
    differences = [
        parity.largest_difference(rows[name], value[:1])
        for name, value in outputs.items()
        if isinstance(value, np.ndarray) and value.ndim > 0 and value.shape[0] == batch
    ]
    found = [value for value in differences if value is not None]
    return max(found) if found else None


def _takes_one_row(engine: Engine, *, inputs: Arrays, batch: int) -> bool:
    dynamic = all(node.shape and not isinstance(node.shape[0], int) for node in engine.session.get_inputs())
    return dynamic and all(array.ndim > 0 and array.shape[0] == batch for array in inputs.values())


def _packages() -> dict[str, str]:
    """Installed packages of this environment, and the version onnxruntime says of itself."""
    found = {entry.metadata["Name"]: entry.version for entry in importlib.metadata.distributions()}
    return {**dict(sorted(found.items())), "onnxruntime (imported)": onnxruntime.__version__}


def _precision(engine: Engine) -> str | None:
    """The provider's own word on the precision it executes in, where its options tell one."""
    for name, value in engine.provider_options.items():
        if name.lower() in ("precision", "inference_precision", "inference_precision_hint") and value:
            return str(value).lower()
    return None
