"""The evaluation pass: runs the cell on labelled data batch by batch, and judges the outputs. It is never timed.

A pass that exceeds its time limit is refused, because the accuracy of a part of the samples cannot be compared with
that of all samples.
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
from worker.runner.order import EvaluationPart, Order, PhaseTimer

LABELS, VOCABULARY = "labels", "vocabulary"
# the float types of inputs; data are cast to them, because a half-precision variant may take another type
FLOATS = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(double)": np.float64}


def run_evaluation(order: Order, *, timer: PhaseTimer) -> dict[str, object]:
    """Judge every sample. Return their number as `n`, the names of the `output`, and the judgements as `samples`.

    `pack_judgements` packs the judgements. With a user's own function, `output` is empty and `lower_is_better` is
    added; `value` is its figure if it gives one for all samples, and `samples` is empty then. Raises Refusal where the
    data cannot be read or judged, the cell does not run, or the time limit is over.
    """
    evaluation = order.evaluation
    if evaluation is None:
        raise faults.Refusal("internal", "the order of an evaluation names no data")
    data = load_arrays(evaluation.data)
    engine = open_engine(order, timer=timer)
    facts: dict[str, object] = {"requested_providers": engine.requested, "active_providers": engine.active}
    with faults.translate_errors("run", **facts), timer.phase("samples"):
        judge = _judge_by_metric if evaluation.own is None else _judge_by_user_function
        return {**facts, **judge(engine, data, evaluation)}


def _judge_by_metric(engine: Engine, data: Arrays, evaluation: EvaluationPart) -> dict[str, object]:
    labels = data.pop(LABELS)
    vocabulary = data.pop(VOCABULARY) if evaluation.apply == "ctc" else None
    apply_step = partial(
        output_steps.apply_step, step=evaluation.apply, threshold=evaluation.threshold, vocabulary=vocabulary
    )
    names = _choose_outputs(engine, evaluation.output)
    judge = import_judge(evaluation)
    batches = _run_batches(engine, data, names=names, evaluation=evaluation, count=len(labels))
    judgements = judge.samples(
        [judge.look(apply_step(join_outputs(outputs)), labels[indexes]) for outputs, indexes in batches]
    )
    refuse_unless_finite(judgements, evaluation.metric)
    return {"n": int(judgements.size), "output": ",".join(names), "samples": pack_judgements(judgements)}


def _judge_by_user_function(engine: Engine, data: Arrays, evaluation: EvaluationPart) -> dict[str, object]:
    """Run all samples, and call the user's function with all outputs and data, within the time that is left."""
    began, user_judge = time.perf_counter(), user_function.UserJudge(*evaluation.own or ())
    names = [node.name for node in engine.session.get_outputs()]
    count = len(next(iter(choose_inputs(engine, data).values())))
    batches = [outputs for outputs, _ in _run_batches(engine, data, names=names, evaluation=evaluation, count=count)]
    outputs = {name: np.concatenate(parts) for name, *parts in zip(names, *batches, strict=True)}
    remaining_s = max(1.0, evaluation.most_s - (time.perf_counter() - began))
    figures, lower_is_better = user_judge.judge(outputs, data, count=count, limit_s=remaining_s)
    value, samples = (figures, "") if isinstance(figures, float) else (None, pack_judgements(figures))
    return {"n": count, "output": "", "samples": samples, "value": value, "lower_is_better": lower_is_better}


def _choose_outputs(engine: Engine, output: str | None) -> list[str]:
    """List the outputs that a recipe names: the model's first for None, several for names joined by commas."""
    names = [node.name for node in engine.session.get_outputs()]
    if output is None:
        return names[:1]
    return [output] if output in names else output.split(",")


def _run_batches(
    engine: Engine, data: Arrays, *, names: list[str], evaluation: EvaluationPart, count: int
) -> Iterator[tuple[list[Array], Array]]:
    """Yield the named outputs of each batch, with the indexes of its samples. Raises Refusal when the time is over."""
    ends_at = time.perf_counter() + evaluation.most_s
    inputs = _cast_floats(engine, choose_inputs(engine, data))
    first_dimensions = {node.shape[0] for node in engine.session.get_inputs() if node.shape}
    fixed_size = next((size for size in first_dimensions if isinstance(size, int)), None)
    size = fixed_size or evaluation.at_once
    for start in range(0, count, size):
        if time.perf_counter() >= ends_at:
            text = f"the evaluation was at sample {start:,} of {count:,} when its {evaluation.most_s:.0f} s were over"
            raise faults.Refusal("timeout", f"{text}; give fewer samples")
        indexes = np.arange(start, min(start + size, count))
        # if the batch size is fixed, the last batch is filled up by repeating its rows
        rows = np.resize(indexes, size) if fixed_size else indexes
        feed = {name: np.ascontiguousarray(array[rows]) for name, array in inputs.items()}
        yield [np.asarray(output)[: len(indexes)] for output in engine.session.run(names, feed)], indexes


def _cast_floats(engine: Engine, inputs: Arrays) -> Arrays:
    """Cast float inputs to the types of this variant; one that was made with `keep-io=false` takes float16."""
    types = {node.name: FLOATS.get(node.type) for node in engine.session.get_inputs()}
    return {
        name: array.astype(types[name]) if array.dtype.kind == "f" and types.get(name) is not None else array
        for name, array in inputs.items()
    }


def pack_judgements(judgements: Array) -> str:
    """Pack judgements as text, which farm.rules.quality.evaluation unpacks.

    The text is the kind, a colon, and base64 of zlib-compressed values: one bit a sample (kind `b1`, right or wrong) or
    one little-endian float32 a sample (kind `f4`).
    """
    is_boolean = judgements.dtype.kind == "b"
    kind, raw = ("b1", np.packbits(judgements)) if is_boolean else ("f4", judgements.astype("<f4"))
    return f"{kind}:{base64.b64encode(zlib.compress(raw.tobytes(), 9)).decode()}"


def import_judge(part: EvaluationPart) -> Judge:
    """Import the judge of a metric, from the runner or from another package. Raises Refusal for an unknown metric."""
    is_builtin = ":" in part.judge
    judge: Judge = (
        extensions.import_builtin(part.judge) if is_builtin else extensions.import_extension("accuracy", part.metric)
    )
    return judge


def join_outputs(arrays: list[Array]) -> Array:
    """Join several outputs, such as boxes, scores and classes, along the last axis.

    An output with one dimension less than the largest gets a last axis of size 1. A single output is returned as it is.
    """
    dimensions = max(array.ndim for array in arrays)
    wide = [array if array.ndim == dimensions else array[..., None] for array in arrays]
    return wide[0] if len(wide) == 1 else np.concatenate(wide, axis=-1)


def refuse_unless_finite(judgements: Array, metric: str) -> None:
    """Raise Refusal where a judgement is not finite, or too large for float32. `metric` is its name for the text."""
    if judgements.dtype.kind != "b" and not (np.abs(judgements) <= np.finfo(np.float32).max).all():
        text = f"on the labelled data {metric} of the output is not a finite number; judge another output"
        raise faults.Refusal("inference_failed", text)
