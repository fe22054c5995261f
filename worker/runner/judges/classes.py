"""Chosen classes, against the right ones."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from worker.runner.judges.judge import Array, Judge, check_row_per_label, make_shape_refusal, parts


def is_label_among_best(outputs: Array, labels: Array, *, count: int) -> Array:
    """Right where the label is one of so many best scores, or the class that the output names.

    Ties count against the label, and so does a score that is not a number.
    """
    check_row_per_label(outputs, labels)
    if count == 1 and outputs.ndim == 1 and outputs.dtype.kind in "iub":
        return np.asarray(outputs == labels)
    if outputs.ndim != 2 or outputs.shape[1] <= int(labels.max(initial=0)):
        raise make_shape_refusal(
            f"the shape {list(outputs.shape)} for {len(labels)} labels up to {int(labels.max(initial=0))}"
        )
    wanted = np.take_along_axis(outputs, labels.astype(np.int64)[:, None], axis=1)
    better = np.sum(outputs >= wanted, axis=1) - 1
    return np.asarray((better < count) & np.isfinite(wanted[:, 0]))


def pair_label_and_choice(outputs: Array, labels: Array) -> Array:
    """The label and the class that was chosen, a row a sample; -1 is none, where no score is a number."""
    check_row_per_label(outputs, labels)
    if outputs.ndim == 1 and outputs.dtype.kind in "iub":
        return np.stack([labels, outputs], axis=1).astype(np.int64)
    if outputs.ndim != 2 or outputs.shape[1] < 2 or outputs.dtype.kind not in "f":
        raise make_shape_refusal(f"the shape {list(outputs.shape)} for {len(labels)} labels")
    best = np.argmax(np.where(np.isnan(outputs), -np.inf, outputs), axis=1)
    nothing = np.isnan(outputs).all(axis=1)
    return np.stack([labels.astype(np.int64), np.where(nothing, -1, best)], axis=1)


def macro_f1(seen: Sequence[Array]) -> Array:
    """Parts of the mean over classes of F1 = 2 TP / (2 TP + FP + FN), as scikit-learn's f1_score(average="macro").

    The classes are those that are a label or were chosen.
    """
    pairs = np.concatenate(seen)
    classes, at = np.unique(pairs, return_inverse=True)
    label, chosen = at.reshape(pairs.shape).T
    right = np.bincount(label[label == chosen], minlength=len(classes)).astype(np.float64)
    count = np.bincount(at.ravel(), minlength=len(classes)).astype(np.float64)
    # of one sample alone two classes change at most: a right one is twice in the count of its own
    hit = (label == chosen).astype(np.float64)
    scores = _f1(right, count)
    whole, total = float(np.mean(scores)), scores.sum()
    without_label = _f1(right[label] - hit, count[label] - 1 - hit)
    without_chosen = np.where(hit > 0, 0.0, _f1(right[chosen], count[chosen] - 1))
    rest = total - scores[label] - np.where(hit > 0, 0.0, scores[chosen]) + without_label + without_chosen
    gone = (count[label] - 1 - hit == 0).astype(np.int64) + ((hit == 0) & (count[chosen] == 1))
    left = len(classes) - gone
    return parts(whole, np.divide(rest, left, out=np.full(len(rest), whole), where=left > 0))


def pack_multilabel(outputs: Array, labels: Array) -> Array:
    """Which classes a sample has and which were chosen for it, packed: [sample, 2, class]."""
    check_row_per_label(outputs, labels)
    if outputs.shape != labels.shape:
        raise make_shape_refusal(f"the shape {list(outputs.shape)} for labels of {list(labels.shape)}")
    chosen = outputs > 0.5 if outputs.dtype.kind == "f" else outputs != 0
    return np.stack([labels != 0, chosen], axis=1)


def multilabel_f1(seen: Sequence[Array]) -> Array:
    """Parts of the same mean where a sample has any number of classes; one that never occurs counts as 0."""
    label, chosen = np.concatenate(seen).transpose(1, 0, 2)
    hit = (label & chosen).astype(np.int8)
    both = label.astype(np.int8) + chosen
    right, count = hit.sum(axis=0, dtype=np.float64), both.sum(axis=0, dtype=np.float64)
    without = np.array([_f1(right - own, count - named).mean() for own, named in zip(hit, both, strict=True)])
    return parts(float(_f1(right, count).mean()), without)


def _f1(right: Array, count: Array) -> Array:
    """`count`: how often a class is a label, and how often it was chosen: 2 TP + FP + FN."""
    return np.asarray(np.divide(2 * right, count, out=np.zeros(np.shape(count)), where=count > 0))


TOP1 = Judge(partial(is_label_among_best, count=1))
TOP5 = Judge(partial(is_label_among_best, count=5))
F1 = Judge(pair_label_and_choice, macro_f1)
F1_MULTILABEL = Judge(pack_multilabel, multilabel_f1)
