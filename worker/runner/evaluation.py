"""The evaluation pass: the cell on labelled data, a batch at a time, each sample judged at once and its output let go.

Never timed. Ends with a refusal when its seconds are over: half of the samples would not be comparable with all.
"""

import base64
import time
import zlib
from collections.abc import Iterator

import numpy as np

from worker.runner import faults, sample_scores
from worker.runner.arrays import Arrays, load_arrays
from worker.runner.engines.onnxruntime import Engine, choose_inputs, open_engine
from worker.runner.order import EvaluationPart, Order, PhaseTimer, WrapCall
from worker.runner.sample_scores import Array

LABELS = "labels"
AT_ONCE = 64
# numpy's types of the float inputs that a half-precision variant may have
FLOATS = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(double)": np.float64}


def run_evaluation(order: Order, *, timer: PhaseTimer, wrap_call: WrapCall | None = None) -> dict[str, object]:
    """Judge every sample; the packed judgements, their number and the output's name."""
    what = order.evaluation
    if what is None:
        raise faults.Refusal("internal", "the order of an evaluation names no data")
    given = load_arrays(what.data)
    labels = given.pop(LABELS)
    engine = open_engine(order, timer=timer)
    facts: dict[str, object] = {"requested_providers": engine.requested, "active_providers": engine.active}
    inputs = _cast(engine, choose_inputs(engine, given))
    name = what.output or engine.session.get_outputs()[0].name
    with faults.translated("run", **facts), timer.phase("samples"):
        judged = np.concatenate(list(_judged(engine, inputs, labels, name=name, what=what)))
    return {**facts, "n": int(judged.size), "output": name, "samples": pack(judged)}


def pack(judged: Array) -> str:
    """As farm.rules.quality.evaluation unpacks them: `b1:` bits of right or wrong, `f4:` errors."""
    kind, raw = ("b1", np.packbits(judged)) if judged.dtype.kind == "b" else ("f4", judged.astype("<f4"))
    return f"{kind}:{base64.b64encode(zlib.compress(raw.tobytes(), 9)).decode()}"


def _judged(engine: Engine, inputs: Arrays, labels: Array, *, name: str, what: EvaluationPart) -> Iterator[Array]:
    ends_at = time.perf_counter() + what.most_s
    fixed = _fixed_batch(engine)
    size = fixed or AT_ONCE
    for at in range(0, len(labels), size):
        if time.perf_counter() >= ends_at:
            raise faults.Refusal(
                "timeout",
                f"the evaluation was at sample {at:,} of {len(labels):,} when its {what.most_s:.0f} s were over; "
                "give fewer samples",
            )
        picked = np.arange(at, min(at + size, len(labels)))
        # a fixed batch's last is filled up with its own first
        rows = np.resize(picked, size) if fixed else picked
        feed = {key: np.ascontiguousarray(array[rows]) for key, array in inputs.items()}
        outputs = np.asarray(engine.session.run([name], feed)[0])[: len(picked)]
        outputs = sample_scores.applied(outputs, step=what.apply, threshold=what.threshold)
        yield sample_scores.judge(outputs, labels[picked], metric=what.metric)


def _fixed_batch(engine: Engine) -> int | None:
    sizes = {node.shape[0] for node in engine.session.get_inputs() if node.shape}
    fixed = [size for size in sizes if isinstance(size, int)]
    return fixed[0] if fixed else None


def _cast(engine: Engine, inputs: Arrays) -> Arrays:
    """Float inputs in the type that this variant takes: one made with `keep-io=false` takes halves."""
    wanted = {node.name: FLOATS.get(node.type) for node in engine.session.get_inputs()}
    return {
        name: array.astype(wanted[name]) if array.dtype.kind == "f" and wanted.get(name) is not None else array
        for name, array in inputs.items()
    }
