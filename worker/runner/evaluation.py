"""The evaluation pass: the cell on labelled data, a batch at a time, each sample judged at once and its output let go.

Never timed. Ends with a refusal when its seconds are over: half of the samples would not be comparable with all.
"""

import base64
import time
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from worker.runner import entries, faults
from worker.runner.arrays import Arrays, load_arrays
from worker.runner.engines.onnxruntime import Engine, choose_inputs, open_engine
from worker.runner.judges import steps
from worker.runner.judges.judge import Array, Judge
from worker.runner.order import EvaluationPart, Order, PhaseTimer, WrapCall

LABELS, VOCABULARY = "labels", "vocabulary"
# numpy's types of the float inputs that a half-precision variant may have
FLOATS = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(double)": np.float64}


def run_evaluation(order: Order, *, timer: PhaseTimer, wrap_call: WrapCall | None = None) -> dict[str, object]:
    """Judge every sample; the packed judgements, their number and the output's name."""
    what = order.evaluation
    if what is None:
        raise faults.Refusal("internal", "the order of an evaluation names no data")
    given = load_arrays(what.data)
    labels = given.pop(LABELS)
    decode = partial(
        steps.applied,
        step=what.apply,
        threshold=what.threshold,
        vocabulary=given.pop(VOCABULARY) if what.apply == "ctc" else None,
    )
    engine = open_engine(order, timer=timer)
    facts: dict[str, object] = {"requested_providers": engine.requested, "active_providers": engine.active}
    inputs = _cast(engine, choose_inputs(engine, given))
    names = outputs_of([node.name for node in engine.session.get_outputs()], what.output)
    judge = judge_of(what)
    with faults.translated("run", **facts), timer.phase("samples"):
        batches = _batches(engine, inputs, labels, names=names, what=what)
        judged = judge.samples([judge.look(decode(outputs), wanted) for outputs, wanted in batches])
        refuse_no_numbers(judged, what.metric)
    return {**facts, "n": int(judged.size), "output": ",".join(names), "samples": pack(judged)}


def pack(judged: Array) -> str:
    """As farm.rules.quality.evaluation unpacks them: `b1:` bits of right or wrong, `f4:` figures."""
    kind, raw = ("b1", np.packbits(judged)) if judged.dtype.kind == "b" else ("f4", judged.astype("<f4"))
    return f"{kind}:{base64.b64encode(zlib.compress(raw.tobytes(), 9)).decode()}"


def judge_of(what: EvaluationPart) -> Judge:
    """One of ours, `module:name`, or the `Outside` of a package's file."""
    judge: Judge = entries.load(what.judge) if ":" in what.judge else entries.from_outside("accuracy", what.metric)
    return judge


def outputs_of(known: list[str], wanted: str | None) -> list[str]:
    """The first one unless others are wanted; the names of several stand between commas."""
    return [wanted or known[0]] if wanted is None or wanted in known else wanted.split(",")


def joined(outputs: list[Any]) -> Array:
    """One array a row of which has what several outputs say of the same, such as boxes, scores and classes."""
    arrays = [np.asarray(output) for output in outputs]
    most = max(array.ndim for array in arrays)
    wide = [array if array.ndim == most else array[..., None] for array in arrays]
    return wide[0] if len(wide) == 1 else np.concatenate(wide, axis=-1)


def refuse_no_numbers(judged: Array, metric: str) -> None:
    if judged.dtype.kind != "b" and not (np.abs(judged) <= np.finfo(np.float32).max).all():
        text = f"on the labelled data {metric} of the output is not a finite number; judge another output"
        raise faults.Refusal("inference_failed", text)


def _batches(
    engine: Engine, inputs: Arrays, labels: Array, *, names: list[str], what: EvaluationPart
) -> Iterator[tuple[Array, Array]]:
    """Outputs and labels of so many samples at once."""
    ends_at = time.perf_counter() + what.most_s
    fixed = _fixed_batch(engine)
    size = fixed or what.at_once
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
        yield joined(engine.session.run(names, feed))[: len(picked)], labels[picked]


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
