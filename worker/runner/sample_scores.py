"""Samples judged against their labels in the runner: rules of farm.workshop.child.evaluation, which it cannot import.

The farm has looked at the data before: what does not fit here is an output that this runtime or variant makes unlike
the others.
"""

from typing import Any

import numpy as np

from worker.runner import faults

TOP5 = 5
# of any shape; comparing scores needs a type that numpy's stubs can order
Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


def applied(outputs: Array, *, step: str | None, threshold: float) -> Array:
    """What the recipe's step makes of an output."""
    if step is None:
        return outputs
    if step == "softmax":
        # in float64: half precision overflows
        wide = outputs.astype(np.float64)
        shares = np.exp(wide - wide.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))
    if step == "argmax":
        return np.asarray(outputs.argmax(axis=-1))
    flat = outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs
    return np.asarray((flat > threshold).astype(np.int64))


def judge(outputs: Array, labels: Array, *, metric: str) -> Array:
    """Right or wrong of each sample (top1, top5), or its squared error (mse). Raises Refusal where they do not fit."""
    if metric == "mse":
        if outputs.shape != labels.shape:
            raise _unfit(f"the shape {list(outputs.shape)} for labels of {list(labels.shape)}")
        gaps = (outputs.astype(np.float64) - labels.astype(np.float64)) ** 2
        errors = gaps.reshape(len(gaps), -1).mean(axis=1)
        if not np.isfinite(errors).all() or errors.max(initial=0.0) > np.finfo(np.float32).max:
            raise _unfit("values whose squared error is not a finite number")
        return np.asarray(errors, dtype=np.float64)
    if outputs.ndim == 1 and outputs.dtype.kind in "iub":
        if len(outputs) != len(labels):
            raise _unfit(f"{len(outputs)} rows for {len(labels)} labels")
        return np.asarray(outputs == labels)
    return _among_best(outputs, labels, most=1 if metric == "top1" else TOP5)


def _among_best(scores: Array, labels: Array, *, most: int) -> Array:
    if scores.ndim != 2 or len(scores) != len(labels) or scores.shape[1] <= int(labels.max(initial=0)):
        raise _unfit(f"the shape {list(scores.shape)} for {len(labels)} labels up to {int(labels.max(initial=0))}")
    wanted = np.take_along_axis(scores, labels.astype(np.int64)[:, None], axis=1)
    # ties count against the label, and so does a score that is no number
    better = np.sum(scores >= wanted, axis=1) - 1
    return np.asarray((better < most) & np.isfinite(wanted[:, 0]))


def _unfit(what: str) -> faults.Refusal:
    return faults.Refusal("inference_failed", f"on the labelled data the output has {what}; judge another output")
