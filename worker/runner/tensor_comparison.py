"""The look pass: compares the outputs of one inference with a reference, value by value. It is never timed."""

import numpy as np

from worker.runner import faults, parity
from worker.runner.arrays import load_arrays, save_arrays
from worker.runner.engines.table import find_engine_kind
from worker.runner.order import Order, PhaseTimer
from worker.runner.parity import Array


def run_tensor_comparison(order: Order, *, timer: PhaseTimer) -> dict[str, object]:
    """Run once, compare the outputs with `order.reference` where there is one, and write them to `order.keep`.

    None as `order.keep` writes nothing. Return the differences of each output under `outputs`. Raises Refusal where the
    cell does not load or run.
    """
    inputs = load_arrays(order.inputs)
    kind = find_engine_kind(order)
    engine = kind.open_engine(order, timer=timer)
    inputs = kind.choose_inputs(engine, inputs)
    with faults.translate_errors("run"):
        feed = kind.feed(engine, inputs)
        feed.run_first()
        outputs = feed.outputs()
    if order.keep is not None:
        save_arrays(order.keep, outputs)
    reference = load_arrays(order.reference) if order.reference else {}
    return {"outputs": [_compare(name, value, reference.get(name), order=order) for name, value in outputs.items()]}


def _compare(name: str, value: object, reference: Array | None, *, order: Order) -> dict[str, object]:
    facts = parity.compare_output(name, value, reference, **order.find_tolerance(name))
    if not isinstance(value, np.ndarray) or reference is None or value.dtype.kind in "OSU":
        return facts
    return {
        **facts,
        "candidate": parity.summarise_values(value),
        "reference": parity.summarise_values(reference),
        "furthest": parity.locate_largest_difference(value, reference),
    }
