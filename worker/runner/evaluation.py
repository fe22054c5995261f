"""The evaluation pass: runs the cell on labelled data batch by batch, and judges the outputs. It is never timed.

It is refused when its time is over, because a part of the samples is not comparable with all of them.
"""

import base64
import time
import zlib
from collections.abc import Iterator
from functools import partial

import numpy as np

from worker.runner import extensions, faults
from worker.runner.arrays import Arrays, load_arrays
from worker.runner.engines.onnxruntime import Engine, choose_inputs, open_engine
from worker.runner.judges import output_steps, user_function
from worker.runner.judges.judge import Array, Judge
from worker.runner.order import EvaluationPart, Order, PhaseTimer, WrapCall

LABELS, VOCABULARY = "labels", "vocabulary"
# the float types of inputs, which a half-precision variant may change
FLOATS = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(double)": np.float64}


def run_evaluation(order: Order, *, timer: PhaseTimer, wrap_call: WrapCall | None = None) -> dict[str, object]:
    """Judge every sample, and return the packed judgements, their number and the output's name.

    Raises Refusal where the data cannot be read or judged, the cell does not run, or its time is over.
    """
    what = order.evaluation
    if what is None:
        raise faults.Refusal("internal", "the order of an evaluation names no data")
    given = load_arrays(what.data)
    engine = open_engine(order, timer=timer)
    facts: dict[str, object] = {"requested_providers": engine.requested, "active_providers": engine.active}
    with faults.translate_errors("run", **facts), timer.phase("samples"):
        judged = _judge_by_own_function if what.own else _judge_samples
        return {**facts, **judged(engine, given, what)}


def _judge_samples(engine: Engine, given: Arrays, what: EvaluationPart) -> dict[str, object]:
    labels = given.pop(LABELS)
    vocabulary = given.pop(VOCABULARY) if what.apply == "ctc" else None
    decode = partial(output_steps.apply_step, step=what.apply, threshold=what.threshold, vocabulary=vocabulary)
    known = [node.name for node in engine.session.get_outputs()]
    names = [what.output or known[0]] if what.output is None or what.output in known else what.output.split(",")
    judge = import_judge(what)
    batches = _batches(engine, given, names=names, what=what, count=len(labels))
    judged = judge.samples([judge.look(decode(join_outputs(outputs)), labels[picked]) for outputs, picked in batches])
    refuse_unless_finite(judged, what.metric)
    return {"n": int(judged.size), "output": ",".join(names), "samples": pack_judgements(judged)}


def _judge_by_own_function(engine: Engine, given: Arrays, what: EvaluationPart) -> dict[str, object]:
    """Run all samples, and call the user's function with all outputs and data, within the time that is left."""
    began, judge = time.perf_counter(), user_function.Source(*what.own or ())
    names = [node.name for node in engine.session.get_outputs()]
    count = len(next(iter(choose_inputs(engine, given).values())))
    batches = [outputs for outputs, _ in _batches(engine, given, names=names, what=what, count=count)]
    outputs = {name: np.concatenate(parts) for name, *parts in zip(names, *batches, strict=True)}
    left_s = max(1.0, what.most_s - (time.perf_counter() - began))
    found, lower_is_better = judge.judge(outputs, given, count=count, limit_s=left_s)
    value, samples = (found, "") if isinstance(found, float) else (None, pack_judgements(found))
    return {"n": count, "output": "", "samples": samples, "value": value, "lower_is_better": lower_is_better}


def pack_judgements(judged: Array) -> str:
    """Pack judgements for farm.rules.quality.evaluation: `b1:` and bits of right or wrong, or `f4:` and float32."""
    kind, raw = ("b1", np.packbits(judged)) if judged.dtype.kind == "b" else ("f4", judged.astype("<f4"))
    return f"{kind}:{base64.b64encode(zlib.compress(raw.tobytes(), 9)).decode()}"


def import_judge(what: EvaluationPart) -> Judge:
    """Import the judge of a metric, from the runner or from another package. Raises Refusal for an unknown metric."""
    judge: Judge = (
        extensions.import_own(what.judge) if ":" in what.judge else extensions.import_outside("accuracy", what.metric)
    )
    return judge


def join_outputs(arrays: list[Array]) -> Array:
    """Join several outputs, such as boxes, scores and classes, along the last axis."""
    dimensions = max(array.ndim for array in arrays)
    wide = [array if array.ndim == dimensions else array[..., None] for array in arrays]
    return wide[0] if len(wide) == 1 else np.concatenate(wide, axis=-1)


def refuse_unless_finite(judged: Array, metric: str) -> None:
    """Raises Refusal for a figure that is not finite, or too large for float32."""
    if judged.dtype.kind != "b" and not (np.abs(judged) <= np.finfo(np.float32).max).all():
        text = f"on the labelled data {metric} of the output is not a finite number; judge another output"
        raise faults.Refusal("inference_failed", text)


def _batches(
    engine: Engine, given: Arrays, *, names: list[str], what: EvaluationPart, count: int
) -> Iterator[tuple[list[Array], Array]]:
    """Yield the outputs of each batch with the indexes of its samples. Raises Refusal when the time is over."""
    ends_at = time.perf_counter() + what.most_s
    inputs = _cast_floats(engine, choose_inputs(engine, given))
    firsts = {node.shape[0] for node in engine.session.get_inputs() if node.shape}
    fixed = next((size for size in firsts if isinstance(size, int)), None)
    size = fixed or what.at_once
    for at in range(0, count, size):
        if time.perf_counter() >= ends_at:
            text = f"the evaluation was at sample {at:,} of {count:,} when its {what.most_s:.0f} s were over"
            raise faults.Refusal("timeout", f"{text}; give fewer samples")
        picked = np.arange(at, min(at + size, count))
        # the last batch of a fixed size is filled up with its own first rows
        rows = np.resize(picked, size) if fixed else picked
        feed = {key: np.ascontiguousarray(array[rows]) for key, array in inputs.items()}
        yield [np.asarray(output)[: len(picked)] for output in engine.session.run(names, feed)], picked


def _cast_floats(engine: Engine, inputs: Arrays) -> Arrays:
    """Cast float inputs to the types of this variant; one that was made with `keep-io=false` takes float16."""
    wanted = {node.name: FLOATS.get(node.type) for node in engine.session.get_inputs()}
    return {
        name: array.astype(wanted[name]) if array.dtype.kind == "f" and wanted.get(name) is not None else array
        for name, array in inputs.items()
    }
