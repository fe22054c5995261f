"""Judges chosen classes: top-k accuracy and F1."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from worker.runner.judges.judge import Array, Judge, check_row_per_label, make_pseudovalues, make_shape_refusal


def mark_labels_among_best(outputs: Array, labels: Array, *, count: int) -> Array:
    """Mark each sample right whose label is among the `count` best scores.

    Ties count against the label, and so does a label's score that is not finite. For a `count` of 1, the output may
    also be one class a sample, as integers. Raises Refusal for outputs of another shape.
    """
    check_row_per_label(outputs, labels)
    if count == 1 and outputs.ndim == 1 and outputs.dtype.kind in "iub":
        return np.asarray(outputs == labels)
    if outputs.ndim != 2 or outputs.shape[1] <= int(labels.max(initial=0)):
        raise make_shape_refusal(
            f"the shape {list(outputs.shape)} for {len(labels)} labels up to {int(labels.max(initial=0))}"
        )
    label_scores = np.take_along_axis(outputs, labels.astype(np.int64)[:, None], axis=1)
    better = np.sum(outputs >= label_scores, axis=1) - 1
    return np.asarray((better < count) & np.isfinite(label_scores[:, 0]))


def pair_label_and_choice(outputs: Array, labels: Array) -> Array:
    """Pair each sample's label with the chosen class, -1 where no score is a number. Raises Refusal for bad shapes."""
    check_row_per_label(outputs, labels)
    if outputs.ndim == 1 and outputs.dtype.kind in "iub":
        return np.stack([labels, outputs], axis=1).astype(np.int64)
    if outputs.ndim != 2 or outputs.shape[1] < 2 or outputs.dtype.kind not in "f":
        raise make_shape_refusal(f"the shape {list(outputs.shape)} for {len(labels)} labels")
    best = np.argmax(np.where(np.isnan(outputs), -np.inf, outputs), axis=1)
    has_no_score = np.isnan(outputs).all(axis=1)
    return np.stack([labels.astype(np.int64), np.where(has_no_score, -1, best)], axis=1)


def compute_macro_f1(batches: Sequence[Array]) -> Array:
    """Compute each sample's pseudo-value of macro F1, as scikit-learn's f1_score(average="macro").

    Macro F1 is the mean of 2 TP / (2 TP + FP + FN) over the classes that are a label or were chosen. `batches` are
    results of `pair_label_and_choice`, and the mean of the pseudo-values is F1.
    """
    pairs = np.concatenate(batches)
    classes, at = np.unique(pairs, return_inverse=True)
    label, chosen = at.reshape(pairs.shape).T
    right = np.bincount(label[label == chosen], minlength=len(classes)).astype(np.float64)
    count = np.bincount(at.ravel(), minlength=len(classes)).astype(np.float64)
    # a sample changes at most two classes: its label's and the chosen one; a right one counts twice in its own class
    hit = (label == chosen).astype(np.float64)
    scores = _compute_f1(right, count)
    whole, total = float(np.mean(scores)), scores.sum()
    without_label = _compute_f1(right[label] - hit, count[label] - 1 - hit)
    without_chosen = np.where(hit > 0, 0.0, _compute_f1(right[chosen], count[chosen] - 1))
    # for each sample: the sum of the scores without it, the classes that only it has, and the number of the others
    sums = total - scores[label] - np.where(hit > 0, 0.0, scores[chosen]) + without_label + without_chosen
    lost = (count[label] - 1 - hit == 0).astype(np.int64) + ((hit == 0) & (count[chosen] == 1))
    counts = len(classes) - lost
    return make_pseudovalues(whole, np.divide(sums, counts, out=np.full(len(sums), whole), where=counts > 0))


def pack_multilabel(outputs: Array, labels: Array) -> Array:
    """Stack the classes that a sample has and those chosen for it, as booleans [sample, 2, class].

    Classes with a score above 0.5 are chosen or, where outputs are not floats, those that are not 0. Raises Refusal
    where labels and outputs differ in shape.
    """
    check_row_per_label(outputs, labels)
    if outputs.shape != labels.shape:
        raise make_shape_refusal(f"the shape {list(outputs.shape)} for labels of {list(labels.shape)}")
    chosen = outputs > 0.5 if outputs.dtype.kind == "f" else outputs != 0
    return np.stack([labels != 0, chosen], axis=1)


def compute_multilabel_f1(batches: Sequence[Array]) -> Array:
    """Compute each sample's pseudo-value of macro F1 where samples have several classes; an unused class counts 0.

    `batches` are results of `pack_multilabel`.
    """
    label, chosen = np.concatenate(batches).transpose(1, 0, 2)
    hit = (label & chosen).astype(np.int8)
    both = label.astype(np.int8) + chosen
    right, count = hit.sum(axis=0, dtype=np.float64), both.sum(axis=0, dtype=np.float64)
    without = np.array([_compute_f1(right - row, count - total).mean() for row, total in zip(hit, both, strict=True)])
    return make_pseudovalues(float(_compute_f1(right, count).mean()), without)


def _compute_f1(right: Array, count: Array) -> Array:
    # `count` is how often a class is a label plus how often it was chosen: 2 TP + FP + FN
    return np.asarray(np.divide(2 * right, count, out=np.zeros(np.shape(count)), where=count > 0))


TOP1 = Judge(partial(mark_labels_among_best, count=1))
TOP5 = Judge(partial(mark_labels_among_best, count=5))
F1 = Judge(pair_label_and_choice, compute_macro_f1)
F1_MULTILABEL = Judge(pack_multilabel, compute_multilabel_f1)
