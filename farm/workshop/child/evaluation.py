"""Labelled data, looked at before any node measures on them: do they fit model and recipe? Runs in the child only."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime

from farm.contract.evaluation import MAX_SAMPLES
from farm.workshop import arrays
from farm.workshop.arrays import Array
from farm.workshop.child import inputs as feeding
from farm.workshop.child import model_file, payloads, signature
from farm.workshop.problems import Problem, answering, first_line, shown

LABELS = "labels"
_AT_ONCE = 64
_TOP5 = 5


@answering
def check(payload: payloads.Evaluation) -> dict[str, object]:
    """Looks at labelled `data` for {folder, main} and a recipe, runs the first batch, and writes the data to `out`.

    Answers how many samples there are, the output that is judged, and how many classes it tells apart (None for
    errors). `apply` is one of softmax, argmax, threshold or None, `output` None is the first. The same rules judge on a
    node, in worker.runner.sample_scores. Raises Problem: bad_arrays, bad_labels, bad_output, too_many_samples,
    inputs_*, not_loaded, inference_failed.
    """
    facts = signature.of(model_file.read(Path(payload["folder"]), payload["main"]))
    inputs, labels = _opened(Path(payload["data"]))
    if len(labels) > MAX_SAMPLES:
        text = f"There are {len(labels):,} samples; at most {MAX_SAMPLES:,} are taken: give a random part of them."
        raise Problem("too_many_samples", text)
    session = _session(Path(payload["folder"], payload["main"]))
    name = _output_name(session, payload["output"])
    feed, count = next(_cut(inputs, facts, count=len(labels)))
    try:
        raw = np.asarray(session.run([name], feed)[0])[:count]
    except Exception as error:  # onnxruntime raises many kinds, none of them documented
        raise Problem("inference_failed", f"The model fails on these samples ({first_line(error)}).") from error
    outputs = _applied(raw, payload)
    judge(outputs, labels[:count], metric=payload["metric"])
    classes = None if payload["metric"] == "mse" else _classes(raw, outputs, payload["apply"])
    if classes is not None:
        _check_labels(labels, classes)
    ordered = {port["name"]: inputs[port["name"]] for port in facts["inputs"]}
    arrays.write_npz(Path(payload["out"]), {**ordered, LABELS: labels})
    return {"n": len(labels), "output": name, "classes": classes}


def _classes(raw: Array, outputs: Array, step: str | None) -> int | None:
    """How many classes an output tells apart; None where the model itself names the class."""
    if step == "threshold":
        return 2
    if step == "argmax":
        return int(raw.shape[-1])
    return int(outputs.shape[1]) if outputs.ndim == 2 else None


def _check_labels(labels: Array, classes: int) -> None:
    if labels.min() < 0 or labels.max() >= classes:
        text = f"The labels reach from {labels.min()} to {labels.max()}, the output has the classes 0 to {classes - 1}."
        raise Problem("bad_labels", text)


def judge(outputs: Array, labels: Array, *, metric: str) -> Array:
    """Right or wrong of every sample (top1, top5), or its mean squared error (mse). Raises Problem: bad_*."""
    if len(outputs) != len(labels):
        text = f"The output has {len(outputs)} rows for {len(labels)} labels: judge another output."
        raise Problem("bad_output", text)
    if metric == "mse":
        return _squared_errors(outputs, labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iub":
        text = f"The labels are {labels.dtype} of shape {list(labels.shape)}: {metric} wants one whole number a sample."
        raise Problem("bad_labels", text)
    if outputs.ndim == 1 and outputs.dtype.kind in "iub" and metric == "top1":
        return np.asarray(outputs == labels)
    return _among_best(outputs, labels, metric=metric)


def _among_best(scores: Array, labels: Array, *, metric: str) -> Array:
    if scores.ndim != 2 or scores.shape[1] < 2:
        text = f"The output has the shape {list(scores.shape)}: {metric} wants one row of scores a sample."
        raise Problem("bad_output", text)
    _check_labels(labels, scores.shape[1])
    wanted = np.take_along_axis(scores, labels.astype(np.int64)[:, None], axis=1)
    # ties count against the label, and so does a score that is no number
    better = np.sum(scores >= wanted, axis=1) - 1
    return np.asarray((better < (1 if metric == "top1" else _TOP5)) & np.isfinite(wanted[:, 0]))


def _squared_errors(outputs: Array, labels: Array) -> Array:
    if outputs.shape != labels.shape:
        text = f"The output has the shape {list(outputs.shape)}, the labels {list(labels.shape)}: mse wants the same."
        raise Problem("bad_output", text)
    gaps = (outputs.astype(np.float64) - labels.astype(np.float64)) ** 2
    return np.asarray(gaps.reshape(len(gaps), -1).mean(axis=1))


def _applied(outputs: Array, payload: payloads.Evaluation) -> Array:
    """What the recipe makes of the output."""
    step = payload["apply"]
    if step is None:
        return outputs
    if outputs.dtype.kind != "f":
        raise Problem("bad_output", f"The output is {outputs.dtype}: {step} wants numbers with a fraction.")
    if step == "softmax":
        shares = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))
    if step == "argmax":
        return np.asarray(outputs.argmax(axis=-1))
    flat = outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs
    return np.asarray((flat > payload["threshold"]).astype(np.int64))


def _opened(path: Path) -> tuple[arrays.Arrays, Array]:
    stored = arrays.read_npz(path)
    if LABELS not in stored:
        raise Problem("bad_labels", f"{shown(path.name)} holds no array called {LABELS!r}: add one label a sample.")
    labels = stored.pop(LABELS)
    counts = {name: len(array) if array.ndim else 0 for name, array in stored.items()}
    wrong = [name for name, count in counts.items() if count != (len(labels) if labels.ndim else 0)]
    if wrong or labels.ndim == 0 or len(labels) == 0:
        which = f"{shown(wrong[0])!r} holds {counts[wrong[0]]} samples" if wrong else "there are no samples"
        raise Problem("bad_labels", f"In {shown(path.name)} {which} for {labels.size} labels: give one label a sample.")
    return stored, labels


def _cut(inputs: arrays.Arrays, facts: signature.Signature, *, count: int) -> Iterator[tuple[arrays.Arrays, int]]:
    """Feeds along the batch, each with its number of samples; a fixed batch's last is filled up with its own first."""
    own = facts["batch"]
    if own is None:
        raise Problem("bad_output", "The model has no batch, so samples cannot be told apart: export one with a batch.")
    size = own if isinstance(own, int) else _AT_ONCE
    for at in range(0, count, size):
        picked = np.arange(at, min(at + size, count))
        filled = np.resize(picked, size) if isinstance(own, int) else picked
        feed = {name: np.ascontiguousarray(array[filled]) for name, array in inputs.items()}
        feeding.check_given(feed, facts)
        yield feed, len(picked)


def _output_name(session: onnxruntime.InferenceSession, wanted: str | None) -> str:
    names = [str(output.name) for output in session.get_outputs()]
    if wanted is not None and wanted not in names:
        raise Problem("bad_output", f"The model has no output {shown(wanted)!r}: it has {', '.join(names[:10])}.")
    return wanted or names[0]


def _session(path: Path) -> onnxruntime.InferenceSession:
    """As it would be deployed on this CPU: every optimisation on."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        text = f"onnxruntime {onnxruntime.__version__} cannot load the model ({first_line(error)})."
        raise Problem("not_loaded", text) from error
