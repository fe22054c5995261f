"""The check pass: whether the cell loads, on which providers, how long its start takes, and whether it is right."""

import importlib.metadata
import sys
from dataclasses import replace

import numpy as np

from worker.runner import engine_cache, faults, footprint, memory, parity
from worker.runner.arrays import Arrays, load_arrays, save_arrays
from worker.runner.engines.protocol import Engine, Kind
from worker.runner.engines.table import find_engine_kind
from worker.runner.order import CPU, Order, PhaseTimer
from worker.runner.parity import Array

# the tolerance between outputs with and without optimisations
UNOPTIMISED_TOLERANCE = 1e-4
# a second session is opened only if the first one took at most this: start in ms, and memory of the whole process
CHEAP_MS = 1000.0
CHEAP_BYTES = 1 << 30
# larger outputs are not kept for the comparison with other arms
MAX_OUTPUT_BYTES = 16 << 20


def run_check(order: Order, *, timer: PhaseTimer) -> dict[str, object]:
    """Run the cell a few times, and return the fields of a CheckReport.

    Import, session and first inference are timed separately. The outputs are compared with the reference and with those
    of a second run, and the first row of a batch with one that runs alone. Where the session was cheap to open, they
    are compared with a run without optimisations, too, and further sessions show their memory. They are written to
    `order.keep`, if it names a file and they have no more than MAX_OUTPUT_BYTES. Raises Refusal where the cell does not
    load or run.
    """
    inputs = load_arrays(order.inputs)
    kind = find_engine_kind(order)
    engine = kind.open_engine(order, timer=timer)
    facts: dict[str, object] = {"requested_providers": engine.requested, "active_providers": engine.active}
    inputs = kind.choose_inputs(engine, inputs)

    with faults.translate_errors("run", **facts):
        feed = kind.feed(engine, inputs)
        with timer.phase("first"):
            feed.run_first()
        facts["peak_memory_bytes"] = peak_bytes = memory.read_peak_bytes()
        outputs = feed.outputs()
        feed.settle()
        again = feed.outputs()
        facts["batch_row_max_abs"] = _measure_row_difference(order, kind, engine=engine, inputs=inputs, outputs=outputs)

    reference = load_arrays(order.reference) if order.reference else {}
    size = sum(value.nbytes for value in outputs.values() if isinstance(value, np.ndarray))
    if order.keep is not None and size <= MAX_OUTPUT_BYTES:
        save_arrays(order.keep, outputs)

    start_ms = timer.phases_ms["session"] + timer.phases_ms["first"]
    # measured before other sessions are closed, because new ones would reuse their freed memory
    footprints = footprint.measure_for_check(order, inputs, start_ms=start_ms, peak_bytes=peak_bytes)
    is_cheap = start_ms <= CHEAP_MS and peak_bytes <= CHEAP_BYTES
    unoptimised = _compare_with_unoptimised(order, inputs, outputs) if is_cheap else []

    packages = {entry.metadata["Name"]: entry.version for entry in importlib.metadata.distributions()}
    imported = str(sys.modules[kind.module].__version__)
    return {
        **facts,
        "unoptimised": unoptimised,
        **({"metrics": footprints} if footprints else {}),
        **engine_cache.measure_cached_start(order, open_session=_open_untimed),
        "provider_facts": engine.provider_facts,
        "is_simulated": engine.is_simulated,
        **{f"{name}_ms": timer.phases_ms[name] for name in ("import", "session", "first")},
        "outputs": [
            parity.compare_output(name, value, reference.get(name), **order.find_tolerance(name))
            for name, value in outputs.items()
        ],
        "is_repeatable": all(parity.are_bit_equal(value, again[name]) for name, value in outputs.items()),
        # the installed packages, and the runtime's own version
        "packages": {**dict(sorted(packages.items())), f"{kind.module} (imported)": imported},
        "executed_precision": _read_precision(engine),
    }


def _measure_row_difference(
    order: Order, kind: Kind, *, engine: Engine, inputs: Arrays, outputs: dict[str, object]
) -> float | None:
    """Measure the largest difference between row 0 of the batch and the same row alone. A model must not mix rows.

    None where the model takes only one batch size, or where no output has the batch as its first dimension.
    """
    batch = order.batch
    if batch is None or batch < 2 or not kind.is_first_free(engine):
        return None
    if any(array.ndim == 0 or array.shape[0] != batch for array in inputs.values()):
        return None
    try:
        alone = kind.feed(engine, {name: np.ascontiguousarray(array[:1]) for name, array in inputs.items()})
        alone.run_first()
    except Exception as error:
        # the cell is not at fault where another batch size fails inside the model, as at a Reshape with a fixed batch
        if faults.explain_error(error, during="run")[0] == "out_of_memory":
            raise
        return None
    rows = alone.outputs()
    differences = [
        parity.measure_largest_difference(row, value[:1])
        for name, value in outputs.items()
        if isinstance(value, np.ndarray)
        and value.ndim > 0
        and value.shape[0] == batch
        and (row := _as_array(rows[name])) is not None
    ]
    measured = [value for value in differences if value is not None]
    return max(measured) if measured else None


def _compare_with_unoptimised(order: Order, inputs: Arrays, outputs: dict[str, object]) -> list[dict[str, object]]:
    """Compare the outputs with those of the same runtime without optimisations, which shows the effect of its fusions.

    Empty for other providers than the CPU, for a cell without optimisations, and where the second session fails, which
    is not a fault of the cell.
    """
    kind = find_engine_kind(order)
    if not kind.has_sessions or order.provider != CPU or order.session.optimization == "disable":
        return []
    try:
        plain = replace(order, session=replace(order.session, optimization="disable"))
        feed = kind.feed(_open_untimed(plain), inputs)
        feed.run_first()
        values = feed.outputs()
    except Exception:  # one of ONNX Runtime's own classes, or a Refusal: some operators exist only fused
        return []
    # the order has a tolerance for 16-bit outputs, which is used; quantised outputs have none, and get the usual one
    has_tolerance = UNOPTIMISED_TOLERANCE < order.atol < 1
    atol, rtol = (order.atol, order.atol) if has_tolerance else (UNOPTIMISED_TOLERANCE, 0.0)
    return [
        parity.compare_output(name, value, _as_array(values.get(name)), atol=atol, rtol=rtol)
        for name, value in outputs.items()
    ]


def _open_untimed(order: Order) -> Engine:
    return find_engine_kind(order).open_engine(order, timer=PhaseTimer())


def _as_array(value: object) -> Array | None:
    return value if isinstance(value, np.ndarray) else None


def _read_precision(engine: Engine) -> str | None:
    """Read the precision that the provider executes in from its options; None where they do not name one."""
    for name, value in engine.provider_options.items():
        if name.lower() in ("precision", "inference_precision", "inference_precision_hint") and value:
            return str(value).lower()
    return None
